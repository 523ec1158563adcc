"""Finding where a hunk belongs when the lines that it shows around its changes aren't quite those of the file."""

import difflib
from collections.abc import Sequence

from denizen.tools.patching.ground import Ground, Place
from denizen.tools.patching.hunk import Hunk, Line
from denizen.tools.whitespace import squeeze


def find_alike(ground: Ground, hunk: Hunk) -> Place | None:
    """The place that has the lines which the hunk removes, and around them most of its other lines, at least half.

    None where there is no such place, or more than one.
    """
    before, core, behind = hunk.split()
    old = [(sign, squeeze(text)) for sign, text in core if sign != "+"]
    above, below = _keys(before), _keys(behind)
    most = len(above) + len(below) + len(_keys([text for sign, text in old if sign == " "]))

    def score(at: int) -> int:
        inside = sum(sign == " " and bool(key) and key == ground.squeezed[at + n] for n, (sign, key) in enumerate(old))
        end = at + len(old)
        near_above = ground.squeezed[max(at - len(before) - 2, 0) : at]
        near_below = ground.squeezed[end : end + len(behind) + 2]
        return inside + _common(above, near_above) + _common(below, near_below)

    scored = sorted(((score(at), at) for at in _candidates(ground, old, before, behind)), reverse=True)
    if not most or not scored or 2 * scored[0][0] < most or [s for s, _ in scored[:2]].count(scored[0][0]) > 1:
        return None
    at = scored[0][1]
    shift = ground.shift if hunk.at is None else at - len(before) - hunk.at
    pairs = _pairs(ground, at, before, core, behind)
    return Place(at, at + len(old), core, pairs, shift, "with other lines around it than the patch shows")


def _candidates(ground: Ground, old: Sequence[Line], before: Sequence[str], behind: Sequence[str]) -> list[int]:
    """Where all removed lines are; without any, where the lines between or directly around the new ones are."""
    keys = ground.squeezed
    removes = any(sign == "-" for sign, _ in old)
    if old:
        needed = [(n, key) for n, (sign, key) in enumerate(old) if sign == "-" or not removes]
        places = range(len(keys) - len(old) + 1)
        return [at for at in places if all(keys[at + n] == key for n, key in needed)]
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


def _pairs(
    ground: Ground, at: int, before: Sequence[str], core: Sequence[Line], behind: Sequence[str]
) -> list[tuple[str, str]]:
    """Lines of the hunk and those of the file that they stand for."""
    old = [text for sign, text in core if sign != "+"]
    pairs = [*zip(old, ground.lines[at:], strict=False)]
    near = [(before[-1:], at - 1), (behind[:1], at + len(old))]
    pairs += [
        (shown[0], ground.lines[n])
        for shown, n in near
        if shown and 0 <= n < len(ground.lines) and squeeze(shown[0]) == ground.squeezed[n]
    ]
    return pairs
