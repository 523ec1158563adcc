"""Applies the hunks of a patch to the text of one file.

A hunk goes where the lines that it shows are: exactly so, with other white space, or with some other lines around its
changes. Its line number only decides between several such places, and lines that it removes are never guessed.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from denizen.errors import ToolRefused
from denizen.text.plural import counted
from denizen.tools.editing.matching import Indents, indent_of, show_nearest, squeeze
from denizen.tools.editing.texts import LineEnds, Span
from denizen.tools.patching.parse import Hunk, Line

MAX_NAMED_LINES = 8  # line numbers in a message
MAX_LINE_CHARS = 200  # characters of a line in a message
_CLEARLY = 3  # how many times nearer to the stated number than any other a match must be
_LEFT_OUT = 2  # lines that the context may leave out

Edit = tuple[Span, str]  # a part of a text, and what replaces it


def apply_hunks(path: str, text: str, hunks: Sequence[Hunk]) -> tuple[str, list[str]]:
    """The text with every hunk applied, and notes on what was not as a hunk said.

    Line ends are taken literally if the patch then fits exactly; else the file's are kept. Raises ToolRefused when a
    hunk doesn't fit, or doesn't fit with the others.
    """
    if any("\r" in line for hunk in hunks for _, line in hunk.lines):
        try:
            edits, notes = _edits(path, text, hunks, exactly=True)
        except ToolRefused:
            pass  # reported below, if it doesn't fit without them either
        else:
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
    """Where a hunk's changed part, `core`, goes: lines `first` to before `last` of the file.

    `shift` is how far below the stated number it is, `indents` how lines that it adds are indented there, and `how` it
    was found, if not exactly.
    """

    first: int
    last: int
    core: Sequence[Line]
    shift: int = 0
    indents: Indents | None = None
    how: str = ""

    def note(self, hunk: Hunk, number: int) -> str:
        """What was not as the hunk said; empty where all was."""
        moved = f"found {counted(abs(self.shift), 'line')} {'below' if self.shift > 0 else 'above'} its number"
        said = [moved] if hunk.at is not None and self.shift else []
        said += [self.how] if self.how else []
        return f"hunk {number + 1}: {', '.join(said)}" if said else ""

    def new_lines(self, there: Sequence[str]) -> list[str]:
        """What replaces the lines `there`; lines that stay are the file's, not the patch's."""
        old = iter(there)
        new: list[str] = []
        for sign, line in self.core:
            kept = "" if sign == "+" else next(old)
            if sign != "-":
                new.append(kept if sign == " " else self.indents.adapt(line) if self.indents else line)
        return new


def _edits(path: str, text: str, hunks: Sequence[Hunk], *, exactly: bool) -> tuple[list[Edit], list[str]]:
    lines = text.split("\n")
    finder = _HunkFinder(lines if lines[-1] else lines[:-1])
    matches: list[tuple[HunkMatch, int]] = []
    for number, hunk in enumerate(hunks):
        try:
            matches.append((finder.find(hunk, exactly=exactly), number))
        except ToolRefused as refused:
            which = f"hunk {number + 1} of {len(hunks)}" if len(hunks) > 1 else "the hunk"
            raise ToolRefused(f"{which} doesn't fit {path}: {refused}") from None
    notes = [note for match, number in matches if (note := match.note(hunks[number], number))]
    matches.sort(key=lambda item: (item[0].first, item[0].last, item[1]))
    for (match, number), (following, other) in pairwise(matches):
        if following.first < match.last:
            raise ToolRefused(f"hunks {number + 1} and {other + 1} of the patch change the same lines of {path}")
    edits: list[Edit] = []
    for match, _ in matches:
        there = finder.lines[match.first : match.last]
        begin = sum(len(line) + 1 for line in finder.lines[: match.first])
        end = begin + sum(len(line) + 1 for line in there)
        edits.append(((min(begin, len(text)), min(end, len(text))), "".join(f"{x}\n" for x in match.new_lines(there))))
    if matches and matches[-1][0].last == len(finder.lines):
        # whether the text ends with a line end is as the hunk says, or else as it was
        (span, new), hunk = edits[-1], hunks[matches[-1][1]]
        was_open = text != "" and not text.endswith("\n")
        if was_open and span[0] == len(text):
            new = f"\n{new}"
        if hunk.new_open or (was_open and not hunk.old_open):
            new = new.removesuffix("\n")
        edits[-1] = span, new
    return edits, notes


class _HunkFinder:
    """Finds hunks in a file's lines, one after another.

    `_after` is the line after the hunk before, `_shift` how far that was from its stated number.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._after = self._shift = 0

    @cached_property
    def _squeezed(self) -> list[str]:
        """The lines with any white space as one blank."""
        return [squeeze(line) for line in self.lines]

    def find(self, hunk: Hunk, *, exactly: bool = False) -> HunkMatch:
        """Where the hunk goes. Raises ToolRefused where its lines aren't there, or more than one place fits."""
        if hunk.old:
            match = self._match(self.lines, hunk, hunk.old)
        elif hunk.at_end or not self.lines:
            match = HunkMatch(len(self.lines), len(self.lines), hunk.lines)
        else:  # it shows nothing of what is around it
            at = hunk.at and hunk.at + self._shift  # before line 1 is there, however far the others are off
            if at is None or not hunk.empty or not 0 <= at <= len(self.lines):
                raise ToolRefused("it only adds lines and doesn't show where; put lines that are there around them")
            match = HunkMatch(at, at, hunk.lines, at - (hunk.at or 0))
        if exactly and match is None:
            raise ToolRefused("it doesn't fit exactly")
        for form in (hunk, hunk.unmarked):
            stripped = [line.rstrip() for line in form.old]
            match = match or self._match([line.rstrip() for line in self.lines], form, stripped)
        if match is None and not hunk.strict:
            match = self._match(self._squeezed, hunk, [squeeze(line) for line in hunk.old])
            if match:
                start = match.first - len(hunk.split()[0])
                indents = _learn_indents(hunk, self.lines[start : start + len(hunk.old)])
                match = replace(match, indents=indents, how="ignoring white space")
            elif not self._is_applied(hunk):
                match = self._match_loosely(hunk)
        if match is None:
            gone = [text for sign, text in hunk.lines if sign == "-" and squeeze(text) not in self._squeezed]
            if gone:
                why = f"it removes {gone[0][:MAX_LINE_CHARS]!r}, which isn't there"
            elif self._is_applied(hunk):
                why = "it seems to be applied already"
            else:
                why = "its lines aren't together there"
            near = show_nearest(self.lines, hunk.old)
            raise ToolRefused(f"{why}. The nearest, with line numbers:\n{near}" if near else why)
        self._after, self._shift = match.last, match.shift
        return match

    def _match(self, keys: Sequence[str], hunk: Hunk, wanted: Sequence[str]) -> HunkMatch | None:
        """The place where the wanted lines are; None where they aren't. Raises ToolRefused where it isn't clear."""
        count = len(wanted)
        starts = [at for at, key in enumerate(keys) if key == wanted[0] and keys[at : at + count] == wanted]
        if not starts:
            return None
        start = starts[0] if len(starts) == 1 else self._choose(hunk, starts)
        if start is None:
            named = ", ".join(str(each + 1) for each in starts[:MAX_NAMED_LINES]) + ", …" * (
                len(starts) > MAX_NAMED_LINES
            )
            raise ToolRefused(f"it fits at lines {named}; add lines around it, or the right line number")
        before, core, _ = hunk.split()
        first = start + len(before)
        last = first + sum(sign != "+" for sign, _ in core)
        return HunkMatch(first, last, core, self._shift if hunk.at is None else start - hunk.at)

    def _choose(self, hunk: Hunk, starts: Sequence[int]) -> int | None:
        """Of several places the one meant: by the number, else by headings, the file's end, or the hunk before it."""
        if hunk.at is not None:
            wanted = hunk.at + self._shift
            near, next_near = sorted(starts, key=lambda start: abs(start - wanted))[:2]
            if near != next_near and _CLEARLY * abs(near - wanted) <= abs(next_near - wanted):
                return near
        below = 0  # the line after the last heading, each after the one before it; 0 where that isn't clear
        for number, heading in enumerate(map(squeeze, hunk.headings)):
            found = [at for at in range(below, len(self.lines)) if self._squeezed[at].startswith(heading)]
            if not found or (number == 0 and len(found) > 1):
                below = 0
                break
            below = found[0] + 1
        later = [start for start in starts if start >= max(self._after, below)]
        if hunk.at_end:
            later = [start for start in later if start + len(hunk.old) == len(self.lines)]
        return later[0] if later and (below or len(later) == 1) else None

    def _match_loosely(self, hunk: Hunk) -> HunkMatch | None:
        """The one place that has all lines from the first change to the last, and at least half of those that stay."""
        before, core, after = hunk.split()
        old = [(sign, squeeze(text)) for sign, text in core if sign != "+"]
        inside = sum(sign == " " and bool(key) for sign, key in old)
        above, below = _keys(before), _keys(after)
        reach_above = len(before) + _LEFT_OUT if before else 0
        reach_below = len(after) + _LEFT_OUT if after else 0
        keys, scored = self._squeezed, list[tuple[int, int]]()
        if old:  # where all old lines among the changes are
            wanted = [key for _, key in old]
            starts = [at for at in range(len(keys) - len(old) + 1) if keys[at : at + len(old)] == wanted]
        else:  # where a line around the new ones is
            last, first = squeeze(before[-1]) if before else "", squeeze(after[0]) if after else ""
            around = zip(["", *keys], [*keys, ""], strict=True)
            starts = [at for at, (x, y) in enumerate(around) if (last and x == last) or (first and y == first)]
        for at in starts:
            end = at + len(old)
            stay = _common(above, keys[max(at - reach_above, 0) : at]) + _common(below, keys[end : end + reach_below])
            scored.append((inside + stay, at))
        score, at = max(scored, default=(0, 0))
        most = len(above) + len(below) + inside
        if 2 * score < max(most, 1) or [each for each, _ in scored].count(score) > 1:
            return None
        end = at + len(old)
        near = {squeeze(line): line for line in self.lines[max(at - reach_above, 0) : end + reach_below]}
        there = [*map(near.get, map(squeeze, before)), *self.lines[at:end], *map(near.get, map(squeeze, after))]
        shift = self._shift if hunk.at is None else at - len(before) - hunk.at
        how = "with other lines around it than the patch shows"
        return HunkMatch(at, end, core, shift, _learn_indents(hunk, there), how)

    def _is_applied(self, hunk: Hunk) -> bool:
        new = [squeeze(line) for line in hunk.new]
        return bool(new) and any(self._squeezed[at : at + len(new)] == new for at in range(len(self.lines)))


def _learn_indents(hunk: Hunk, there: Sequence[str | None]) -> Indents:
    """How the hunk's lines are indented where its old lines are `there` (None: unknown); first, those it removes."""

    def pairs(form: Hunk, wanted: str) -> list[tuple[str, str]]:
        old = [(sign, text) for sign, text in form.lines if sign != "+"]
        both = zip(old, there, strict=False)
        return [(text, line) for (sign, text), line in both if line is not None and sign == wanted]

    def same(some: Sequence[tuple[str, str]]) -> int:
        return sum(indent_of(here) == indent_of(line) for here, line in some)

    marked, unmarked = pairs(hunk, " "), pairs(hunk.unmarked, " ")
    return Indents([*pairs(hunk, "-"), *(unmarked if same(unmarked) > same(marked) else marked)])


def _keys(lines: Sequence[str]) -> list[str]:
    return [key for line in lines if (key := squeeze(line))]


def _common(wanted: Sequence[str], there: Sequence[str]) -> int:
    """How many of the lines are there, in their order."""
    blocks = difflib.SequenceMatcher(None, wanted, [key for key in there if key], autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks)
