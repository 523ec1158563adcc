"""Lines that a person types, read without holding up the event loop, so that Ctrl-C still cancels."""

import asyncio
import contextlib
import select
import sys
import termios
from typing import TextIO


class Lines:
    """The terminal's lines. It must be in its usual mode, where a line comes whole when Enter is pressed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    async def next(self) -> str | None:
        """The next line; None at the end of input (Ctrl-D)."""
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self._stream, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._stream)
        return self._stream.readline() or None

    def waiting(self) -> list[str]:
        """The lines that were typed meanwhile."""
        lines: list[str] = []
        while select.select([self._stream], [], [], 0)[0] and (line := self._stream.readline()):
            lines.append(line)
        return lines

    def forget(self) -> None:
        """Drop what was typed and not entered: it was no answer to the question that comes now."""
        with contextlib.suppress(termios.error):
            termios.tcflush(self._stream, termios.TCIFLUSH)


def terminal_lines() -> Lines | None:
    """Where a person can be asked: standard input, or behind a pipe the terminal itself; None where there is none."""
    if not sys.stderr.isatty():
        return None
    if sys.stdin.isatty():
        return Lines(sys.stdin)
    try:
        return Lines(open("/dev/tty", encoding="utf-8", errors="replace"))  # noqa: PTH123 - read until the end
    except OSError:
        return None
