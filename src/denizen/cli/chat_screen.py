"""`denizen chat --tui`: a conversation on the whole screen. Imports textual."""

import asyncio
import io
import sys
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, TextIO, TypeVar

from denizen.actions.shell.format import names_written
from denizen.actions.shell.reply import read_reply
from denizen.cli.conversation import TerminalChat
from denizen.cli.editor import History
from denizen.cli.event_words import call_summary, event_lines, summary, tool_ending
from denizen.cli.host import Host, coloured_diff
from denizen.cli.live import TYPING_PAUSE_S, join_lines, result_or_stopped
from denizen.cli.markdown import PARSER
from denizen.cli.output import say
from denizen.cli.progress import with_seconds
from denizen.cli.terminal import MAX_THOUGHT_CHARS
from denizen.cli.text import cut_before, one_line, printable, shorten
from denizen.entries import AnyEntry, AssistantEntry, UserEntry
from denizen.events import (
    Done,
    LlmEnd,
    LlmStart,
    LlmStream,
    Retry,
    RunEvent,
    RunResult,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    ToolEnd,
    ToolStart,
    ToolUpdate,
    Withdrawn,
)
from denizen.messages import Text, ToolResult
from denizen.sessions import short_name
from denizen.tui.chat_app import ChatApp
from denizen.worlds.commands import usage_of

MAX_LINES, MAX_CHARS = 500, 50_000
"""Of a tool's output, at most."""

MAX_EARLIER_ENTRIES = 40
"""Entries of a session that is gone on with."""

_Result = TypeVar("_Result")


