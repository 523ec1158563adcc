"""What a change did to a text, for the screen."""

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from denizen.tools.files.text import readable

MOST_COMPARED = 3000
"""Changed lines up to which the lines are matched with each other; of more, those are counted that one side lacks."""
MOST_SHOWN = 200
"""Lines of a diff."""

_HEADER = re.compile(r"@@ -(\d+)((?:,\d+)? \+)(\d+)")


@dataclass(frozen=True, slots=True)
class Difference:
    """A unified diff without file names, cut when it is long, and the number of lines on each side."""

    diff: str
    added: int
    removed: int

    def details(self) -> dict[str, Any]:
        """For the details of a result."""
        return {"diff": self.diff, "added": self.added, "removed": self.removed}


def difference(old: str, new: str, *, most: int = MOST_SHOWN) -> Difference:
    """What is different in `new`, in a diff of that many lines at most."""
    a, b = old.splitlines(), new.splitlines()
    begin = _same(a, b)
    end = _same(a[begin:][::-1], b[begin:][::-1])
    changed_a, changed_b = len(a) - begin - end, len(b) - begin - end
    if max(changed_a, changed_b) > MOST_COMPARED:
        there, here = Counter(a), Counter(b)
        return Difference("", (here - there).total(), (there - here).total())
    first = max(begin - 3, 0)
    parts = a[first : len(a) - max(end - 3, 0)], b[first : len(b) - max(end - 3, 0)]
    lines = list(difflib.unified_diff(*parts, lineterm=""))[2:]
    return Difference(_text(lines, first, most), _count(lines, "+"), _count(lines, "-"))


def _same(a: Sequence[str], b: Sequence[str]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _count(lines: Sequence[str], sign: str) -> int:
    return sum(line.startswith(sign) for line in lines)


def _text(lines: Sequence[str], offset: int, most: int) -> str:
    def moved(header: re.Match[str]) -> str:
        return f"@@ -{int(header[1]) + offset}{header[2]}{int(header[3]) + offset}"

    shown = [_HEADER.sub(moved, line) if line.startswith("@@") else line for line in lines[:most]]
    if len(lines) > most:
        shown.append(f"… {len(lines) - most} more lines")
    return readable("\n".join(shown))[0]
