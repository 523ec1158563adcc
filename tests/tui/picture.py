"""What a screen shows, as plain text: kept in tests/data/tui, so that it can be looked at."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from textual.app import App

PICTURES = Path(__file__).parents[1] / "data" / "tui"
_CELL = 12.2
"""Units of the picture's width that a character takes."""


def picture(app: App[None]) -> str:
    """The rows of the screen, read off the program's own picture of it."""
    rows: dict[int, str] = {}
    for element in ET.fromstring(app.export_screenshot()).iter("{http://www.w3.org/2000/svg}text"):
        number = re.search(r"line-(\d+)", element.get("clip-path", ""))
        if number:
            row = rows.get(int(number[1]), "")
            column = round(float(element.get("x", "0")) / _CELL)
            rows[int(number[1])] = row.ljust(column) + (element.text or "").replace("\xa0", " ")
    return "".join(f"{rows.get(number, '').rstrip()}\n" for number in range(max(rows) + 1))


def matches(app: App[None], name: str) -> None:
    """Compare with the picture of that name; one that isn't there yet is written, and fails the test."""
    path = PICTURES / f"{name}.txt"
    shown = picture(app)
    if not path.exists():
        path.write_text(shown)
        raise AssertionError(f"{path.name} was written: look at it")
    assert shown == path.read_text()
