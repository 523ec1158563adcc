"""Printing above a prompt that stays at the bottom of the screen."""

import io
from collections.abc import Callable
from typing import TextIO


class Page:
    """What was printed and is not on the screen yet; `changed` is told when there is more.

    `unfinished` is a line that has no end yet.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self.unfinished = ""
        self._changed = changed
        self._lines: list[tuple[TextIO, str]] = []

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, stream: TextIO, text: str) -> None:
        """Print that to the stream, as soon as its line is whole."""
        lines, end, self.unfinished = (self.unfinished + text).rpartition("\n")
        if end:
            self._lines.append((stream, lines + end))
        self._changed()

    def write(self) -> None:
        """Write the whole lines."""
        for stream, text in self._lines:
            stream.write(text)
            stream.flush()
        self._lines.clear()


class Above(io.TextIOBase):
    """Stands in for a terminal's stream, and prints to a page."""

    def __init__(self, stream: TextIO, page: Page) -> None:
        self._stream = stream
        self._page = page

    def fileno(self) -> int:
        """The stream's."""
        return self._stream.fileno()

    def isatty(self) -> bool:
        """Whether the stream ends at a terminal."""
        return self._stream.isatty()

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, text: str) -> int:
        """Print it."""
        self._page.add(self._stream, text)
        return len(text)
