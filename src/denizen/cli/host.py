"""Hosts of turns: how a person is asked and what an answer means, and the host of `--json`."""

import asyncio
import contextlib
import json
import os
import select
import sys
import termios
from collections.abc import Generator, Sequence
from typing import Protocol, Self, TextIO

import click

from denizen.cli.output import question_stream, write_json
from denizen.cli.text import visible
from denizen.errors import ModelError
from denizen.events import Done, RunEvent, RunResult
from denizen.ports import Answer, Ask, NoControls, Parked

CHOICES = "y yes · s yes, for this session · a always · n no · or say what to do instead"
COMMAND_SIGNS = ("/", "!")
"""Input that begins with these waits until the agent is done."""

QUOTATION_CHOICES = "y yes · n no · or say what to do instead"

_IN_DIFF = {"old", "new", "content", "patch"}
_DIFF_COLOURS = {"+": "green", "-": "red"}
_READ_BYTES = 65536


class Asker(Protocol):
    """Where a person reads and types."""

    async def ask(self, question: str, prompt: str) -> str | None:
        """What they answer; None: they leave the question open."""


class Host(NoControls):
    """Lends a turn whoever is at the terminal, or nobody.

    No controls come in: Ctrl-C cancels the turn, and what is typed meanwhile is queued (`TurnOptions.queued`).

    `yes` answers everything but quotations, `refuse` answers no; else the question goes to the `asker`, and without one
    the turn is parked. A slash command in place of an answer goes into the `commands`, where there are some, for later.
    """

    def __init__(
        self,
        asker: Asker | None = None,
        *,
        yes: bool = False,
        refuse: bool = False,
        commands: list[str] | None = None,
    ) -> None:
        self._asker = asker
        self._yes = yes
        self._refuse = refuse
        self._commands = commands

    async def ask(self, request: Ask) -> Answer | Parked:
        """The answer; a slash command parks the turn."""
        if self._yes and not request.quotation:
            return Answer(request.call_id, allow=True, text="" if request.tool_name else "yes")
        if self._refuse or self._yes:
            why = "--yes doesn't cover quotations" if self._yes else "nobody can be asked (--non-interactive)"
            return Answer(request.call_id, allow=False, text=why, unasked=True)
        if self._asker is None:
            return Parked()
        choices = QUOTATION_CHOICES if request.quotation else CHOICES if request.tool_name else "your answer"
        words = await self._asker.ask(describe(request), choices)
        if self._commands is not None and words and words.startswith("/"):
            self._commands.append(words.strip())
            return Parked()
        return Parked() if words is None else parse_answer(request, words)


class JsonHost(Host):
    """The host of `--json`: every event on standard output, the last of them `done`, whatever happens.

    Text is exact here: JSON escapes what could harm a terminal.
    """

    _done = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error and not self._done and not isinstance(error, BrokenPipeError):
            stop = "error" if isinstance(error, Exception) else "cancelled"
            self.emit(Done(RunResult(reply="", stop_reason=stop, error=str(error))))

    def emit(self, event: RunEvent) -> None:
        """Print it."""
        self._done = isinstance(event, Done)
        write_json(event, enc_hook=lambda value: value.message if isinstance(value, ModelError) else str(value))


def describe(request: Ask) -> str:
    """The whole call with the question below it; nothing in it can look like something else.

    What an edit would change is a diff, else every argument is shown.
    """
    args = {name: value for name, value in request.args.items() if not request.diff or name not in _IN_DIFF}
    width = max(map(len, args), default=0)
    lines = [f"  {visible(request.tool_name)}"] if request.tool_name else []
    for name, value in args.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        indented = visible(text).replace("\n", f"\n    {' ' * width}  ")
        lines.append(f"    {visible(name):{width}}  {indented}")
    lines += [click.style(f"    {line}", colour) for line, colour in coloured_diff(visible(request.diff))]
    return "\n".join([*lines, click.style(visible(request.question), "yellow")])


