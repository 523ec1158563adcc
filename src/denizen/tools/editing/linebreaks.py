"""A text as if all its lines ended with LF, and the way back to the line ends that it really has."""

from bisect import bisect_left
from collections.abc import Iterable

Span = tuple[int, int]
"""Where a part of a text begins and ends."""


class Flat:
    """`text` is the original with LF for every CRLF."""

    def __init__(self, original: str) -> None:
        self._original = original
        self.text = original.replace("\r\n", "\n")
        self._returns = self._find_returns() if len(self.text) < len(original) else []

    def replace(self, edits: Iterable[tuple[Span, str]]) -> str:
        """The original with spans of `text`, in order and apart from each other, replaced by new texts.

        A new text gets the line ends of its place; everything else stays as it was.
        """
        done: list[str] = []
        rest = 0
        for (begin, end), new in edits:
            start = self._back(begin)
            done += [self._original[rest:start], new.replace("\n", self._line_end(start))]
            rest = self._back(end)
        return "".join([*done, self._original[rest:]])

    def _find_returns(self) -> list[int]:
        """Where in `text` are the line ends that were CRLF."""
        found: list[int] = []
        at = self._original.find("\r\n")
        while at >= 0:
            found.append(at - len(found))
            at = self._original.find("\r\n", at + 2)
        return found

    def _back(self, at: int) -> int:
        return at + bisect_left(self._returns, at)

    def _line_end(self, at: int) -> str:
        """The line end at a place of the original, or else the one before it."""
        found = self._original.find("\n", at)
        if found < 0:
            found = self._original.rfind("\n")
        return "\r\n" if self._original[max(found - 1, 0) : found] == "\r" else "\n"
