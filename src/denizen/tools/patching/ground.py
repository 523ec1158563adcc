"""A file's lines, to find the places of hunks in."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from denizen.tools.patching.hunk import Line
from denizen.tools.whitespace import squeeze


@dataclass(frozen=True, slots=True)
class Place:
    """Where a hunk's changed part, `core`, is: lines `first` to before `last` of the file.

    `pairs` are lines of the hunk and the file's lines that they stand for, where these are not the same; `shift` is how
    far below the stated number it is; `how` it was found, if not exactly.
    """

    first: int
    last: int
    core: Sequence[Line]
    pairs: Sequence[tuple[str, str]] = ()
    shift: int = 0
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
