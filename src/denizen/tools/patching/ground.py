"""A file's lines, to find the places of hunks in."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from denizen.tools.editing.whitespace import Indents, indent_of, squeeze
from denizen.tools.patching.hunk import Hunk, Line


@dataclass(frozen=True, slots=True)
class Place:
    """Where a hunk's changed part, `core`, is: lines `first` to before `last` of the file.

    `shift` is how far below the stated number it is, `indents` how what it adds is indented there, and `how` it was
    found, if not exactly.
    """

    first: int
    last: int
    core: Sequence[Line]
    shift: int = 0
    indents: Indents | None = None
    how: str = ""


class Ground:
    """A file's lines, and where the hunk before ended and how far it was from its stated number."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.after = self.shift = 0

    @cached_property
    def stripped(self) -> list[str]:
        """The lines without white space at their end."""
        return [line.rstrip() for line in self.lines]

    @cached_property
    def squeezed(self) -> list[str]:
        """The lines with white space counted for nothing but that it is there."""
        return [squeeze(line) for line in self.lines]


def learn_indents(hunk: Hunk, there: Sequence[str | None]) -> Indents:
    """How the hunk's lines are indented where its old lines are `there` (None: unknown); first, those it removes."""
    removed = _pairs(hunk, there, "-")
    marked, unmarked = _pairs(hunk, there, " "), _pairs(hunk.unmarked, there, " ")
    return Indents([*removed, *(unmarked if _alike(unmarked) > _alike(marked) else marked)])


def _pairs(hunk: Hunk, there: Sequence[str | None], wanted: str) -> list[tuple[str, str]]:
    old = [(sign, text) for sign, text in hunk.lines if sign != "+"]
    return [(text, line) for (sign, text), line in zip(old, there, strict=False) if line is not None and sign == wanted]


def _alike(pairs: Sequence[tuple[str, str]]) -> int:
    return sum(indent_of(here) == indent_of(there) for here, there in pairs)
