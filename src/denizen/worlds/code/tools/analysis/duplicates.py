"""`analyze duplicates`: the same lines in several places, ignoring blanks, comments and imports, found in one pass."""

import re
import zlib
from collections.abc import Sequence
from itertools import compress, islice
from typing import NamedTuple

from denizen.text.plural import counted
from denizen.tools.files.text import printable
from denizen.worlds.code.tools.analysis.scope import Findings, Scope

MIN_LINES = 6  # consecutive lines that count as copied
MAX_PLACES = 4  # places of one piece in a row
_NO_CODE = re.compile(r"\W*$|\s*(?://|#|--|\*|/\*|\"\"\")")


class _File(NamedTuple):
    """The lines of a file that hold code: their numbers, and their checksums without blanks."""

    path: str
    numbers: Sequence[int]
    sums: Sequence[int]

    def span(self, start: int, length: int) -> str:
        """`src/store.py:10-24`."""
        return f"{self.path}:{self.numbers[start]}-{self.numbers[start + length - 1]}"


def duplicates(scope: Scope) -> Findings:
    """The longest copies first, with all copies of one original together."""
    imports: dict[str, set[int]] = {}
    for path, line in scope.index.reference_lines(kinds=("import", "imported"), below=scope.below):
        imports.setdefault(path, set()).add(line)
    seen: dict[int, tuple[_File, int]] = {}  # the first place of each window of lines, by its hash
    places: dict[tuple[str, int], list[str]] = {}
    for file, sums in scope.measured("checksums", _checksums, int):
        for line in imports.get(file.path, ()):
            sums[line - 1 : line] = [0] if line <= len(sums) else []
        here = _File(file.path, [*compress(range(1, len(sums) + 1), sums)], [*filter(None, sums)])
        windows = zip(*(islice(here.sums, start, None) for start in range(MIN_LINES)), strict=False)
        resume = 0  # after the copy found last
        for at, window in enumerate(map(hash, windows)):
            if at < resume:
                continue
            first, start = seen.setdefault(window, (here, at))
            if first is not here or start != at:
                most = len(here.sums) - at  # in one file, without overlapping
                most = min(most, at - start if first is here else len(first.sums) - start)
                length = 0
                while length < most and here.sums[at + length] == first.sums[start + length]:
                    length += 1
                if length >= MIN_LINES:
                    original = first.span(start, length)
                    places.setdefault((original, length), [original]).append(here.span(at, length))
                    resume = at + length - MIN_LINES + 1
    total = sum(length * (len(spans) - 1) for (_, length), spans in places.items())
    findings = Findings(
        f"{counted(len(places), 'piece')} of {MIN_LINES} lines or more in several places, "
        f"{counted(total, 'line')} in all"
    )
    for (_, length), spans in sorted(places.items(), key=lambda each: -each[0][1] * (len(each[1]) - 1)):
        row = f"{length:>4} lines  {' = '.join(spans[:MAX_PLACES])}{' = …' if len(spans) > MAX_PLACES else ''}"
        findings.add(printable(row), lines=length, places=spans)
    findings.remarks = ["compared without blanks, comments and imports; copies with renamed variables aren't found"]
    return findings


def _checksums(source: bytes, language: str) -> list[int]:
    """A checksum of each line without its blanks; 0 for a line without code."""
    lines = source.decode(errors="replace").splitlines()
    return [0 if _NO_CODE.match(line) else zlib.crc32("".join(line.split()).encode()) for line in lines]
