"""Finding where a hunk belongs when the lines that it shows around its changes aren't quite those of the file."""

import difflib
from collections.abc import Sequence

from denizen.tools.editing.whitespace import squeeze
from denizen.tools.patching.ground import Ground, Place, learn_indents
from denizen.tools.patching.hunk import Hunk, Line

_LEFT_OUT = 2
"""Lines that the context may leave out."""


def find_alike(ground: Ground, hunk: Hunk) -> Place | None:
    """The place that has all lines from the hunk's first change to its last, and at least half of those that stay.

    None where there is no such place, or more than one.
    """
    before, core, behind = hunk.split()
    old = [(sign, squeeze(text)) for sign, text in core if sign != "+"]
    most = len(_keys([*before, *behind])) + len(_keys([key for sign, key in old if sign == " "]))
    scored = [(_score(ground, at, old, before, behind), at) for at in _candidates(ground, old, before, behind)]
    best = max(scored, default=(0, 0))
    if 2 * best[0] < max(most, 1) or [score for score, _ in scored].count(best[0]) > 1:
        return None
    at, end = best[1], best[1] + len(old)
    near = {squeeze(line): line for line in _near(ground.lines, at, end, before, behind)}
    there = [*map(near.get, map(squeeze, before)), *ground.lines[at:end], *map(near.get, map(squeeze, behind))]
    shift = ground.shift if hunk.at is None else at - len(before) - hunk.at
    return Place(at, end, core, shift, learn_indents(hunk, there), "with other lines around it than the patch shows")


def _score(ground: Ground, at: int, old: Sequence[Line], before: Sequence[str], behind: Sequence[str]) -> int:
    """How many of the lines that stay are there: among the changes (all), right above them, and right below."""
    end = at + len(old)
    inside = sum(sign == " " and bool(key) for sign, key in old)
    above = _common(_keys(before), _near(ground.squeezed, at, at, before, []))
    return inside + above + _common(_keys(behind), _near(ground.squeezed, end, end, [], behind))


def _near(lines: Sequence[str], at: int, end: int, before: Sequence[str], behind: Sequence[str]) -> Sequence[str]:
    """The lines from where `before` would begin to where `behind` would end, and a few more, which it may leave out."""
    first = max(at - len(before) - _LEFT_OUT, 0) if before else at
    return lines[first : end + len(behind) + _LEFT_OUT if behind else end]


def _candidates(ground: Ground, old: Sequence[Line], before: Sequence[str], behind: Sequence[str]) -> list[int]:
    """Where all lines that are removed or between changes are; without any, where a line around the new ones is."""
    keys = ground.squeezed
    if old:
        needed = [key for _, key in old]
        return [at for at in range(len(keys) - len(old) + 1) if keys[at : at + len(old)] == needed]
    above, below = squeeze(before[-1]) if before else None, squeeze(behind[0]) if behind else None
    return [
        at
        for at in range(len(keys) + 1)
        if (at > 0 and above and keys[at - 1] == above) or (at < len(keys) and below and keys[at] == below)
    ]


def _keys(lines: Sequence[str]) -> list[str]:
    return [key for line in lines if (key := squeeze(line))]


def _common(wanted: Sequence[str], there: Sequence[str]) -> int:
    """How many of the lines are there, in their order."""
    blocks = difflib.SequenceMatcher(None, wanted, [key for key in there if key], autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks)