class ChatScreen:
    """The whole screen for a conversation: shows its turns, asks the person, and takes what they type meanwhile.

    It does what `LivePrompt` does at the bottom of a terminal; what is `queued` waits for the next model call.
    """

    def __init__(self, conversation: TerminalChat, words: Sequence[str]) -> None:
        self.queued: list[str] = []
        self._conversation = conversation
        self._clock = conversation.agent.clock
        self._history = History(conversation.agent.home / "history")
        earlier = [*self._history.load_history_strings()]
        self.app = ChatApp(self, PARSER, words=words, history=earlier[::-1])
        self._next: asyncio.Future[str | None] | None = None
        self._answer: asyncio.Future[str | None] | None = None
        self._one_question = asyncio.Lock()
        self._work: asyncio.Task[Any] | None = None
        self._stopped = False
        self._pressed = 0.0
        self._question = ""
        self._status: tuple[str, float] | None = None
        self._tick: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def shown(self) -> AsyncGenerator[None]:
        """The screen is there; what is printed goes to it."""
        streams = sys.stdout, sys.stderr
        try:
            async with self.app.shown(self.leave):
                sys.stdout = sys.stderr = _Printed(self.app, streams[1])
                self.show_status()
                try:
                    yield
                finally:
                    self.clear()
        finally:
            sys.stdout, sys.stderr = streams

    # What the person does.

    def enter(self, text: str) -> None:
        """Hand it over, or let it wait for the agent."""
        if not _settle(self._next, text):
            self.queued.append(text)
            self._draw()

    def type(self) -> None:
        """Note when."""
        self._pressed = self._clock.monotonic()

    def answer(self, text: str | None) -> None:
        """Hand the answer over."""
        _settle(self._answer, text)

    def take_back(self) -> str:
        """The last that is queued."""
        text = self.queued.pop() if self.queued else ""
        self._draw()
        return text

    def interrupt(self) -> bool:
        """Stop the work, once: how it ends is not to be interrupted."""
        if self._work and not self._stopped:
            self._stopped = True
            self._work.cancel()
            self.show("stopping …", self._clock.monotonic())
        return self._work is not None

    def leave(self) -> None:
        """End the conversation, and what is going on."""
        self._conversation.over = True
        self.interrupt()
        _settle(self._next, None)

    async def sessions(self) -> Sequence[tuple[str, str]]:
        """The last ones."""
        listed = await self._conversation.agent.store.page(100)
        return [(short_name(info.key), one_line(info.title)) for info in listed]

    # What a conversation does with it.

    async def read(self) -> str | None:
        """The next message, queued or typed; None when the person leaves."""
        if self.queued:
            text = self.queued.pop(0)
            self._draw()
        else:
            self._next = asyncio.get_running_loop().create_future()
            text = await self._next
        if text:
            self.app.say(printable(text))
            self._history.store_string(text)
        return text

    async def run(self, work: Coroutine[Any, Any, _Result], stopped: _Result) -> _Result:
        """Do the work; `stopped` where Ctrl-C stopped it."""
        task = self._work = asyncio.create_task(work)
        self._stopped = False
        try:
            return await result_or_stopped(task, lambda: self._stopped, stopped)
        finally:
            self._work = None
            self.clear()
            self.show_status()

    def restore_unsent(self, unsent: Sequence[str]) -> None:
        """Put that, and what is queued, before what is typed."""
        if self.app.is_running:
            self.app.prompt.put(join_lines(*unsent, *self.queued, self.app.prompt.text))
        self.queued.clear()
        self._draw()

    def waiting(self) -> Sequence[str]:
        """Hand over the messages that are queued, and show them as said."""
        delivered = [text for text in self.queued if not text.startswith("/")]
        self.queued = [text for text in self.queued if text.startswith("/")]
        for text in delivered:
            self.app.say(printable(text))
            self._history.store_string(text)
        self._draw()
        return delivered

    async def ask(self, question: str, prompt: str) -> str | None:
        """What the person answers; None for Ctrl-D. What they were typing is put aside, once they pause."""
        async with self._one_question:
            while self.app.prompt.text and (left := self._pressed + TYPING_PAUSE_S - self._clock.monotonic()) > 0:
                self.show("a question will appear when you pause", self._clock.monotonic())
                await self._clock.sleep(left)
            self.app.print(f"\n{question}")
            await self.app.begin_question()
            self._answer = asyncio.get_running_loop().create_future()
            self._question = prompt
            self._draw()
            words: str | None = None
            try:
                words = await self._answer
            finally:
                self._question, self._answer = "", None
                self.app.end_question()
                self._draw()
            self.app.say(printable(words or "(left open)"))
            return words

    def show(self, text: str, since: float) -> None:
        """Show what has been going on `since` a time of the clock's stopwatch."""
        self._status = one_line(text), since
        self._draw()

    def clear(self) -> None:
        """Take that away."""
        self._status = None
        self._draw()

    def show_status(self, context: int = 0) -> None:
        """Show the model, the session, the tokens of its last call, and what it cost."""
        chat = self._conversation
        _, total, last = usage_of(chat.entries)
        context, window = context or last, chat.agent.model.limits(chat.name).window
        parts = [chat.agent.model.name, short_name(chat.name)]
        if context:
            parts.append(f"context {context:,} of {window:,}")
        if total.cost_usd:
            parts.append(f"${total.cost_usd:.4f}")
        self.app.show_status(printable(" · ".join([*parts, "/help"])))

    def show_earlier(self, entries: Sequence[AnyEntry]) -> None:
        """Show what was said last in a session."""
        for entry in entries[-MAX_EARLIER_ENTRIES:]:
            match entry:
                case UserEntry(message=message):
                    words = next((part.text for part in message.content if isinstance(part, Text)), "[image]")
                    self.app.say(printable(words))
                case AssistantEntry(message=message):
                    self.app.stream(printable(message.text))
                    self.app.end_reply()

    def host(self) -> "ScreenHost":
        """The host of the next turn."""
        return ScreenHost(self, self._conversation)

    def _draw(self) -> None:
        """Show what is going on, what is queued and what is asked, now and every second."""
        if self._tick:
            self._tick.cancel()
            self._tick = None
        cells = max(self.app.size.width - 2, 20)
        lines = [f"queued: {one_line(text)}" for text in self.queued[-4:]]
        if lines:
            lines[-1] = cut_before(lines[-1], " · ↑ takes it back", cells)
        if self._question:
            lines.append(self._question)
        elif self._status:
            text, since = self._status
            lines.append(with_seconds(text, self._clock.monotonic() - since, cells))
            self._tick = asyncio.get_running_loop().call_later(1, self._draw)
        self.app.show_activity("\n".join(lines))


