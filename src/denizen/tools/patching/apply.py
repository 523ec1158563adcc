"""Applies the hunks of a patch to the text of one file.

A hunk goes where the lines that it shows are: exactly so, with other white space, or with some other lines around its
changes. Its line number only decides between several such places, and lines that it removes are never guessed.
"""

import difflib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

from denizen.errors import ToolRefused
from denizen.text.plural import counted
from denizen.tools.editing.matching import Indents, indent_of, show_nearest, squeeze
from denizen.tools.editing.texts import LineEnds, Span
from denizen.tools.patching.parse import Hunk

MAX_NAMED_LINES = 8  # line numbers in a message
MAX_LINE_CHARS = 200  # of a line in a message
NEARER_FACTOR = 3  # the match meant by a line number is this many times nearer to it than any other
MAX_LEFT_OUT = 2  # lines that the context may leave out

Edit = tuple[Span, str]  # a part of a text, and what replaces it


def apply_hunks(path: str, text: str, hunks: Sequence[Hunk]) -> tuple[str, list[str]]:
    """The text with every hunk applied, and notes on what was not as a hunk said.

    Line ends are taken literally if the patch then fits exactly; else the file's are kept. Raises ToolRefused when a
    hunk doesn't fit, or doesn't fit with the others.
    """
    if any("\r" in line for hunk in hunks for _, line in hunk.lines):
        with suppress(ToolRefused):  # reported below, if it doesn't fit without them either
            edits, notes = _edits(path, text, hunks, exactly=True)
            for (begin, end), new in reversed(edits):
                text = text[:begin] + new + text[end:]
            return text, notes
    line_ends = LineEnds(text)
    plain = [replace(hunk, lines=[(sign, line.rstrip("\r")) for sign, line in hunk.lines]) for hunk in hunks]
    edits, notes = _edits(path, line_ends.text, plain, exactly=False)
    return line_ends.replace(edits), notes


def create_text(path: str, hunks: Sequence[Hunk]) -> str:
    """The text of a new file. Raises ToolRefused for a hunk that needs an old one."""
    lines: list[str] = []
    for sign, line in (line for hunk in hunks for line in hunk.lines):
        if sign == "-" or (sign == " " and line.strip()):
            raise ToolRefused(
                f"{path} is to be created, but the patch shows {line!r} as there already: begin new lines with +"
            )
        lines.append(line)
    return "\n".join(lines) + ("\n" if lines and not hunks[-1].new_open else "")


@dataclass(frozen=True, slots=True)
class HunkMatch:
    """Where a hunk goes: the part from its first change to its last replaces lines `first` to before `last`.

    `shift` is the number of lines from the stated place down to this one, `indents` how added lines are indented here,
    and `how` says how it was found, if not exactly.
    """

    hunk: Hunk
    first: int
    last: int
    shift: int = 0
    indents: Indents | None = None
    how: str = ""

    @property
    def deviation(self) -> str:
        """How the match differs from the hunk; empty: it doesn't."""
        found: list[str] = []
        if self.hunk.at is not None and self.shift:
            direction = "below" if self.shift > 0 else "above"
            found.append(f"found {counted(abs(self.shift), 'line')} {direction} its number")
        if self.how:
            found.append(self.how)
        return ", ".join(found)

    def new_lines(self, there: Sequence[str]) -> list[str]:
        """The lines that replace `there`; those that stay are the file's, not the patch's."""
        old = iter(there)
        new: list[str] = []
        for sign, line in self.hunk.split()[1]:
            if sign == "+":
                new.append(self.indents.adapt(line) if self.indents else line)
                continue
            kept = next(old)
            if sign == " ":
                new.append(kept)
        return new


