"""Lines that a person types, read without holding up the event loop, so that Ctrl-C still cancels."""

import asyncio
import contextlib
import os
import select
import sys
import termios
from collections.abc import Generator, Sequence
from typing import TextIO

import click

from denizen.cli.asking import screen

_MOST = 65536


class Lines:
    """The terminal's lines. It must be in its usual mode, where a line comes whole when Enter is pressed.

    `heard` are messages that were handed on in this turn, `unsaid` what is to be the beginning of the next prompt.
    """

    def __init__(self, stream: TextIO, screen: TextIO) -> None:
        self.heard: list[str] = []
        self.unsaid: list[str] = []
        self._stream = stream
        self._screen = screen
        self._entered: list[str] = []

    def waiting(self) -> Sequence[str]:
        """The lines that were entered meanwhile."""
        self._read()
        entered = [*self._entered]
        self._entered.clear()
        self.heard += [line for line in entered if not line.startswith("/")]
        return entered

    def rest(self) -> Sequence[str]:
        """What was typed and not looked at, also a line that isn't entered yet."""
        with _modes(self._stream, without=termios.ICANON):
            while select.select([self._stream], [], [], 0)[0] and (typed := os.read(self._stream.fileno(), _MOST)):
                self._entered += filter(None, map(str.strip, typed.decode(errors="replace").split("\n")))
        rest = [*self._entered]
        self._entered.clear()
        return rest

    def bring_back(self, unsaid: Sequence[str]) -> None:
        """End a turn: that, and what was entered before a question and not looked at since, is the person's again."""
        self.unsaid += [*unsaid, *self._entered]
        self._entered.clear()
        self.heard.clear()

    async def ask(self, question: str, prompt: str) -> str | None:
        """The line that answers; None at the end of input (Ctrl-D). What was typed before is no answer."""
        self._read()
        with contextlib.suppress(termios.error):
            termios.tcflush(self._stream, termios.TCIFLUSH)
        click.echo(f"\n{question}", self._screen)
        click.echo(f"{prompt}: ", self._screen, nl=False)
        line = None
        try:
            line = await self._next()
        finally:
            if line is None:
                click.echo(file=self._screen)  # what is said next begins a line
        return line

    def _read(self) -> None:
        while select.select([self._stream], [], [], 0)[0] and (line := self._stream.readline()):
            self._entered += filter(None, [line.strip()])

    async def _next(self) -> str | None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self._stream, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._stream)
        return self._stream.readline() or None


def unflushed(stream: TextIO) -> contextlib.AbstractContextManager[None]:
    """Have Ctrl-C throw nothing away that was typed."""
    return _modes(stream, of=termios.NOFLSH)


@contextlib.contextmanager
def _modes(stream: TextIO, *, of: int = 0, without: int = 0) -> Generator[None]:
    """Have the terminal treat keys like that meanwhile."""
    before = termios.tcgetattr(stream)
    modes = [*before]
    modes[3] = modes[3] & ~without | of
    termios.tcsetattr(stream, termios.TCSANOW, modes)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal may be gone
            termios.tcsetattr(stream, termios.TCSANOW, before)


def terminal_lines() -> Lines | None:
    """Where a person can be asked: standard input, or behind a pipe the terminal itself; None where there is none."""
    seen = screen()
    if seen is None:
        return None
    if sys.stdin.isatty():
        return Lines(sys.stdin, seen)
    try:
        return Lines(open("/dev/tty", encoding="utf-8", errors="replace"), seen)  # noqa: PTH123 - read until the end
    except OSError:
        return None
