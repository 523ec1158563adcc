"""The terminal as a host: the reply on standard output, everything else on standard error."""

import asyncio
import os
import shlex
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

import click
import msgspec

from denizen.actions.shell.format import names_written
from denizen.actions.shell.reply import read_reply
from denizen.cli.event_words import call_summary, duration, retry_words, summary, tool_ending
from denizen.cli.host import Asker, Host, coloured_diff
from denizen.cli.output import error_width, say, write, write_markdown
from denizen.cli.progress import ProgressLines
from denizen.cli.text import UNLIMITED, cut, cut_before, one_line, printable
from denizen.config.pattern import pattern
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
    ThinkingDelta,
    ThinkingEnd,
    ToolEnd,
    ToolStart,
    ToolUpdate,
    TurnParked,
    Withdrawn,
)
from denizen.messages import ToolResult
from denizen.ports import Answer, Ask, Parked
from denizen.runtime.clock import Clock
from denizen.sessions import short_name
from denizen.text.plural import counted

if TYPE_CHECKING:
    from denizen.cli.live import LivePrompt

MAX_OUTPUT_LINES, MAX_FAILURE_LINES, MAX_DIFF_LINES = 3, 10, 20
"""Lines that are shown: the first of a tool's output, the last of a failure's, those of a diff."""

MAX_THOUGHT_CHARS = 60
"""Characters of a thought that goes on which are shown."""

INDENT_CELLS = 4
"""Cells to the left of them."""

RENDER_INTERVAL_S = 0.1
"""Seconds: what streams in smaller pieces is rendered together."""

_OWN_WORD = pattern(r"\[.+\]")