def _edits(path: str, text: str, hunks: Sequence[Hunk], *, exactly: bool) -> tuple[list[Edit], list[str]]:
    """The edits that the hunks make, in the order of the text, and notes on what was not as a hunk said."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    matches = _find_all(path, lines, hunks, exactly=exactly)
    notes = [f"hunk {number}: {match.deviation}" for number, match in matches if match.deviation]
    matches.sort(key=lambda numbered: (numbered[1].first, numbered[1].last, numbered[0]))
    for (number, match), (other, following) in pairwise(matches):
        if following.first < match.last:
            raise ToolRefused(f"hunks {number} and {other} of the patch change the same lines of {path}")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]  # of each line, and the end of the last
    edits: list[Edit] = []
    for _, match in matches:
        new = "".join(f"{line}\n" for line in match.new_lines(lines[match.first : match.last]))
        edits.append(((min(starts[match.first], len(text)), min(starts[match.last], len(text))), new))
    if matches and matches[-1][1].last == len(lines):
        edits[-1] = _at_end(text, edits[-1], matches[-1][1].hunk)
    return edits, notes


def _find_all(path: str, lines: Sequence[str], hunks: Sequence[Hunk], *, exactly: bool) -> list[tuple[int, HunkMatch]]:
    """The hunks' numbers, from 1, and places. Raises ToolRefused for the first that doesn't fit."""
    finder = _HunkFinder(lines)
    matches: list[tuple[int, HunkMatch]] = []
    for number, hunk in enumerate(hunks, 1):
        try:
            matches.append((number, finder.find(hunk, exactly=exactly)))
        except ToolRefused as refused:
            which = f"hunk {number} of {len(hunks)}" if len(hunks) > 1 else "the hunk"
            raise ToolRefused(f"{which} doesn't fit {path}: {refused}") from None
    return matches


def _at_end(text: str, edit: Edit, hunk: Hunk) -> Edit:
    """The edit at the end of a text, which ends with a line end if the hunk says so, or else if it did before."""
    span, new = edit
    was_open = text != "" and not text.endswith("\n")
    if was_open and span[0] == len(text):
        new = f"\n{new}"
    if hunk.new_open or (was_open and not hunk.old_open):
        new = new.removesuffix("\n")
    return span, new


class _HunkFinder:
    """Finds hunks in a file's lines, one after another.

    `_after` is the line after the hunk before, `_shift` how far that was from its stated number.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._after = self._shift = 0

    @cached_property
    def _squeezed(self) -> list[str]:
        """The lines with any white space as one blank."""
        return [squeeze(line) for line in self._lines]

    def find(self, hunk: Hunk, *, exactly: bool) -> HunkMatch:
        """Where the hunk goes. Raises ToolRefused if its lines aren't there, or more than one place fits."""
        match = self._find_lines(self._lines, hunk, hunk.old) if hunk.old else self._find_insertion(hunk)
        if match is None:
            match = None if exactly else self._find_loosely(hunk)
        if match is None:
            raise ToolRefused(self._why_not(hunk))
        self._after, self._shift = match.last, match.shift
        return match

    def _find_insertion(self, hunk: Hunk) -> HunkMatch:
        """Where a hunk goes that shows no line of the file: at the end, or at its number if the header proves it."""
        if hunk.at_end or not self._lines:
            return HunkMatch(hunk, len(self._lines), len(self._lines))
        if hunk.at is not None and hunk.empty:
            at = hunk.at + self._shift if hunk.at else 0  # before line 1 stays there, whatever the others' offset
            if 0 <= at <= len(self._lines):
                return HunkMatch(hunk, at, at, at - hunk.at)
        raise ToolRefused("it only adds lines and doesn't show where: put unchanged lines around them")

    def _find_loosely(self, hunk: Hunk) -> HunkMatch | None:
        """The place where it fits except for white space, or for some lines around its changes."""
        stripped = [line.rstrip() for line in self._lines]
        for form in (hunk, hunk.unmarked):
            if match := self._find_lines(stripped, hunk, [line.rstrip() for line in form.old]):
                return match
        if hunk.strict:
            return None
        if match := self._find_lines(self._squeezed, hunk, [squeeze(line) for line in hunk.old]):
            start = match.first - len(hunk.split()[0])
            indents = _learn_indents(hunk, self._lines[start : start + len(hunk.old)])
            return replace(match, indents=indents, how="ignoring white space")
        return None if self._is_applied(hunk) else self._find_core(hunk)

    def _find_lines(self, keys: Sequence[str], hunk: Hunk, wanted: Sequence[str]) -> HunkMatch | None:
        """The place where the wanted lines are, or None. Raises ToolRefused if several places fit equally well."""
        starts = _starts_of(wanted, keys)
        if not starts:
            return None
        start = starts[0] if len(starts) == 1 else self._choose(hunk, starts)
        if start is None:
            named = ", ".join(str(each + 1) for each in starts[:MAX_NAMED_LINES])
            named += ", …" if len(starts) > MAX_NAMED_LINES else ""
            raise ToolRefused(f"it fits at lines {named}; add lines around it, or the right line number")
        before, core, _ = hunk.split()
        first = start + len(before)
        return HunkMatch(hunk, first, first + sum(sign != "+" for sign, _ in core), self._shift_of(hunk, start))

    def _shift_of(self, hunk: Hunk, start: int) -> int:
        return self._shift if hunk.at is None else start - hunk.at

    def _choose(self, hunk: Hunk, starts: Sequence[int]) -> int | None:
        """Of several places the one meant: by the number, else by headings, the file's end, or the hunk before it."""
        if hunk.at is not None:
            stated = hunk.at + self._shift
            near, next_near = sorted(starts, key=lambda start: abs(start - stated))[:2]
            if near != next_near and NEARER_FACTOR * abs(near - stated) <= abs(next_near - stated):
                return near
        below = self._below_headings(hunk)
        later = [start for start in starts if start >= max(self._after, below or 0)]
        if hunk.at_end:
            later = [start for start in later if start + len(hunk.old) == len(self._lines)]
        return later[0] if later and (below is not None or len(later) == 1) else None

    def _below_headings(self, hunk: Hunk) -> int | None:
        """The line after the last heading, each below the one before it; None if there is none, or it isn't clear."""
        below: int | None = None
        for heading in map(squeeze, hunk.headings):
            found = [at for at in range(below or 0, len(self._lines)) if self._squeezed[at].startswith(heading)]
            if not found or (below is None and len(found) > 1):
                return None
            below = found[0] + 1
        return below

    def _find_core(self, hunk: Hunk) -> HunkMatch | None:
        """The one place that has all lines from the first change to the last, and at least half of those that stay."""
        before, core, after = hunk.split()
        old = [(sign, squeeze(text)) for sign, text in core if sign != "+"]
        inside = sum(sign == " " and bool(key) for sign, key in old)
        above, below = _keys(before), _keys(after)
        reach_above = len(before) + MAX_LEFT_OUT if before else 0
        reach_below = len(after) + MAX_LEFT_OUT if after else 0
        scores: dict[int, int] = {}  # of each place, how many of the lines that stay are there
        for at in _starts_of([key for _, key in old], self._squeezed) if old else self._beside(before, after):
            end = at + len(old)
            found_above = _common(above, self._squeezed[max(at - reach_above, 0) : at])
            found_below = _common(below, self._squeezed[end : end + reach_below])
            scores[at] = inside + found_above + found_below
        best = max(scores.values(), default=0)
        places = [at for at, score in scores.items() if score == best]
        if len(places) != 1 or best == 0 or 2 * best < len(above) + len(below) + inside:
            return None
        at, end = places[0], places[0] + len(old)
        near = {squeeze(line): line for line in self._lines[max(at - reach_above, 0) : end + reach_below]}
        there = [*map(near.get, map(squeeze, before)), *self._lines[at:end], *map(near.get, map(squeeze, after))]
        how = "with other lines around it than the patch shows"
        return HunkMatch(hunk, at, end, self._shift_of(hunk, at - len(before)), _learn_indents(hunk, there), how)

    def _beside(self, before: Sequence[str], after: Sequence[str]) -> list[int]:
        """The places below the line that is directly above new ones, or above the line directly below them."""
        last = squeeze(before[-1]) if before else ""
        first = squeeze(after[0]) if after else ""
        places: list[int] = []
        for at, (above, below) in enumerate(pairwise(["", *self._squeezed, ""])):
            if (last and above == last) or (first and below == first):
                places.append(at)
        return places

    def _is_applied(self, hunk: Hunk) -> bool:
        return bool(hunk.new) and bool(_starts_of([squeeze(line) for line in hunk.new], self._squeezed))

    def _why_not(self, hunk: Hunk) -> str:
        """Why it doesn't fit, and the lines that are most like its own."""
        gone = [text for sign, text in hunk.lines if sign == "-" and squeeze(text) not in self._squeezed]
        if gone:
            why = f"it removes {gone[0][:MAX_LINE_CHARS]!r}, which isn't there"
        elif self._is_applied(hunk):
            why = "it seems to be applied already"
        else:
            why = "its lines aren't together there"
        near = show_nearest(self._lines, hunk.old)
        return f"{why}. The nearest, with line numbers:\n{near}" if near else why


