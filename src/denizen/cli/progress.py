"""The lines at the bottom of the screen that say what is going on now."""

import asyncio
import os
import sys
from collections.abc import Sequence

from denizen.cli.output import error_width
from denizen.cli.text import cut_before, one_line
from denizen.runtime.clock import Clock


class ProgressLines:
    """Progress on standard error, where that is a terminal; where it isn't `wanted`, only previews are shown.

    Drawn by hand: rich's Live takes a thread, and control sequences that TERM and NO_COLOR don't switch off.
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
        """Take it away."""
        self._stop()
        if self._height:
            self._put(())

    def _draw(self, text: str, since: float) -> None:
        line = with_seconds(text, self._clock.monotonic() - since, error_width() - 3)  # the terminal may add ^C
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


def with_seconds(text: str, seconds: float, cells: int) -> str:
    """What has been going on for that long, in a line of at most that many cells."""
    return cut_before(text, f" · {int(seconds)} s" if seconds >= 1 else "", cells)
