"""Finding lines where white space is written differently, and putting lines in their place indented as they are."""

import unicodedata
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from denizen.tools.editing.signs import plain_signs, without_unseen

Lines = tuple[int, int]
"""The first line of a part, and the one behind its last."""


def squeeze(line: str) -> str:
    """The line with white space counted for nothing but that it is there, and quotes and dashes for one kind."""
    if not line.isascii():
        line = unicodedata.normalize("NFC", without_unseen(plain_signs(line)))
    return " ".join(line.split())


def find_loosely(lines: Sequence[str], wanted: Sequence[str]) -> list[Lines]:
    """Where `wanted` is in `lines`, however it is indented and spaced and with any blank lines between."""
    want = [key for line in wanted if (key := squeeze(line))]
    numbers = [number for number, line in enumerate(lines) if line.strip()]
    keys = [squeeze(lines[number]) for number in numbers]
    if not want:
        return []
    starts = [at for at, key in enumerate(keys) if key == want[0] and keys[at : at + len(want)] == want]
    return [(numbers[at], numbers[at + len(want) - 1] + 1) for at in starts]


def indent_of(line: str) -> str:
    """The white space that the line begins with."""
    return line[: len(line) - len(line.lstrip())]


def put_in_place(there: Sequence[str], wanted: Sequence[str], new: Sequence[str]) -> list[str]:
    """The new lines as they would stand `there`, which is `wanted` in another form; what stays is as it is there."""
    pairs = list(zip(filter(str.strip, wanted), filter(str.strip, there), strict=True))
    numbers = [number for number, line in enumerate(wanted) if line.strip()]
    as_it_is = {number: line for number, (_, line) in zip(numbers, pairs, strict=True)}
    indents = Indents(pairs)
    placed: list[str] = []
    for what, first, last, begin, end in SequenceMatcher(None, wanted, new, autojunk=False).get_opcodes():
        if what == "equal":
            placed += [as_it_is.get(number, wanted[number]) for number in range(first, last)]
        else:
            placed += map(indents.adapt, new[begin:end])
    return placed


class Indents:
    """How a text's indentation is written elsewhere, learnt from pairs of the same line here and there."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._known: dict[str, str] = {}
        for here, there in pairs:
            if here.strip():
                self._known.setdefault(indent_of(here), indent_of(there))

    def adapt(self, line: str) -> str:
        """The line, indented as it would be there."""
        if not line.strip():
            return line
        indent = indent_of(line)
        bases = [known for known in self._known if indent.startswith(known)]
        if bases:
            base = max(bases, key=len)
            there = self._known[base] + self._written_there(indent[len(base) :])
        else:
            there = self._outdented(indent)
        return there + line[len(indent) :]

    def _outdented(self, indent: str) -> str:
        """Of a line that stands further left than every known one."""
        least = min(self._known, key=len, default=indent)
        there = self._known.get(least, least)
        missing = self._written_there(least[len(indent) :])
        return there[: max(len(there) - len(missing), 0)]

    def _written_there(self, more: str) -> str:
        """Further indentation, in tabs where it is in tabs there, and in spaces where it is in spaces."""
        for here, there in self._known.items():
            if set(here) == {" "} and set(there) == {"\t"}:
                return more.replace(" " * (len(here) // len(there) or 1), "\t")
            if set(here) == {"\t"} and set(there) == {" "}:
                return more.replace("\t", " " * (len(there) // len(here) or 1))
        return more