def coloured_diff(diff: str) -> list[tuple[str, str]]:
    """The lines of a diff, each with its colour."""
    return [(line, _DIFF_COLOURS.get(line[:1], "bright_black")) for line in diff.splitlines()]


def parse_answer(request: Ask, words: str) -> Answer:
    """What typed words mean: yes, no, for how long, or something to tell the model."""
    words = words.strip()
    if not request.tool_name:
        return Answer(request.call_id, allow=words.lower() not in {"", "n", "no"}, text=words)
    match words.lower():
        case "y" | "yes":
            return Answer(request.call_id, allow=True)
        case "s" | "session":
            return Answer(request.call_id, allow=True, scope="session")
        case "a" | "always":
            return Answer(request.call_id, allow=True, scope="always")
        case "" | "n" | "no":
            return Answer(request.call_id, allow=False)
        case _:
            return Answer(request.call_id, allow=False, text=words)


class TerminalLines:
    """The terminal's lines, read without blocking the event loop. It must be in its usual mode: a line on Enter.

    Slash commands that are entered meanwhile go into `commands`; `unsent` is what the next prompt is to begin with.
    """

    def __init__(self, stream: TextIO, screen: TextIO) -> None:
        self.commands: list[str] = []
        self.unsent: list[str] = []
        self._stream = stream
        self._screen = screen
        self._entered: list[str] = []

    def waiting(self) -> Sequence[str]:
        """Hand over the messages that were entered meanwhile."""
        self._read()
        entered, self._entered = self._entered, list[str]()
        return entered

    def take_typed(self) -> Sequence[str]:
        """What was typed and not looked at, also a line that isn't entered yet."""
        with terminal_modes(self._stream, without=termios.ICANON):
            while self._ready() and (typed := os.read(self._stream.fileno(), _READ_BYTES)):
                self._entered += filter(None, map(str.strip, typed.decode(errors="replace").split("\n")))
        rest, self._entered = self._entered, list[str]()
        return rest

    def restore_unsent(self, unsent: Sequence[str]) -> None:
        """End a turn: that, and what was entered before a question and not looked at since, is the person's again."""
        self.unsent += [*unsent, *self._entered]
        self._entered.clear()

    async def ask(self, question: str, prompt: str) -> str | None:
        """The line that answers; None at the end of input (Ctrl-D). What was typed before isn't an answer."""
        self._read()
        with contextlib.suppress(termios.error):
            termios.tcflush(self._stream, termios.TCIFLUSH)
        click.echo(f"\n{question}\n{prompt}: ", self._screen, nl=False)
        loop, typed = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._stream, typed.set)
        line = ""
        try:
            await typed.wait()
            line = self._stream.readline()
        finally:
            loop.remove_reader(self._stream)
            if not line:
                click.echo(file=self._screen)  # what is said next begins a line
        return line or None

    def _read(self) -> None:
        while self._ready() and (line := self._stream.readline()):
            if line := line.strip():
                (self.commands if line.startswith(COMMAND_SIGNS) else self._entered).append(line)

    def _ready(self) -> bool:
        return bool(select.select([self._stream], [], [], 0)[0])


@contextlib.contextmanager
def terminal_modes(stream: TextIO, *, of: int = 0, without: int = 0) -> Generator[None]:
    """Change the terminal's local modes (termios) for a while."""
    before = termios.tcgetattr(stream)
    modes = [*before]
    modes[3] = modes[3] & ~without | of
    termios.tcsetattr(stream, termios.TCSANOW, modes)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal may be gone
            termios.tcsetattr(stream, termios.TCSANOW, before)


def terminal_lines() -> TerminalLines | None:
    """Where a person can be asked: standard input, or after a pipe the terminal itself; None where there is none."""
    screen = question_stream()
    if screen is None:
        return None
    if sys.stdin.isatty():
        return TerminalLines(sys.stdin, screen)
    try:
        return TerminalLines(open("/dev/tty", encoding="utf-8", errors="replace"), screen)  # noqa: PTH123 - read until the end
    except OSError:
        return None
