"""Finds text that is written a little differently: other white space, indentation, quotes or dashes."""

import difflib
import heapq
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import accumulate

from denizen.tools.files.text import readable

MAX_SHOWN_LINES = 12  # lines of the nearest part that are shown
MAX_LINE_CHARS = 200  # characters of each of them
_MAX_SEARCHED_LINES = 5_000  # lines compared character by character when no line is the same
_MAX_ALIGNED_PAIRS = 4_000_000  # pairs of characters that are compared
_LOOK_ALIKE = str.maketrans(
    "\u2018\u2019\u201a\u201b\u2032"
    "\u201c\u201d\u201e\u201f\u2033"
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
    "\u00a0\u2002\u2003\u2007\u2009\u202f",
    "'" * 5 + '"' * 5 + "-" * 7 + " " * 6,
)
_NO_WIDTH = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))


def plain_quotes(text: str) -> str:
    """The text, as long as it is, with plain quotes, dashes and blanks in place of typographic ones."""
    return text.translate(_LOOK_ALIKE)


def keep_quotes(there: str, old: str, new: str) -> str:
    """The new text with the quotes and dashes of `there` (which is `old` in other characters) where they agree."""
    if len(old) * len(new) > _MAX_ALIGNED_PAIRS:
        return new
    steps = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return "".join(there[a:b] if what == "equal" else new[c:d] for what, a, b, c, d in steps)


def squeeze(line: str) -> str:
    """The line with any white space as one blank, and with plain quotes and dashes."""
    if not line.isascii():
        line = unicodedata.normalize("NFC", plain_quotes(line).translate(_NO_WIDTH))
    return " ".join(line.split())


def indent_of(line: str) -> str:
    """The white space that the line begins with."""
    return line[: len(line) - len(line.lstrip())]


def find_loosely(lines: Sequence[str], wanted: Sequence[str]) -> list[tuple[int, int]]:
    """Where `wanted` is in `lines`, as ranges of lines, ignoring white space and blank lines between."""
    want = [key for line in wanted if (key := squeeze(line))]
    numbers = [number for number, line in enumerate(lines) if line.strip()]
    keys = [squeeze(lines[number]) for number in numbers]
    starts = [at for at, key in enumerate(keys) if want and key == want[0] and keys[at : at + len(want)] == want]
    return [(numbers[at], numbers[at + len(want) - 1] + 1) for at in starts]


def reindented(there: Sequence[str], wanted: Sequence[str], new: Sequence[str]) -> list[str]:
    """The new lines indented as `there`, where `wanted` was found; lines that stay are left as they are there."""
    pairs = list(zip(filter(str.strip, wanted), filter(str.strip, there), strict=True))
    numbers = [number for number, line in enumerate(wanted) if line.strip()]
    as_it_is = {number: line for number, (_, line) in zip(numbers, pairs, strict=True)}
    indents = Indents(pairs)
    placed: list[str] = []
    for what, first, last, begin, end in difflib.SequenceMatcher(None, wanted, new, autojunk=False).get_opcodes():
        if what == "equal":
            placed += [as_it_is.get(number, wanted[number]) for number in range(first, last)]
        else:
            placed += map(indents.adapt, new[begin:end])
    return placed


class Indents:
    """How a text's indentation is written elsewhere, learned from pairs of the same line here and there."""

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
            there = self._known[base] + self._converted(indent[len(base) :])
        else:  # it is further left than every known one
            least = min(self._known, key=len, default=indent)
            there = self._known.get(least, least)
            there = there[: max(len(there) - len(self._converted(least[len(indent) :])), 0)]
        return there + line[len(indent) :]

    def _converted(self, more: str) -> str:
        """Further indentation, in tabs where there are tabs there, and in spaces where there are spaces."""
        for here, there in self._known.items():
            if set(here) == {" "} and set(there) == {"\t"}:
                return more.replace(" " * (len(here) // len(there) or 1), "\t")
            if set(here) == {"\t"} and set(there) == {" "}:
                return more.replace("\t", " " * (len(there) // len(here) or 1))
        return more


def show_nearest(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """The lines most like `wanted`, numbered, for an error; empty when nothing is like it."""
    keys = [squeeze(line) for line in lines]
    want = [key for line in wanted if (key := squeeze(line))]
    if not want:
        return ""
    known = set(want)
    hits = [0, *accumulate(key in known for key in keys)]
    if hits[-1]:  # the part of that length with the most wanted lines; of the best five, the most similar
        starts = range(len(keys))
        best = heapq.nlargest(5, starts, key=lambda at: hits[min(at + len(want), len(keys))] - hits[at])
        similar = difflib.SequenceMatcher(None, b="\n".join(want))

        def similarity(at: int) -> float:
            similar.set_seq1("\n".join(keys[at : at + len(want)]))
            return similar.ratio()

        first = max(best, key=similarity)
    else:  # the line that is most like the longest of the wanted ones
        longest = max(want, key=len)
        near = difflib.get_close_matches(longest, dict.fromkeys(keys[:_MAX_SEARCHED_LINES]), 1, 0.5)
        if not near:
            return ""
        first = max(keys.index(near[0]) - want.index(longest), 0)
    last = min(first + min(max(len(wanted), 3), MAX_SHOWN_LINES), len(lines))
    shown = "\n".join(f"{number + 1}\t{lines[number][:MAX_LINE_CHARS]}" for number in range(first, last))
    return readable(shown)[0]
