"""Finding where a hunk belongs: by the lines that it shows; its number only decides between places that fit."""

from collections.abc import Sequence
from dataclasses import replace

from denizen.errors import ToolRefused
from denizen.tools.editing.nearest import show_nearest
from denizen.tools.editing.whitespace import squeeze
from denizen.tools.patching.alike import find_alike
from denizen.tools.patching.ground import Ground, Place, learn_indents
from denizen.tools.patching.hunk import Hunk

MOST_NAMED = 8
MOST_CHARS = 200
"""Line numbers in a message, and characters of a line."""
_CLEARLY = 3
"""How many times nearer to the stated number than any other a place must be."""


def find_place(ground: Ground, hunk: Hunk, *, exactly: bool = False) -> Place:
    """Where the hunk belongs: exactly as it says, or with other white space, or with some other lines around.

    The lines that it removes must be there. Raises ToolRefused when they aren't, or when more than one place fits.
    """
    if not hunk.old:
        return _insertion(ground, hunk)
    place = _as_it_is(ground, hunk)
    if exactly and place is None:
        raise ToolRefused("it doesn't fit exactly")
    place = place or _but_for_line_ends(ground, hunk) or _but_for_line_ends(ground, hunk.unmarked)
    if place is None and not hunk.strict:
        place = _but_for_white_space(ground, hunk)
        if place is None and not _is_applied(ground, hunk):
            place = find_alike(ground, hunk)
    if place is None:
        raise ToolRefused(_misfit(ground, hunk))
    return place


def _as_it_is(ground: Ground, hunk: Hunk) -> Place | None:
    starts = _find(ground.lines, hunk.old)
    return _placed(ground, hunk, _choose(ground, hunk, starts)) if starts else None


def _but_for_line_ends(ground: Ground, hunk: Hunk) -> Place | None:
    starts = _find(ground.stripped, [line.rstrip() for line in hunk.old])
    return _placed(ground, hunk, _choose(ground, hunk, starts)) if starts else None


def _but_for_white_space(ground: Ground, hunk: Hunk) -> Place | None:
    starts = _find(ground.squeezed, [squeeze(line) for line in hunk.old])
    if not starts:
        return None
    start = _choose(ground, hunk, starts)
    indents = learn_indents(hunk, ground.lines[start : start + len(hunk.old)])
    return replace(_placed(ground, hunk, start), indents=indents, how="ignoring white space")


def _is_applied(ground: Ground, hunk: Hunk) -> bool:
    return bool(hunk.new) and bool(_find(ground.squeezed, [squeeze(line) for line in hunk.new]))


def _insertion(ground: Ground, hunk: Hunk) -> Place:
    """Of a hunk that shows nothing of what is around it."""
    if hunk.at_end or not ground.lines:
        return Place(len(ground.lines), len(ground.lines), hunk.lines)
    at = hunk.at and hunk.at + ground.shift  # before line 1 is there, however far the others are off
    if at is None or not hunk.empty or not 0 <= at <= len(ground.lines):
        raise ToolRefused("it only adds lines and doesn't show where; put lines that are there around them")
    return Place(at, at, hunk.lines, at - (hunk.at or 0))


def _find(keys: Sequence[str], wanted: Sequence[str]) -> list[int]:
    count, first = len(wanted), wanted[0]
    return [at for at, key in enumerate(keys) if key == first and keys[at : at + count] == wanted]


def _choose(ground: Ground, hunk: Hunk, starts: Sequence[int]) -> int:
    """Which of the places that fit is meant."""
    chosen = _by_number(hunk.at, ground.shift, starts)
    if chosen is None:
        chosen = _by_order(ground, hunk, starts)
    if chosen is None:
        raise ToolRefused(f"it fits at lines {_named(starts)}; add lines around it, or the right line number")
    return chosen


def _by_number(at: int | None, shift: int, starts: Sequence[int]) -> int | None:
    if len(starts) == 1:
        return starts[0]
    if at is None:
        return None
    near, next_near = sorted(starts, key=lambda start: abs(start - at - shift))[:2]
    clear = _CLEARLY * abs(near - at - shift) <= abs(next_near - at - shift)
    return near if clear and near != next_near else None


def _by_order(ground: Ground, hunk: Hunk, starts: Sequence[int]) -> int | None:
    """By the headings that the hunk is said to be behind, by the file's end, or by the hunk before it."""
    headings = _behind(ground, hunk.within)
    later = [start for start in starts if start >= max(ground.after, headings or 0)]
    if hunk.at_end:
        later = [start for start in later if start + len(hunk.old) == len(ground.lines)]
    return later[0] if later and (headings or len(later) == 1) else None


def _behind(ground: Ground, headings: Sequence[str]) -> int | None:
    """The line after the last of the headings, each behind the one before it; None where that isn't clear."""
    at = 0
    for number, heading in enumerate(map(squeeze, headings)):
        found = [n for n in range(at, len(ground.lines)) if ground.squeezed[n].startswith(heading)]
        if not found or (number == 0 and len(found) > 1):
            return None
        at = found[0] + 1
    return at


def _placed(ground: Ground, hunk: Hunk, start: int) -> Place:
    before, core, _ = hunk.split()
    first = start + len(before)
    last = first + sum(sign != "+" for sign, _ in core)
    return Place(first, last, core, ground.shift if hunk.at is None else start - hunk.at)


def _misfit(ground: Ground, hunk: Hunk) -> str:
    """Why a hunk belongs nowhere, and what is most like what it looks for."""
    gone = [text for sign, text in hunk.lines if sign == "-" and squeeze(text) not in ground.squeezed]
    if gone:
        why = f"it removes {gone[0][:MOST_CHARS]!r}, which isn't there"
    elif _is_applied(ground, hunk):
        why = "it seems to be applied already"
    else:
        why = "its lines don't stand together there"
    near = show_nearest(ground.lines, hunk.old)
    return f"{why}. The nearest, with line numbers:\n{near}" if near else why


def _named(starts: Sequence[int]) -> str:
    return ", ".join(str(start + 1) for start in starts[:MOST_NAMED]) + (", …" if len(starts) > MOST_NAMED else "")
