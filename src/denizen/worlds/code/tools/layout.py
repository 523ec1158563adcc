"""Lays out new code for its place: its indentation, tabs or spaces as used there, and the blank lines around it."""

import re
from collections.abc import Callable, Sequence, Set

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
    literal = literal_lines("\n".join(new).encode("utf-8", "surrogateescape"), language)

    def change(reindented: Callable[[str], str], first: int = 0) -> None:
        """Change the lines from `first` on that aren't inside of a literal."""
        new[first:] = [line if at in literal else reindented(line) for at, line in enumerate(new[first:], first)]

    common = min(_indents(new, literal), key=len, default="")
    change(lambda line: line.removeprefix(common))
    if indent and not common and _lacks_only_first_indent(new, literal, indent):
        change(lambda line: line.removeprefix(indent), first=1)
    tabs, spaces = (sum(line.startswith(start) for line in lines) for start in ("\t", "  "))
    written = _indents(new, literal)
    has_tabs = any("\t" in each for each in written)
    if tabs > spaces and not has_tabs:
        width = min((len(each) for each in written if each), default=4)
        change(lambda line: _with_tabs(line, width))
    elif spaces > tabs and has_tabs:
        width = min((len(indent_of(line)) for line in lines if line.startswith("  ") and line.strip()), default=4)
        change(lambda line: indent_of(line).replace("\t", " " * width) + line.lstrip())
    change(lambda line: indent + line if line.strip() else line)
    return new


def _lacks_only_first_indent(lines: Sequence[str], literal: Set[int], indent: str) -> bool:
    """Whether the code is indented as in its place, except for its first line."""
    rest = [line for at, line in enumerate(lines) if at and at not in literal and line.strip()]
    if not rest:
        return False
    least = min(len(indent_of(line)) for line in rest)
    if _CLOSES.match(rest[-1]) or _NOT_A_HEAD.match(lines[0]):
        return least >= len(indent)
    return least > len(indent)  # a body is indented further than its head


def _with_tabs(line: str, width: int) -> str:
    tabs, spaces = divmod(len(indent_of(line)), width)
    return "\t" * tabs + " " * spaces + line.lstrip()


def _indents(lines: Sequence[str], literal: Set[int]) -> list[str]:
    return [indent_of(line) for at, line in enumerate(lines) if at not in literal and line.strip()]


def without(lines: Sequence[str], first: int, last: int) -> list[str]:
    """The file without the lines `first` to `last` (from 1), and without blank lines that only they needed."""
    indent = indent_of(lines[first - 1])
    above, blank_above = _split_end(lines[: first - 1])
    below, blank_below = _split_start(lines[last:])
    was_first, was_last = _is_outside(above[-1:], indent), _is_outside(below[:1], indent)
    if not above or not below:
        blank = 0
    elif was_first and was_last:
        blank = min(blank_above, blank_below)
    elif was_last:
        blank = blank_below
    elif was_first:
        blank = blank_above
    else:
        blank = max(blank_above, blank_below)
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
    """Whether the next line, if any, is outside of the block's scope: the block is then the first or last in it."""
    return not neighbour or len(indent_of(neighbour[0])) < len(indent)


def _split_end(lines: Sequence[str]) -> tuple[Sequence[str], int]:
    """The lines without blank ones at their end, and the number of those."""
    rest, blank = _split_start(lines[::-1])
    return rest[::-1], blank


def _split_start(lines: Sequence[str]) -> tuple[Sequence[str], int]:
    blank = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
    return lines[blank:], blank
