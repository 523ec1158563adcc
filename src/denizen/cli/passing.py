"""The line at the bottom of the screen that says what is going on now."""

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Protocol

from denizen.cli.text import cut, one_line, width
from denizen.clock import Clock

UNLIMITED = 100_000

SHORT = 30
"""Cells of a call that stand before what it prints, or how it ended."""


class Status(Protocol):
    """Where what is going on is shown."""

    def show(self, text: str, since: float) -> None:
        """Show what has been going on `since` a time of the clock's stopwatch."""
        ...

    def preview(self, lines: Sequence[str]) -> None:
        """Show lines that are to be replaced, none wider than the terminal."""
        ...

    def clear(self) -> None:
        """Take it away."""
        ...


class Passing:
    """Lines on standard error that the next ones replace: what is going on, and for how long. Only on a terminal.

    Where it isn't `wanted`, only previews are shown.
    """

    def __init__(self, clock: Clock, *, wanted: bool) -> None:
        self._clock = clock
        self._possible = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._wanted = wanted
        self._timer: asyncio.TimerHandle | None = None
        self._height = 0

    def show(self, text: str, since: float) -> None:
        """Show what has been going on `since` a time of the clock's stopwatch."""
        self._stop()
        if self._wanted and self._possible:
            self._draw(one_line(text), since)

    def preview(self, lines: Sequence[str]) -> None:
        """Show lines that are to be replaced, none wider than the terminal."""
        self._stop()
        if self._possible:
            self._put(lines)

    def clear(self) -> None:
        """Take the lines away."""
        self._stop()
        if self._height:
            self._put(())

    def _draw(self, text: str, since: float) -> None:
        line = going_on(text, self._clock.monotonic() - since, columns() - 3)  # the terminal may add ^C
        self._put([line if os.environ.get("NO_COLOR") else f"\x1b[2m{line}\x1b[m"])
        self._timer = asyncio.get_running_loop().call_later(1, self._draw, text, since)

    def _put(self, lines: Sequence[str]) -> None:
        up = f"\x1b[{self._height - 1}A" if self._height > 1 else ""
        *above, last = lines or ("",)
        sys.stderr.write(f"\r{up}" + "".join(f"\x1b[K{line}\n" for line in above) + f"\x1b[J{last}")
        sys.stderr.flush()
        self._height = len(lines)

    def _stop(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None


def going_on(text: str, seconds: float, cells: int) -> str:
    """What has been going on for that long, in a line of at most that many cells."""
    return fitting(text, f" · {int(seconds)} s" if seconds >= 1 else "", cells)


def fitting(what: str, ending: str, cells: int) -> str:
    """Both in a line of at most that many cells; the first gives way, but for its beginning."""
    return cut(cut(what, max(cells - width(ending), SHORT)) + ending, cells)


def columns() -> int:
    """The cells of a line on standard error: a terminal's width; in a pipe more than is ever needed."""
    return os.get_terminal_size(sys.stderr.fileno()).columns or 80 if sys.stderr.isatty() else UNLIMITED
