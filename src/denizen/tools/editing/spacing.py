"""Lines put into a file and taken out of it, so that there are as many blank lines between things as before."""

from collections.abc import Sequence

from denizen.tools.editing.whitespace import indent_of


def without(lines: Sequence[str], first: int, last: int) -> list[str]:
    """The file without the lines `first` to `last` (from 1)."""
    indent = indent_of(lines[first - 1])
    above, before = _split_end(lines[: first - 1])
    below, after = _split_start(lines[last:])
    opens, closes = _opens(above, indent), _closes(below, indent)
    if not above or not below:
        blank = 0
    elif opens and closes:
        blank = min(before, after)
    else:
        blank = after if closes else before if opens else max(before, after)
    return [*above, *[""] * blank, *below]


def with_after(lines: Sequence[str], last: int, block: Sequence[str], gap: int) -> list[str]:
    """The file with the block behind the line `last`, `gap` blank lines apart from it."""
    indent = indent_of(block[0])
    below, after = _split_start(lines[last:])
    if below and not _closes(below, indent):
        after = max(after, gap)
    return [*lines[:last], *[""] * gap, *block, *[""] * (after if below else 0), *below]


def with_before(lines: Sequence[str], first: int, block: Sequence[str], gap: int) -> list[str]:
    """The file with the block before the line `first`, `gap` blank lines apart from it."""
    indent = indent_of(block[0])
    above, before = _split_end(lines[: first - 1])
    if above and not _opens(above, indent):
        before = max(before, gap)
    return [*above, *[""] * (before if above else 0), *block, *[""] * gap, *lines[first - 1 :]]


def _opens(above: Sequence[str], indent: str) -> bool:
    """Whether what is below is the first in its block."""
    return not above or len(indent_of(above[-1])) < len(indent)


def _closes(below: Sequence[str], indent: str) -> bool:
    """Whether what is above is the last in its block."""
    return not below or len(indent_of(below[0])) < len(indent)


def _split_end(lines: Sequence[str]) -> tuple[Sequence[str], int]:
    """The lines without blank ones at their end, and the number of those."""
    count = next((at for at, line in enumerate(reversed(lines)) if line.strip()), len(lines))
    return lines[: len(lines) - count], count


def _split_start(lines: Sequence[str]) -> tuple[Sequence[str], int]:
    count = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
    return lines[count:], count