def _starts_of(wanted: Sequence[str], keys: Sequence[str]) -> list[int]:
    """Where the wanted lines begin, wherever they follow each other."""
    first, count = wanted[0], len(wanted)
    return [at for at, key in enumerate(keys) if key == first and keys[at : at + count] == wanted]


def _learn_indents(hunk: Hunk, there: Sequence[str | None]) -> Indents:
    """How the hunk's lines are indented where its old lines are `there` (None: unknown); first, those it removes."""

    def pairs(form: Hunk, wanted: str) -> list[tuple[str, str]]:
        old = [(sign, text) for sign, text in form.lines if sign != "+"]
        both = zip(old, there, strict=False)
        return [(text, line) for (sign, text), line in both if line is not None and sign == wanted]

    def agreeing(form: Hunk) -> int:
        return sum(indent_of(here) == indent_of(line) for here, line in pairs(form, " "))

    likelier = hunk.unmarked if agreeing(hunk.unmarked) > agreeing(hunk) else hunk
    return Indents([*pairs(hunk, "-"), *pairs(likelier, " ")])


def _keys(lines: Sequence[str]) -> list[str]:
    return [key for line in lines if (key := squeeze(line))]


def _common(wanted: Sequence[str], there: Sequence[str]) -> int:
    """How many of the lines are there, in their order."""
    blocks = difflib.SequenceMatcher(None, wanted, [key for key in there if key], autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks)
