"""Put the figures of the latest benchmark run into the README.

scripts/figures.py          writes the table
scripts/figures.py --check  exits with 1 when the README shows others
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PLACE = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- end of figures -->)", re.DOTALL)
KEPT = ("on disk", "in memory")
"""Where the session of a turn is kept that is shown: the first that an engine has."""

CALLED = {"floor": "bare loop", "denizen": "**denizen**"}


def figures(results: Path) -> Iterator[str]:
    """The lines of the README: what a turn costs, how that grows, what memory it takes, by engine."""
    text = results.read_text("utf-8")
    turn, growth, start = (_rows(text, title) for title in ("A turn with", "Growth over", "Starting"))
    costs = {name: next(row for kept in KEPT for row in turn if row[:2] == [name, kept]) for name, *_ in turn}
    yield "| engine | CPU ms | × bare loop | growth | MB |\n|---|--:|--:|--:|--:|"
    for name, cost in sorted(costs.items(), key=lambda item: float(_median(item[1][2]))):
        grown = next(row[4] for row in growth if row[0] == name)
        memory = next(_median(row[4]) for row in start if row[0] == name)
        yield f"| {CALLED.get(name, name)} | {_median(cost[2])} | {cost[3]} | {grown} | {memory} |"
    link = results.relative_to(ROOT).as_posix()
    yield f"\nThe whole run, with the goals that are met and those that are not yet: [{results.stem}]({link}).\n"


def _rows(text: str, title: str) -> list[list[str]]:
    """The cells of the table in the section whose title begins so."""
    section = re.search(rf"^## {title}.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^\| (.*) \|$", section[0] if section else "", re.MULTILINE)[2:]
    return [line.split(" | ") for line in lines]


def _median(cell: str) -> str:
    return cell.partition(" (")[0]


def main() -> int:
    """Write the table, or say that it is out of date."""
    latest = max((ROOT / "benchmarks" / "results").glob("????-??-??.md"))
    old = README.read_text("utf-8")
    new = PLACE.sub(lambda _: "\n".join(figures(latest)), old)
    if "--check" in sys.argv and new != old:
        print("The README shows other figures than the latest run; run scripts/figures.py")
        return 1
    README.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
