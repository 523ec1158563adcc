"""Reading one hunk of a patch, whatever its header says."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

Line = tuple[str, str]
"""A line of a hunk: ` `, `-` or `+`, and its text."""

_HEADER = re.compile(r"@@\s*(?:-(\d+)(?:,(\d+))?(?:\s+\+(\d+)(?:,(\d+))?)?\s*(?:@@)?)?(.*)")
_SIGNATURE = re.compile(r"\d+\.\d+[\w.]*\s*$")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One change: lines that stay, go and come.

    `at` is the stated number of lines before it (None: none is stated), and `empty` says that it is stated to stand
    between lines. `within` are lines that it is said to be behind, and `at_end` says that it is at the file's end.
    `old_open` and `new_open`: the last line has no line end. `bare` are the context lines that came without the blank
    in front which marks them.
    """

    lines: Sequence[Line]
    at: int | None = None
    empty: bool = False
    within: Sequence[str] = ()
    at_end: bool = False
    old_open: bool = False
    new_open: bool = False
    bare: frozenset[int] = frozenset()

    @property
    def old(self) -> list[str]:
        """The lines that must be there."""
        return [text for sign, text in self.lines if sign != "+"]

    @property
    def new(self) -> list[str]:
        """The lines that it leaves."""
        return [text for sign, text in self.lines if sign != "-"]

    @property
    def strict(self) -> bool:
        """Whether some of its context may be no context at all, but prose."""
        return any(self.lines[number][1].strip() for number in self.bare)

    @property
    def unmarked(self) -> "Hunk":
        """The hunk as it is meant when all its context lines lack their mark, and a blank in front is their own."""
        whole = [
            (sign, f" {text}") if sign == " " and number not in self.bare else (sign, text)
            for number, (sign, text) in enumerate(self.lines)
        ]
        return replace(self, lines=whole)

    def split(self) -> tuple[list[str], list[Line], list[str]]:
        """The lines before the first change, those up to the last one, and those behind it."""
        changed = [number for number, (sign, _) in enumerate(self.lines) if sign != " "]
        first, last = changed[0], changed[-1] + 1
        before, behind = self.lines[:first], self.lines[last:]
        return [text for _, text in before], [*self.lines[first:last]], [text for _, text in behind]


def read_hunk(lines: Sequence[str], at: int, within: Sequence[str] = ()) -> tuple[Hunk, int]:
    """The hunk that begins at `lines[at]`, with its header or without, and where it ends."""
    header = _HEADER.match(lines[at])
    if header is None:
        end = _to_next(lines, at)
        return replace(_parse(lines, at, end), within=within), end
    start, old, _, new, rest = header.groups()
    heading = rest.strip().removesuffix("@@").strip(" .")
    end = _counted(lines, at + 1, int(old or 1), int(new or 1)) if start else None
    end = end or _to_next(lines, at + 1)
    hunk = replace(_parse(lines, at + 1, end), within=[*within, heading] if heading else within)
    if start:
        empty = old == "0"
        hunk = replace(hunk, at=max(int(start) - (not empty), 0), empty=empty)
    return hunk, end


def begins_something(lines: Sequence[str], at: int) -> bool:
    """Whether a line begins a hunk, a file, or what comes after a patch."""
    line = lines[at]
    if line.startswith(("@@", "diff --git ", "*** ", "Index: ")) or names_file(lines, at):
        return True
    return line.rstrip() == "--" and at + 1 < len(lines) and bool(_SIGNATURE.match(lines[at + 1]))


def names_file(lines: Sequence[str], at: int) -> bool:
    """Whether `---` and `+++`, or one of them right before a hunk, name a file here."""
    following = lines[at + 1] if at + 1 < len(lines) else ""
    if lines[at].startswith("--- "):
        return following.startswith(("+++ ", "@@"))
    return lines[at].startswith("+++ ") and following.startswith("@@")


def _counted(lines: Sequence[str], at: int, old: int, new: int) -> int | None:
    """Where the hunk ends by its counts; None where they can't be right."""
    while (old > 0 or new > 0) and at < len(lines):
        sign = lines[at][:1] or " "
        if sign not in " +-\\":
            return None
        old -= sign in " -"
        new -= sign in " +"
        at += 1
    while at < len(lines) and lines[at].startswith("\\"):
        at += 1
    return at if old == new == 0 and _is_end(lines, at) else None


def _is_end(lines: Sequence[str], at: int) -> bool:
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at == len(lines) or lines[at][0] not in " +-\\" or begins_something(lines, at)


def _to_next(lines: Sequence[str], at: int) -> int:
    while at < len(lines) and not begins_something(lines, at):
        at += 1
    return at


def _parse(lines: Sequence[str], at: int, end: int) -> Hunk:
    parsed: list[Line] = []
    opened: set[str] = set()
    bare: set[int] = set()
    within = end < len(lines) and lines[end].startswith("*** ")  # prose comes behind such a patch, not in it
    for line in _without_tail(lines[at:end], prose=not within):
        if line.startswith("\\"):
            opened.add(parsed[-1][0] if parsed else "")
        elif line.startswith((" ", "+", "-")):
            parsed.append((line[0], line[1:]))
        else:
            bare.add(len(parsed))
            parsed.append((" ", line))
    at_end = end < len(lines) and lines[end].startswith("*** End of File")
    old_open, new_open = bool(opened & {" ", "-"}), bool(opened & {" ", "+"})
    return Hunk(parsed, at_end=at_end, old_open=old_open, new_open=new_open, bare=frozenset(bare))


def _without_tail(body: Sequence[str], *, prose: bool) -> Sequence[str]:
    """The body without blank lines at its end, and without prose, where there may be some: or context, not needed."""
    end = len(body)
    while end and not body[end - 1].startswith((" ", "+", "-", "\\")) and (prose or not body[end - 1].strip()):
        end -= 1
    return body[:end]
