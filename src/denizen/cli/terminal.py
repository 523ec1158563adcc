"""The terminal as a host: the reply on standard output, everything else on standard error."""

import asyncio
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Self

import click
import msgspec

from denizen.actions.shell.format import names_written
from denizen.actions.shell.reply import read_reply
from denizen.cli.approval import Person
from denizen.cli.calls import in_short
from denizen.cli.changes import Coloured, changes
from denizen.cli.home import short_name
from denizen.cli.output import terminal_size, write, write_markdown
from denizen.cli.passing import SHORT, UNLIMITED, Passing, Status, columns, fitting
from denizen.cli.text import cut, one_line, printable, wrapped
from denizen.cli.usage import duration, usage_line
from denizen.clock import Clock
from denizen.events import (
    Compacted,
    Done,
    LlmEnd,
    LlmStart,
    LlmStream,
    Notice,
    Retry,
    RunEvent,
    RunResult,
    TextDelta,
    ToolEnd,
    ToolStart,
    ToolUpdate,
    TurnParked,
    Withdrawn,
)
from denizen.messages import AssistantMessage
from denizen.plural import counted
from denizen.ports import Answer, Ask, Control, Parked

MOST_SHOWN = 3
"""Lines of what a tool gave."""
MOST_FAILED = 10
"""Lines of it, where it failed: the last."""
MOST_CHANGED = 20
"""Lines of a diff."""

INDENT = 4
"""Cells to the left of them."""

BETWEEN_DRAWINGS = 0.1
"""Seconds: what streams in smaller pieces is rendered together."""

_EXIT_CODE = re.compile(r"^\[(exit code [^\]]*)\]$", re.MULTILINE)
_OWN_WORD = re.compile(r"\[.+\]")