class ScreenHost(Host):
    """Shows one turn on the screen as it happens."""

    def __init__(self, screen: ChatScreen, conversation: TerminalChat) -> None:
        options = conversation.options
        super().__init__(screen, yes=options.yes, refuse=options.non_interactive, commands=conversation.commands)
        self._screen = screen
        self._outputs = conversation.outputs
        self._quiet = options.quiet
        self._clock = conversation.agent.clock
        self._began = self._clock.monotonic()
        self._streamed = False
        self._model = ""
        self._thought = ""
        self._names: dict[str, str] = {}
        self._running: dict[str, str] = {}
        self._result: RunResult | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for what in self._running.values():
            self._line(f"✗ {what} · stopped", "yellow")
        if result := self._result:
            if result.stop_reason == "answered" and not self._streamed:
                self._reply(result.reply)
            if result.error:
                self._line(printable(result.error), "yellow", always=True)
            self._line(summary(result, self._clock.monotonic() - self._began), "bright_black")

    def emit(self, event: RunEvent) -> None:
        """Show it."""
        match event:
            case LlmStart(model=model):
                self._streamed, self._model, self._thought = False, model, ""
                self._show("thinking …")
            case LlmStream(event=TextDelta(delta=delta)):
                self._streamed = True
                self._screen.app.stream(printable(delta))
            case LlmStream(event=ThinkingDelta(delta=delta)):
                self._thought += printable(delta)
                self._show(f"… {self._thought[-MAX_THOUGHT_CHARS:]}")
            case LlmStream(event=ThinkingEnd()):
                self._end_thoughts()
            case LlmEnd(message=message):
                self._screen.app.end_reply()
                self._names = names_written(message)
                found = read_reply(message.text)
                if not self._streamed and (message.tool_calls or found.commands):
                    self._reply(message.text if message.tool_calls else found.prose)
                self._screen.show_status(message.usage.context)
            case ToolStart():
                name = self._names.get(event.tool_call_id, event.tool_name)
                self._running[event.tool_call_id] = call_summary(name, event.args)
                self._show(f"… {self._running[event.tool_call_id]}")
            case ToolUpdate(text=text) if event.tool_call_id in self._running:
                self._show(f"… {self._running[event.tool_call_id]} │ {''.join(text.splitlines()[-1:])}")
            case ToolEnd():
                self._tool_end(event)
            case Withdrawn():
                self._screen.app.withdraw_reply()
                self._streamed = False
            case Done(result=result):
                self._result = result
            case _:
                for line, colour, always in event_lines(event, asked=self._model, in_chat=True):
                    self._line(line, colour, always=always)
                if isinstance(event, Retry):
                    self._model = event.model

    def _end_thoughts(self) -> None:
        lines, self._thought = [(line, "bright_black") for line in self._thought.strip().splitlines()], ""
        if lines and not self._quiet:
            self._screen.app.add_tool("thoughts", lines, failed=False, opened=True)
        self._show("thinking …")

    def _tool_end(self, event: ToolEnd) -> None:
        what = self._running.pop(event.tool_call_id, event.tool_name)
        ending, output = tool_ending(event)
        edits = ToolResult("", "", [], details=event.details).edits
        lines = [(line, "white") for line in printable(event.for_user or "").splitlines()]
        for each in edits:
            lines += coloured_diff(printable(str(each["diff"])))
        if not edits:
            whole = printable(output).strip("\n")
            shown = shorten(whole, lines=MAX_LINES, characters=MAX_CHARS, how="the session has them")
            lines += [(line, "bright_black") for line in shown.splitlines()]
        sign = "✗" if event.is_error else "✓"
        opened = bool(edits or event.for_user)
        if not self._quiet:
            self._screen.app.add_tool(f"{sign} {what}{ending}", lines, failed=event.is_error, opened=opened)
        self._show("thinking …")

    def _reply(self, text: str) -> None:
        self._screen.app.stream(printable(text))
        self._screen.app.end_reply()

    def _show(self, text: str) -> None:
        if not self._quiet:
            self._screen.show(text, self._clock.monotonic())

    def _line(self, text: str, colour: str, *, always: bool = False) -> None:
        if always or not self._quiet:
            say(text, colour)


class _Printed(io.TextIOBase):
    """Stands in for a terminal's stream, and shows each whole line on the screen while that is there."""

    def __init__(self, app: ChatApp, stream: TextIO) -> None:
        self._app = app
        self._stream = stream
        self._unfinished = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not self._app.is_running:
            return self._stream.write(text)
        lines, end, self._unfinished = (self._unfinished + text).rpartition("\n")
        if end:
            self._app.print(lines)
        return len(text)


def _settle(awaited: asyncio.Future[str | None] | None, text: str | None) -> bool:
    """Give it a result, if it waits for one."""
    waits = awaited is not None and not awaited.done()
    if waits:
        awaited.set_result(text)
    return waits
