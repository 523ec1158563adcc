"""Changes parts of a text without changing its line ends, and shows what has changed."""

import difflib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from posixpath import commonprefix
from typing import Any

import msgspec

from denizen.config.pattern import pattern
from denizen.tools.files.text import readable

MAX_COMPARED_LINES = 3000
"""Changed lines up to which the lines are matched with each other; of more, those are counted that one side lacks."""
MAX_DIFF_LINES = 200  # lines of a diff

Span = tuple[int, int]  # where a part of a text begins and ends

_HEADER = pattern(r"@@ -(\d+)((?:,\d+)? \+)(\d+)")


class LineEnds:
    """`text` is the original with LF in place of every CRLF."""

    def __init__(self, original: str) -> None:
        self._original = original
        self.text = original.replace("\r\n", "\n")
        crlf = re.finditer("\r\n", original) if len(self.text) < len(original) else ()
        self._returns = [found.start() - number for number, found in enumerate(crlf)]

    def replace(self, edits: Iterable[tuple[Span, str]]) -> str:
        """The original with spans of `text`, in order and apart from each other, replaced by new texts.

        A new text gets the line ends of its place; everything else stays as it was.
        """
        done: list[str] = []
        rest = 0
        for (begin, end), new in edits:
            start = begin + bisect_left(self._returns, begin)
            line_end = self._original.find("\n", start)
            if line_end < 0:
                line_end = self._original.rfind("\n")
            is_crlf = self._original[max(line_end - 1, 0) : line_end] == "\r"
            done += [self._original[rest:start], new.replace("\n", "\r\n") if is_crlf else new]
            rest = end + bisect_left(self._returns, end)
        return "".join([*done, self._original[rest:]])


class LineDiff(msgspec.Struct, frozen=True):
    """A unified diff without file names, cut when it is long, and the number of lines on each side."""

    diff: str
    added: int
    removed: int

    def details(self) -> dict[str, Any]:
        """For the details of a result."""
        return {"diff": self.diff, "added": self.added, "removed": self.removed}


def difference(old: str, new: str, *, most: int = MAX_DIFF_LINES) -> LineDiff:
    """The differences of `new`, as a diff of at most so many lines."""
    a, b = old.splitlines(), new.splitlines()
    begin, end = unchanged(a, b)
    if max(len(a), len(b)) - begin - end > MAX_COMPARED_LINES:
        there, here = Counter(a), Counter(b)
        return LineDiff("", (here - there).total(), (there - here).total())
    first, rest = max(begin - 3, 0), max(end - 3, 0)
    lines = list(difflib.unified_diff(a[first : len(a) - rest], b[first : len(b) - rest], lineterm=""))[2:]

    def moved(header: re.Match[str]) -> str:
        return f"@@ -{int(header[1]) + first}{header[2]}{int(header[3]) + first}"

    shown = [_HEADER.sub(moved, line) if line.startswith("@@") else line for line in lines[:most]]
    if len(lines) > most:
        shown.append(f"… {len(lines) - most} more lines")
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return LineDiff(readable("\n".join(shown))[0], added, removed)


def unchanged(a: list[str], b: list[str]) -> tuple[int, int]:
    """How many lines two texts have in common at their beginning, and after that at their end."""
    begin = len(commonprefix([a, b]))
    return begin, len(commonprefix([a[begin:][::-1], b[begin:][::-1]]))
