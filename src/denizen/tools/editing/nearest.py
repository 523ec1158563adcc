"""The part of a text that is most like one that isn't in it."""

import difflib
import heapq
from collections.abc import Sequence

from denizen.tools.editing.whitespace import squeeze
from denizen.tools.files.text import readable

MOST_LINES = 12
MOST_CHARS = 200
"""Lines of the nearest part that are shown, and characters of each."""
_MOST_SEARCHED = 5_000
"""Lines that are compared sign by sign when no line is the same."""


def show_nearest(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """The lines most like `wanted`, numbered, for an error; empty when nothing is like it."""
    keys = [squeeze(line) for line in lines]
    want = [key for line in wanted if (key := squeeze(line))]
    first = _most_in_common(keys, want) if want else None
    if first is None and want:
        first = _most_alike(keys[:_MOST_SEARCHED], want)
    if first is None:
        return ""
    last = min(first + min(max(len(wanted), 3), MOST_LINES), len(lines))
    shown = "\n".join(f"{number + 1}\t{lines[number][:MOST_CHARS]}" for number in range(first, last))
    return readable(shown)[0]


def _most_in_common(keys: Sequence[str], want: Sequence[str]) -> int | None:
    """Where as many lines begin as are wanted, of which the most are wanted ones."""
    known = set(want)
    hits = [key in known for key in keys]
    if not any(hits):
        return None
    score = sum(hits[: len(want)])
    scores = [score]
    for at in range(1, len(keys)):
        score += hits[at + len(want) - 1 : at + len(want)].count(True) - hits[at - 1]
        scores.append(score)
    best = heapq.nlargest(5, range(len(keys)), key=scores.__getitem__)
    text = "\n".join(want)
    return max(best, key=lambda at: difflib.SequenceMatcher(None, text, "\n".join(keys[at : at + len(want)])).ratio())


def _most_alike(keys: Sequence[str], want: Sequence[str]) -> int | None:
    """Where the line is that is most like the longest of the wanted ones."""
    longest = max(want, key=len)
    near = difflib.get_close_matches(longest, dict.fromkeys(keys), 1, 0.5)
    return max(keys.index(near[0]) - want.index(longest), 0) if near else None
