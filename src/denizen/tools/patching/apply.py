"""Applying the hunks of a patch to the text of one file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from denizen.errors import ToolRefused
from denizen.tools.editing.linebreaks import Flat, Span
from denizen.tools.patching.ground import Ground, Place
from denizen.tools.patching.hunk import Hunk
from denizen.tools.patching.place import find_place

Edit = tuple[Span, str]
"""A part of a text, and what comes in its place."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The text after all hunks, and what was not as a hunk said."""

    text: str
    notes: Sequence[str] = ()


def apply_hunks(path: str, text: str, hunks: Sequence[Hunk]) -> Applied:
    """The text with every hunk applied. Raises ToolRefused when one doesn't fit, or doesn't fit with the others.

    Line ends are taken as they stand if the patch then fits exactly; else it keeps those that the file has.
    """
    if any("\r" in line for hunk in hunks for _, line in hunk.lines):
        try:
            edits, notes = _edits(path, text, hunks, exactly=True)
            return Applied(_spliced(text, edits), notes)
        except ToolRefused:
            pass  # told below, if it doesn't fit without them either
    flat = Flat(text)
    edits, notes = _edits(path, flat.text, [_flat(hunk) for hunk in hunks], exactly=False)
    return Applied(flat.replace(edits), notes)


def create_text(path: str, hunks: Sequence[Hunk]) -> str:
    """The text of a new file. Raises ToolRefused for a hunk that needs an old one."""
    lines: list[str] = []
    for hunk in hunks:
        for sign, line in hunk.lines:
            if sign == "-" or (sign == " " and line.strip()):
                raise ToolRefused(
                    f"{path} is to be created, but the patch shows {line!r} as there already: begin new lines with +"
                )
            lines.append(line)
    return "\n".join(lines) + ("\n" if lines and not hunks[-1].new_open else "")


def _edits(path: str, text: str, hunks: Sequence[Hunk], *, exactly: bool) -> tuple[list[Edit], list[str]]:
    lines = text.split("\n")
    ground = Ground(lines if lines[-1] else lines[:-1])
    placed = [(_find(path, ground, hunks, number, exactly=exactly), number) for number in range(len(hunks))]
    notes = [note for place, number in placed if (note := _note(place, hunks[number], number))]
    placed.sort(key=lambda item: (item[0].first, item[0].last, item[1]))
    for (place, number), (following, other) in pairwise(placed):
        if following.first < place.last:
            raise ToolRefused(f"hunks {number + 1} and {other + 1} of the patch change the same lines of {path}")
    edits = [(_span(ground, place, text), "".join(f"{line}\n" for line in _new(ground, place))) for place, _ in placed]
    if placed and placed[-1][0].last == len(ground.lines):
        edits[-1] = _at_end(*edits[-1], text, hunks[placed[-1][1]])
    return edits, notes


def _find(path: str, ground: Ground, hunks: Sequence[Hunk], number: int, *, exactly: bool) -> Place:
    try:
        place = find_place(ground, hunks[number], exactly=exactly)
    except ToolRefused as refused:
        which = f"hunk {number + 1} of {len(hunks)}" if len(hunks) > 1 else "the hunk"
        raise ToolRefused(f"{which} doesn't fit {path}: {refused}") from None
    ground.after, ground.shift = place.last, place.shift
    return place


def _span(ground: Ground, place: Place, text: str) -> Span:
    begin = sum(len(line) + 1 for line in ground.lines[: place.first])
    end = begin + sum(len(line) + 1 for line in ground.lines[place.first : place.last])
    return min(begin, len(text)), min(end, len(text))


def _new(ground: Ground, place: Place) -> list[str]:
    """The lines that come in place of the old ones; those that stay are the file's, not the patch's."""
    there = iter(ground.lines[place.first : place.last])
    new: list[str] = []
    for sign, line in place.core:
        kept = "" if sign == "+" else next(there)
        if sign != "-":
            new.append(kept if sign == " " else place.indents.adapt(line) if place.indents else line)
    return new


def _at_end(span: Span, new: str, text: str, hunk: Hunk) -> Edit:
    """The edit of a text's last lines: whether they end with a line end is as the hunk says, or else as it was."""
    was_open = text != "" and not text.endswith("\n")
    if was_open and span[0] == len(text):
        new = f"\n{new}"
    if hunk.new_open or (was_open and not hunk.old_open):
        new = new.removesuffix("\n")
    return span, new


def _spliced(text: str, edits: Sequence[Edit]) -> str:
    done, rest = "", 0
    for (begin, end), new in edits:
        done += text[rest:begin] + new
        rest = end
    return done + text[rest:]


def _flat(hunk: Hunk) -> Hunk:
    return replace(hunk, lines=[(sign, text.rstrip("\r")) for sign, text in hunk.lines])


def _note(place: Place, hunk: Hunk, number: int) -> str:
    """What was not as the hunk said."""
    moved = (
        f"{abs(place.shift)} {'lines' if abs(place.shift) > 1 else 'line'} {'below' if place.shift > 0 else 'above'}"
    )
    said = [f"found {moved} its number" if hunk.at is not None and place.shift else "", place.how]
    return f"hunk {number + 1}: {', '.join(filter(None, said))}" if any(said) else ""
