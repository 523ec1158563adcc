"""Lays out new code where it goes: its indentation, tabs or spaces as used there, and the blank lines around it."""

import re
from collections.abc import Sequence, Set

from denizen.structure.outline import literal_lines
from denizen.tools.editing.matching import indent_of

_CLOSES = re.compile(r"\s*(?:[)\]}]|end\b)")
_NOT_A_HEAD = re.compile(r"\s*(?:@|#|//|/?\*|--|\[)")
"""How a line begins that the next one isn't indented against: a decorator, a comment, an attribute."""


def fit(content: str, language: str, indent: str, lines: Sequence[str]) -> list[str]:
    """The lines of `content`, written to be by itself or as if it were in its place, indented by `indent`.

    `lines` are those of the file that it goes into. What is inside of text literals stays as it is.
    """
    new = content.replace("\r\n", "\n").strip("\n").rstrip().split("\n")
    fixed = literal_lines("\n".join(new).encode("utf-8", "surrogateescape"), language)
    # as they are by themselves
    common = min(_indents(new, fixed), key=len, default="")
    new = [line if at in fixed else line.removeprefix(common) for at, line in enumerate(new)]
    rest = [line for at, line in enumerate(new) if at and at not in fixed and line.strip()]
    least = min((len(indent_of(line)) for line in rest), default=0)
    level = rest and (_CLOSES.match(rest[-1]) or _NOT_A_HEAD.match(new[0]))
    if indent and not common and least >= len(indent) + (not level):  # but for its first line, as it would be there
        new[1:] = [line if at in fixed else line.removeprefix(indent) for at, line in enumerate(new[1:], 1)]
    # with tabs where the lines around have tabs, and with spaces where those have spaces
    tabs, spaces = (sum(line.startswith(start) for line in lines) for start in ("\t", "  "))
    indents = _indents(new, fixed)
    has_tabs = any("\t" in each for each in indents)
    if tabs > spaces and not has_tabs:
        unit = min((len(each) for each in indents if each), default=4)
        for at, line in enumerate(new):
            width = 0 if at in fixed else len(indent_of(line))
            new[at] = "\t" * (width // unit) + " " * (width % unit) + line[width:]
    elif spaces > tabs and has_tabs:
        unit = min((len(indent_of(line)) for line in lines if line.startswith("  ") and line.strip()), default=4)
        for at, line in enumerate(new):
            width = 0 if at in fixed else len(indent_of(line))
            new[at] = line[:width].replace("\t", " " * unit) + line[width:]
    return [line if at in fixed or not line.strip() else indent + line for at, line in enumerate(new)]


def _indents(lines: Sequence[str], fixed: Set[int]) -> list[str]:
    return [indent_of(line) for at, line in enumerate(lines) if at not in fixed and line.strip()]


def without(lines: Sequence[str], first: int, last: int) -> list[str]:
    """The file without the lines `first` to `last` (from 1)."""
    indent = indent_of(lines[first - 1])
    above, before = _split_end(lines[: first - 1])
    below, after = _split_start(lines[last:])
    opens, closes = _is_outside(above[-1:], indent), _is_outside(below[:1], indent)
    if not above or not below:
        blank = 0
    elif opens and closes:
        blank = min(before, after)
    else:
        blank = after if closes else before if opens else max(before, after)
    return [*above, *[""] * blank, *below]


def with_after(lines: Sequence[str], last: int, block: Sequence[str], gap: int) -> list[str]:
    """The file with the block after the line `last`, `gap` blank lines apart from it."""
    below, after = _split_start(lines[last:])
    if not _is_outside(below[:1], indent_of(block[0])):
        after = max(after, gap)
    return [*lines[:last], *[""] * gap, *block, *[""] * (after if below else 0), *below]


def with_before(lines: Sequence[str], first: int, block: Sequence[str], gap: int) -> list[str]:
    """The file with the block before the line `first`, `gap` blank lines apart from it."""
    above, before = _split_end(lines[: first - 1])
    if not _is_outside(above[-1:], indent_of(block[0])):
        before = max(before, gap)
    return [*above, *[""] * (before if above else 0), *block, *[""] * gap, *lines[first - 1 :]]


def _is_outside(neighbour: Sequence[str], indent: str) -> bool:
    """Whether the next line belongs to what holds the block, so that the block is its first or last; none does too."""
    return not neighbour or len(indent_of(neighbour[0])) < len(indent)


def _split_end(lines: Sequence[str]) -> tuple[Sequence[str], int]:
    """The lines without blank ones at their end, and the number of those."""
    rest, count = _split_start(lines[::-1])
    return rest[::-1], count


def _split_start(lines: Sequence[str]) -> tuple[Sequence[str], int]:
    count = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
    return lines[count:], count
