"""What a tool changed in files, for the screen."""

from collections.abc import Iterator
from typing import Any

from denizen.cli.text import printable

MOST_LINES = 20
"""Lines of a diff that are shown."""

_COLOURS = {"+": "green", "-": "red"}


def changes(details: Any) -> list[tuple[str, str]]:
    """The lines of the diffs in a result's details, each with its colour; of a long one the beginning."""
    lines = [printable(line) for diff in _diffs(details) for line in diff.split("\n")]
    shown = [(line, _COLOURS.get(line[:1], "bright_black")) for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        shown.append((f"… {len(lines) - MOST_LINES} more lines", "bright_black"))
    return shown


def _diffs(details: Any) -> Iterator[str]:
    """Of one file, or of each of several."""
    if not isinstance(details, dict):
        return
    files = details.get("files")
    for file in files if isinstance(files, list) else [details]:
        if isinstance(file, dict) and isinstance(diff := file.get("diff"), str) and diff:
            yield diff