class Terminal(Host):
    """Shows one turn as it happens.

    Where standard output is a terminal the reply streams, rendered as Markdown: blocks that are finished are printed,
    the last one is a preview. What the model thinks streams before it, dimmed, on standard error. Elsewhere the final
    reply alone is written, as it is, so that a pipe gets the reply and nothing else. Whatever a model, a tool or a file
    said is written without control characters, to pipes too: where they end is often a terminal. `quiet` leaves out all
    but the reply, questions and errors. Where `render` is set, the reply doesn't stream, and what it makes of the
    result is shown in its place. `progress` shows what is going on, else lines of its own do. Tool outputs are shown in
    part, or if `verbose` whole; where there are `outputs`, all of what was shown in part is added to them. `commands`:
    this is a chat, where the person can type them.
    """

    render: Callable[[RunResult], str] | None = None

    def __init__(
        self,
        clock: Clock,
        asker: Asker | None = None,
        *,
        yes: bool = False,
        refuse: bool = False,
        commands: list[str] | None = None,
        quiet: bool = False,
        verbose: bool = False,
        progress: "LivePrompt | None" = None,
        outputs: list[str] | None = None,
    ) -> None:
        super().__init__(asker, yes=yes, refuse=refuse, commands=commands)
        self._clock = clock
        self._quiet = quiet
        self._verbose = verbose
        self._outputs = outputs
        self._began = clock.monotonic()
        self._streams = sys.stdout.isatty()
        self._progress = progress or ProgressLines(clock, wanted=not quiet)
        self._streamed = self._printed = False  # text of this reply; anything of this turn
        self._text = ""  # what streamed and isn't printed yet
        self._drawing: asyncio.TimerHandle | None = None
        self._prose = ""  # what the reply says around its calls
        self._thought = ""  # the line of its thoughts that has no end yet
        self._names: dict[str, str] = {}  # tools as the reply's commands call them, by call
        self._model = ""  # who was asked last
        self._running: dict[str, tuple[str, float]] = {}
        self._result: RunResult | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_text()
        self._progress.clear()
        if (result := self._result) is None:
            return
        now = self._clock.monotonic()
        for what, since in self._running.values():
            self._line(cut_before(f"  ✗ {what}", f" · stopped after {duration(now - since)}", error_width()), "yellow")
        if result.stop_reason == "answered" and not self._streamed:
            if result.output is not None:
                write(printable(msgspec.json.encode(result.output).decode()) + "\n")
            else:
                self._print(printable(result.reply if self.render is None else self.render(result)))
        if result.error and result.stop_reason in {"iteration_limit", "loop", "budget"}:
            self._line(f"  {printable(result.error)}", "yellow", always=True)
        self._line(f"  {summary(result, now - self._began)}", "bright_black")

    async def ask(self, request: Ask) -> Answer | Parked:
        """Ask at the terminal."""
        self._print_prose()
        self._progress.clear()
        return await super().ask(request)

    def emit(self, event: RunEvent) -> None:
        """Show it."""
        match event:
            case LlmStart(model=model):
                self._streamed, self._prose, self._model, self._thought = False, "", model, ""
                self._progress.show("thinking …", self._clock.monotonic())
            case LlmStream(event=TextDelta(delta=delta)) if self._streams and self.render is None:
                self._text += printable(delta)
                if self._text and self._drawing is None:
                    self._drawing = asyncio.get_running_loop().call_later(RENDER_INTERVAL_S, self._draw)
            case LlmStream(event=ThinkingDelta(delta=delta)) if self._streams and not self._quiet:
                self._think(printable(delta))
            case LlmStream(event=ThinkingEnd()):
                self._think("\n")
            case LlmEnd(message=message):
                self._end_text()
                self._names = names_written(message)
                if message.tool_calls:
                    self._prose = message.text.strip()
                elif (found := read_reply(message.text)).commands:
                    self._prose = found.prose
            case ToolStart():
                self._print_prose()
                name = self._names.get(event.tool_call_id, event.tool_name)
                self._running[event.tool_call_id] = (call_summary(name, event.args), self._clock.monotonic())
                self._show_running()
            case ToolUpdate(text=text) if event.tool_call_id in self._running:
                what, since = self._running[event.tool_call_id]
                self._progress.show(f"… {cut(what, 30)} │ {''.join(text.splitlines()[-1:])}", since)
            case ToolEnd():
                self._tool_end(event)
                self._show_running()
            case Done(result=result):
                self._result = result
            case _:
                self._note(event)

    def _note(self, event: RunEvent) -> None:
        """Show what happened besides the conversation."""
        match event:
            case Withdrawn():
                self._end_text()
                if self._streamed:
                    self._line("  the answer above was withdrawn", "yellow")
                self._streamed = False
            case Retry():
                self._line(f"  {retry_words(event, self._model)}", "yellow")
                self._model = event.model
            case Compacted():
                self._line(f"  context made smaller: {event.old_count} → {event.new_count} messages", "cyan")
            case Notice(text=text, level=level):
                colour = {"info": "cyan", "warning": "yellow", "error": "red"}[level]
                self._line(f"  {printable(text)}", colour, always=level == "error")
            case TurnParked():
                name = shlex.quote(short_name(event.session_key))
                self._line(f"  parked: {one_line(event.question)}", "yellow", always=True)
                if self._commands is not None:
                    self._line("  /continue asks again; after this chat", "yellow", always=True)
                self._line(f"  answer with: denizen answer {name} yes|no|TEXT", "yellow", always=True)

    def _think(self, delta: str) -> None:
        """Print the lines of thoughts that are complete; of the last one the end shows what is going on."""
        *lines, self._thought = (self._thought + delta).split("\n")
        for line in filter(str.strip, lines):
            self._line(f"  {line}", "bright_black")
        if self._thought:
            self._progress.show(f"… {self._thought[-MAX_THOUGHT_CHARS:]}", self._clock.monotonic())

    def _draw(self) -> None:
        """Print the blocks that are finished, and preview the last one."""
        from denizen.cli.markdown import last_lines, split_blocks

        self._drawing = None
        finished, self._text = split_blocks(self._text)
        self._print(finished)
        size = os.get_terminal_size(sys.stdout.fileno())
        shown = last_lines(self._text, size.columns or 80, max((size.lines or 24) // 2, 1))
        self._progress.preview(["", *shown] if self._printed else shown)

    def _print(self, text: str) -> None:
        """Print Markdown, on a terminal an empty line below what is above it."""
        if text.strip():
            self._progress.clear()
            if self._streams and self._printed:
                click.echo(err=not self._streamed)
            write_markdown(text)
            self._streamed = self._printed = True

    def _end_text(self) -> None:
        """Print what is left of the text."""
        if self._drawing:
            self._drawing.cancel()
            self._drawing = None
        text, self._text = self._text, ""
        self._print(text)

    def _print_prose(self) -> None:
        """Print what the reply says around its calls, once it is clear that it has some, unless it streamed."""
        if self._prose and not self._streamed:
            self._line(f"  {printable(self._prose).strip()}", "bright_black")
        self._prose = ""

    def _show_running(self) -> None:
        if self._running:
            what, since = next(reversed(self._running.values()))
            self._progress.show(f"… {what}", since)

    def _tool_end(self, event: ToolEnd) -> None:
        what, _ = self._running.pop(event.tool_call_id, (event.tool_name, 0.0))
        ending, output = tool_ending(event)
        sign, colour = ("✗", "red") if event.is_error else ("✓", "green")
        self._line(cut_before(f"  {sign} {what}", ending, error_width()), colour)
        if event.for_user:
            self._line(textwrap.indent(printable(event.for_user), "    "), "white")
        edits = ToolResult("", "", [], details=event.details).edits
        plain = [(line, "bright_black") for line in printable(output).strip("\n").splitlines()]
        if edits:
            self._output(
                [line for each in edits for line in coloured_diff(printable(str(each["diff"])))], MAX_DIFF_LINES
            )
        elif event.is_error:
            self._output(plain, MAX_FAILURE_LINES, last=True)
        elif not event.for_user:
            self._output(plain, MAX_OUTPUT_LINES)

    def _output(self, lines: Sequence[tuple[str, str]], most: int, *, last: bool = False) -> None:
        """What a tool gave, the first lines of it or the `last`, and how to see the rest.

        A last line in brackets is the tool's own word about its output: that is always shown.
        """
        cells = UNLIMITED if self._verbose else error_width() - INDENT_CELLS
        over = 0 if self._verbose or len(lines) <= most + 1 else len(lines) - most  # a note takes a line, too
        shown = [(cut(line.expandtabs(4), cells), colour) for line, colour in lines]
        shown = shown[over:] if last else shown[: len(shown) - over]
        if over or any(line.endswith("…") for line, _ in shown):
            how = "--verbose shows it"
            if self._outputs is not None:
                self._outputs.append("\n".join(line for line, _ in lines))
                how = f"/output {len(self._outputs)}"
            note = (f"… {counted(over, 'more line') if over else 'the rest'}: {how}", "bright_black")
            own = [line for line in lines[-1:] if over and _OWN_WORD.fullmatch(line[0])]
            shown = [note, *shown] if last else [*shown, note, *own]
        for line, colour in shown:
            self._line(f"{'':{INDENT_CELLS}}{line}", colour)

    def _line(self, text: str, colour: str, *, always: bool = False) -> None:
        if always or not self._quiet:
            self._end_text()
            self._progress.clear()
            say(text, colour)
            self._printed = True
