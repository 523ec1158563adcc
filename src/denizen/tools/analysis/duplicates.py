"""Code that stands in several places: the same lines but for blanks, comments and imports, found in one pass."""

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from denizen.plural import counted
from denizen.tools.analysis.scope import Findings, Scope
from denizen.tools.files.text import printable

LINES = 6
"""Lines in a row that count as copied."""
MOST_PLACES = 4
"""Of one piece in a row."""
_SAYS_NOTHING = re.compile(r"\W*$|\s*(?://|#|--|\*|/\*|\"\"\")")


class Line(NamedTuple):
    """A line that says something: its number, and a checksum of its signs without blanks."""

    number: int
    sum: int


class Place(NamedTuple):
    """Where a window of lines begins: the file, and the position among its lines that say something."""

    file: int
    at: int


class Copy(NamedTuple):
    """So many lines from `start` on are the same as those from `first` on."""

    first: Place
    start: Place
    length: int


def duplicates(scope: Scope) -> Findings:
    """The longest copies, those of one original together."""
    search = _Search()
    places: dict[tuple[Place, int], list[Place]] = {}
    imports = _imports(scope)
    for file, lines in scope.measured("lines", _lines, Line):
        without = imports.get(file.path, ())
        for copy in search.copies(file.path, [line for line in lines if line.number not in without]):
            places.setdefault((copy.first, copy.length), [copy.first]).append(copy.start)
    total = sum(length * (len(found) - 1) for (_, length), found in places.items())
    findings = Findings(
        f"{counted(len(places), 'piece')} of {LINES} lines or more in several places, {counted(total, 'line')} in all"
    )
    for (_, length), found in sorted(places.items(), key=lambda each: -each[0][1] * (len(each[1]) - 1)):
        spans = [search.span(place, length) for place in found]
        row = f"{length:>4} lines  {' = '.join(spans[:MOST_PLACES])}{' = …' if len(spans) > MOST_PLACES else ''}"
        findings.add(printable(row), lines=length, places=spans)
    findings.remarks = ["lines are compared without blanks, comments and imports; copies with other names aren't seen"]
    return findings


@dataclass(slots=True)
class _Search:
    """The files so far, and the first place of every window of their lines."""

    paths: list[str] = field(default_factory=list)
    texts: list[Sequence[Line]] = field(default_factory=list)
    seen: dict[int, Place] = field(default_factory=dict)

    def copies(self, path: str, lines: Sequence[Line]) -> Iterator[Copy]:
        """What the next file has in common with those before it, and with itself."""
        self.paths.append(path)
        self.texts.append(lines)
        at = 0
        while at + LINES <= len(lines):
            here = Place(len(self.texts) - 1, at)
            first = self.seen.setdefault(hash(tuple(line.sum for line in lines[at : at + LINES])), here)
            length = self._length(first, here)
            if length >= LINES:
                yield Copy(first, here, length)
            at += max(length - LINES, 0) + 1

    def span(self, place: Place, length: int) -> str:
        """`src/store.py:10-24`."""
        lines = self.texts[place.file]
        return f"{self.paths[place.file]}:{lines[place.at].number}-{lines[place.at + length - 1].number}"

    def _length(self, first: Place, here: Place) -> int:
        """How many lines from the two places on are the same; of one file, without those that are both."""
        ours, theirs = self.texts[here.file], self.texts[first.file]
        most = min(len(ours) - here.at, len(theirs) - first.at)
        if first.file == here.file:
            most = min(most, here.at - first.at)
        length = 0
        while length < most and ours[here.at + length].sum == theirs[first.at + length].sum:
            length += 1
        return length


def _imports(scope: Scope) -> dict[str, set[int]]:
    """The lines of each file that only import something."""
    lines: dict[str, set[int]] = {}
    for mention in scope.index.references(kinds=("import", "imported"), below=scope.below):
        lines.setdefault(mention.file, set()).add(mention.reference.line)
    return lines


def _lines(source: bytes, language: str) -> list[Line]:
    lines = enumerate(source.decode(errors="replace").splitlines(), 1)
    return [
        Line(number, zlib.crc32("".join(line.split()).encode()))
        for number, line in lines
        if not _SAYS_NOTHING.match(line)
    ]