class Terminal:
    """Shows one turn as it happens.

    Where standard output is a terminal the reply streams, rendered as Markdown: blocks that are finished are printed,
    the last one is a preview. Elsewhere the final reply alone is written, as it is, so that a pipe gets the reply and
    nothing else. Whatever a model, a tool or a file said is written without control characters, to pipes too: where
    they end is often a terminal. `quiet` leaves out all but the reply, questions and errors. Where `render` is set, the
    reply doesn't stream, and what it makes of the result is shown in its place. What goes on is shown by `status`, or
    else in lines of its own. `in_chat`: this goes on behind the turn, at a prompt. What tools gave is shown in part, or
    if `verbose` whole; where there are `outputs`, all of what was shown in part is added to them.
    """

    render: Callable[[RunResult], str] | None = None

    def __init__(
        self,
        clock: Clock,
        person: Person,
        *,
        quiet: bool = False,
        verbose: bool = False,
        status: Status | None = None,
        in_chat: bool = False,
        outputs: list[str] | None = None,
    ) -> None:
        self._clock = clock
        self._person = person
        self._quiet = quiet
        self._verbose = verbose
        self._in_chat = in_chat
        self._outputs = outputs
        self._began = clock.monotonic()
        self._live = sys.stdout.isatty()
        self._passing = status or Passing(clock, wanted=not quiet)
        self._streamed = self._above = False  # text of this reply; anything of this turn
        self._text = ""  # what streamed and may still be rendered otherwise
        self._drawing: asyncio.TimerHandle | None = None
        self._beside = ""  # what the reply says beside its commands
        self._written: dict[str, str] = {}  # tools as the reply's commands call them
        self._model = ""  # who was asked last
        self._running: dict[str, tuple[str, float]] = {}
        self._result: RunResult | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_text()
        self._passing.clear()
        if self._result:
            self._conclude(self._result)

    def emit(self, event: RunEvent) -> None:
        """Show it."""
        match event:
            case LlmStart(model=model):
                self._streamed, self._beside, self._model = False, "", model
                self._passing.show("thinking …", self._clock.monotonic())
            case LlmStream(event=TextDelta(delta=delta)) if self._live and self.render is None:
                self._stream(printable(delta))
            case LlmEnd(message=message):
                self._end_text()
                self._written = names_written(message)
                if not self._streamed:
                    self._beside = _beside(message)
            case ToolStart() | ToolUpdate() | ToolEnd():
                self._tool(event)
            case Done(result=result):
                self._result = result
            case _:
                self._tell(event)

    def controls(self) -> Sequence[Control]:
        """What the person said while the agent worked."""
        return self._person.said()

    async def ask(self, request: Ask) -> Answer | Parked:
        """Ask at the terminal."""
        self._say_beside()
        self._passing.clear()
        return await self._person.ask(request)

    def _stream(self, text: str) -> None:
        self._text += text
        if text and self._drawing is None:
            self._drawing = asyncio.get_running_loop().call_later(BETWEEN_DRAWINGS, self._draw)

    def _draw(self) -> None:
        from denizen.cli.rendering import last_lines, split_blocks

        self._drawing = None
        finished, self._text = split_blocks(self._text)
        self._print(finished)
        size = terminal_size()
        above = [""] if self._above else []
        self._passing.preview([*above, *last_lines(self._text, size.columns, max(size.lines // 2, 1))])

    def _print(self, text: str) -> None:
        """Print Markdown, on a terminal an empty line below what is above it."""
        if text.strip():
            self._passing.clear()
            if self._live and self._above:
                click.echo(err=not self._streamed)
            write_markdown(text)
            self._streamed = self._above = True

    def _end_text(self) -> None:
        """Print what is left of the text."""
        if self._drawing:
            self._drawing.cancel()
            self._drawing = None
        text, self._text = self._text, ""
        self._print(text)

    def _say_beside(self) -> None:
        """What the reply says beside its commands, once it is clear that they are some."""
        if self._beside:
            self._line(f"  {printable(self._beside).strip()}", "bright_black")
        self._beside = ""

    def _tool(self, event: ToolStart | ToolUpdate | ToolEnd) -> None:
        match event:
            case ToolStart():
                self._say_beside()
                name = self._written.get(event.tool_call_id, event.tool_name)
                self._running[event.tool_call_id] = (in_short(name, event.args), self._clock.monotonic())
            case ToolUpdate(text=text) if event.tool_call_id in self._running:
                what, since = self._running[event.tool_call_id]
                self._passing.show(f"… {cut(what, SHORT)} │ {''.join(text.splitlines()[-1:])}", since)
                return
            case ToolEnd():
                self._tool_end(event)
            case _:
                return
        if self._running:
            what, since = next(reversed(self._running.values()))
            self._passing.show(f"… {what}", since)

    def _tool_end(self, event: ToolEnd) -> None:
        what, _ = self._running.pop(event.tool_call_id, (event.tool_name, 0.0))
        code, output = _apart(event.text)
        if event.is_error and not code:
            code, output = one_line(event.summary), event.text.partition("\n")[2]
        reason = f": {code}" if event.is_error else ""
        sign, colour = ("✗", "red") if event.is_error else ("✓", "green")
        ending = f" · {duration(event.duration_ms / 1000)}{reason}"
        self._line(fitting(f"  {sign} {what}", ending, columns()), colour)
        if event.for_user:
            self._line(textwrap.indent(printable(event.for_user), "    "), "white")
        if diff := changes(event.details):
            self._output(diff, MOST_CHANGED)
        elif event.is_error:
            self._output(_plain(output), MOST_FAILED, last=True)
        elif not event.for_user:
            self._output(_plain(output), MOST_SHOWN)

    def _output(self, lines: Coloured, most: int, *, last: bool = False) -> None:
        """What a tool gave, the first lines of it or the `last`, and how to see the rest.

        A last line in brackets is the tool's own word about its output: that is always shown.
        """
        cells = UNLIMITED if self._verbose else columns() - INDENT
        over = 0 if self._verbose or len(lines) <= most + 1 else len(lines) - most  # a note takes a line, too
        shown = [(cut(line.expandtabs(4), cells), colour) for line, colour in lines]
        shown = shown[over:] if last else shown[: len(shown) - over]
        if over or any(line.endswith("…") for line, _ in shown):
            note = (f"… {counted(over, 'more line') if over else 'the rest'}: {self._rest(lines)}", "bright_black")
            own = [line for line in lines[-1:] if over and _OWN_WORD.fullmatch(line[0])]
            shown = [note, *shown] if last else [*shown, note, *own]
        for line, colour in shown:
            self._line(f"{'':{INDENT}}{line}", colour)

    def _rest(self, lines: Coloured) -> str:
        if self._outputs is None:
            return "--verbose shows it"
        self._outputs.append("\n".join(line for line, _ in lines))
        return f"/output {len(self._outputs)}"

    def _tell(self, event: RunEvent) -> None:
        match event:
            case Withdrawn():
                self._end_text()
                if self._streamed:
                    self._line("  what was shown of this answer doesn't count", "yellow")
                self._streamed = False
            case Retry():
                self._line(f"  {one_line(_again(event, self._model))}", "yellow")
                self._model = event.model
            case Compacted():
                self._line(f"  context made smaller: {event.old_count} → {event.new_count} messages", "cyan")
            case Notice(text=text, level=level):
                colour = {"info": "cyan", "warning": "yellow", "error": "red"}[level]
                self._line(f"  {printable(text)}", colour, always=level == "error")
            case TurnParked():
                self._parked(event)
            case _:
                pass

    def _parked(self, event: TurnParked) -> None:
        name = shlex.quote(short_name(event.session_key))
        self._line(f"  parked: {one_line(event.question)}", "yellow", always=True)
        if self._in_chat:
            self._line("  /continue asks again; after this chat", "yellow", always=True)
        self._line(f"  answer with: denizen answer {name} yes|no|TEXT", "yellow", always=True)

    def _conclude(self, result: RunResult) -> None:
        for what, since in self._running.values():
            ending = f" · stopped after {duration(self._clock.monotonic() - since)}"
            self._line(fitting(f"  ✗ {what}", ending, columns()), "yellow")
        if result.stop_reason == "answered" and not self._streamed:
            self._reply(result)
        if result.error and result.stop_reason in {"iteration_limit", "loop", "budget"}:
            self._line(f"  {printable(result.error)}", "yellow", always=True)
        self._line(f"  {usage_line(result, self._clock.monotonic() - self._began)}", "bright_black")

    def _reply(self, result: RunResult) -> None:
        if result.output is not None:
            write(printable(msgspec.json.encode(result.output).decode()) + "\n")
        else:
            self._print(printable(result.reply if self.render is None else self.render(result)))

    def _line(self, text: str, colour: str, *, always: bool = False) -> None:
        if always or not self._quiet:
            self._end_text()
            self._passing.clear()
            click.secho(wrapped(text, columns()), fg=colour, err=True)
            self._above = True


def _apart(output: str) -> tuple[str, str]:
    """A command's exit code in words, where it has one, and what it printed."""
    *_, code = [None, *_EXIT_CODE.finditer(output)]
    return (code[1], output[: code.start()] + output[code.end() :]) if code else ("", output)


def _plain(text: str) -> Coloured:
    return [(line, "bright_black") for line in printable(text).strip("\n").splitlines()]


def _beside(message: AssistantMessage) -> str:
    """What a reply says beside its calls, structured or commands."""
    if message.tool_calls:
        return message.text.strip()
    found = read_reply(message.text)
    return found.prose if found.commands else ""


def _again(event: Retry, asked: str) -> str:
    profile = "" if event.profile_id == "default" else event.profile_id
    if asked and event.model and event.model != asked:
        words = event.words.removeprefix(f"{asked}: ").replace("trying again", f"going on with {event.model}")
        return " · ".join(filter(None, (f"{asked}: {words}", profile)))
    return " · ".join(filter(None, (event.words, event.model, profile)))
