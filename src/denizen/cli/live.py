"""The prompt that stays at the bottom of the screen while the agent works. Imports prompt_toolkit."""

import asyncio
import contextlib
import re
import sys
from collections.abc import AsyncGenerator, Coroutine, Generator, Sequence
from typing import Any, TypeVar

import click
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.key_binding import KeyPressEvent
from prompt_toolkit.layout import ConditionalContainer, FormattedTextControl, HSplit, Window

from denizen.cli.above import Above, Page
from denizen.cli.editor import Editor, keys
from denizen.cli.passing import columns, fitting, going_on
from denizen.cli.text import cut, one_line, pieces, printable, shorten
from denizen.clock import Clock

PAUSE = 1.0
"""Seconds without a key after which a question may come between a person and what they are typing."""

BETWEEN_DRAWINGS = 0.05
"""Seconds: what streams in smaller pieces is drawn together."""

LONGEST = 1000
"""Characters that are shown of a message."""

SHOWN_LINES = 12
"""Lines of it, once it is heard."""

_Result = TypeVar("_Result")


class Live:
    """Lets a person type while the agent works, shows above that what is going on, and asks them.

    What is entered is `queued`, which is shown, until it is `heard` in this run; slash commands stay there until it is
    over, and the last can be taken back. What is being typed goes over to the editor's next prompt. `quiet`: what is
    going on is not shown.
    """

    def __init__(self, editor: Editor, clock: Clock, *, quiet: bool = False) -> None:
        self.queued: list[str] = []
        self.heard: list[str] = []
        self._editor = editor
        self._clock = clock
        self._quiet = quiet
        self._status: tuple[str, float] | None = None
        self._preview: Sequence[str] = ()
        self._question = self._aside = ""
        self._answer: asyncio.Future[str | None] | None = None
        self._one_question = asyncio.Lock()
        self._work: asyncio.Task[Any] | None = None
        self._stopped = False
        self._pressed = 0.0
        self._drawn = asyncio.Event()
        self._drawing: asyncio.TimerHandle | None = None
        self._page = Page(self._changed)
        self._make_prompt()

    def _make_prompt(self) -> None:
        pressed = keys(self._stop, self._send)
        pressed.add("<sigint>")(self._stop)
        empty = Condition(lambda: not self._buffer.text)
        pressed.add("c-d", filter=empty)(self._leave)
        pressed.add("up", filter=empty & Condition(lambda: bool(self.queued) and not self._answer))(self._take_back)
        self._prompt = self._editor.prompt(pressed, passing=True)
        self._prompt.message = lambda: "? " if self._answer else "> "
        self._buffer = self._prompt.default_buffer
        self._buffer.accept_handler = self._queue
        self._buffer.on_text_changed += self._note
        above = Window(FormattedTextControl(self._rows), wrap_lines=True, dont_extend_height=True)
        shown = ConditionalContainer(above, Condition(self._has_rows))
        self._prompt.app.before_render += self._write
        self._prompt.app.after_render += self._tell_drawn
        self._prompt.layout.container = HSplit([shown, self._prompt.layout.container])

    async def run(self, work: Coroutine[Any, Any, _Result], stopped: _Result) -> _Result:
        """Do the work while the person types; `stopped` where Ctrl-C stopped it."""
        self.heard.clear()
        task = self._work = asyncio.create_task(work)  # it begins before a key can stop it
        self._stopped = False
        async with self._typing() as typing:
            typing.add_done_callback(lambda _: task.cancel())  # who can't see it and stop it doesn't let it run
            try:
                with self._printing_above():
                    result = await task
                return stopped if self._stopped else result
            except asyncio.CancelledError:
                current = asyncio.current_task()
                if not self._stopped or (current and current.cancelling()):
                    raise
                return stopped

    @contextlib.asynccontextmanager
    async def _typing(self) -> AsyncGenerator[asyncio.Task[str]]:
        draft = self._editor.draft
        typing = asyncio.create_task(self._prompt.prompt_async(default=draft, set_exception_handler=False))
        try:
            yield typing
        finally:
            typing.cancel()
            try:
                await asyncio.wait([typing])
            finally:
                await asyncio.wait([typing])  # also where this is cancelled: it gives the terminal back
                self._write()
                self._editor.draft, self._status, self._preview = self._buffer.text, None, ()
                self._keep_line_left_for_history()

    def _keep_line_left_for_history(self) -> None:
        """Where a line of the history is shown, have the one that it was left for there too."""
        shown = self._buffer.working_index
        self._buffer.history_forward(sys.maxsize)
        if self._buffer.working_index != shown:
            self._buffer.append_to_history()

    def bring_back(self, unsaid: Sequence[str]) -> None:
        """Make that, and what is queued, the beginning of the next prompt."""
        self._editor.draft = _joined(*unsaid, *self.queued, self._editor.draft)
        self.queued.clear()

    def show(self, text: str, since: float) -> None:
        """Show what has been going on `since` a time of the clock's stopwatch."""
        self._status, self._preview = None if self._quiet else (one_line(text), since), ()
        self._changed()

    def preview(self, lines: Sequence[str]) -> None:
        """Show lines that are to be replaced, none wider than the terminal."""
        self._preview = lines
        self._changed()

    def clear(self) -> None:
        """Take that away."""
        self._status, self._preview = None, ()
        self._changed()

    def waiting(self) -> Sequence[str]:
        """The messages that were entered meanwhile; from now on they count as said."""
        heard = [text for text in self.queued if not text.startswith("/")]
        self.heard += heard
        self.queued = [text for text in self.queued if text.startswith("/")]
        for text in heard:
            shown = shorten(printable(text), lines=SHOWN_LINES, characters=LONGEST, how="the agent has them")
            click.echo("> " + re.sub("\n(?!… )", "\n… ", shown), err=True)
        return heard

    async def ask(self, question: str, prompt: str) -> str | None:
        """What the person answers; None for Ctrl-D. What they were typing is set aside meanwhile.

        No key that came before the question was on the screen is an answer to it.
        """
        async with self._one_question:
            await self._shown()
            await self._pause()
            click.echo(f"\n{question}", err=True)
            await self._shown()
            words = await self._answered(prompt)
            click.echo(f"{prompt}: {printable(words or '')}", err=True)
            return words

    async def _shown(self) -> None:
        """Wait until all there is to see was drawn, and take in every key that came before."""
        self._drawn.clear()
        self._changed()
        await self._drawn.wait()
        processor = self._prompt.app.key_processor
        while pressed := self._prompt.input.read_keys():
            processor.feed_multiple(pressed)
            processor.process_keys()

    def _tell_drawn(self, _: object) -> None:
        self._drawn.set()

    async def _pause(self) -> None:
        """Wait until nobody is in the middle of a word."""
        while self._buffer.text and (left := self._pressed + PAUSE - self._clock.monotonic()) > 0:
            self.show("a question comes when you pause", self._clock.monotonic())
            await self._clock.sleep(left)
        self.clear()

    async def _answered(self, prompt: str) -> str | None:
        self._question, self._aside = prompt, self._buffer.text
        answer = self._answer = asyncio.get_running_loop().create_future()
        self._buffer.document = Document()
        self._changed()
        try:
            return await answer
        finally:
            if self._answer:
                self._go_back_to(_joined(self._aside, self._buffer.text))

    def _send(self, buffer: Buffer) -> None:
        """Take in what was typed; an answer doesn't go into the history."""
        if self._answer:
            self._reply(buffer.text)
        else:
            buffer.validate_and_handle()

    def _queue(self, buffer: Buffer) -> bool:
        if text := buffer.text.strip():
            self.queued.append(text)
        return False  # the prompt is to be emptied

    def _reply(self, words: str | None) -> None:
        """Answer; what is typed right behind that belongs to the draft again."""
        if self._answer and not self._answer.done():
            self._answer.set_result(words)
            self._go_back_to(self._aside)

    def _go_back_to(self, draft: str) -> None:
        self._question, self._aside, self._answer = "", "", None
        self._buffer.document = Document(draft)

    def _leave(self, _: KeyPressEvent) -> None:
        self._reply(None)

    def _take_back(self, _: KeyPressEvent) -> None:
        self._buffer.document = Document(self.queued.pop())

    def _stop(self, _: KeyPressEvent) -> None:
        """Stop the work, once: how it ends is not to be interrupted."""
        if self._work and not self._stopped:
            self._stopped = True
            self._work.cancel()
            self.show("stopping …", self._clock.monotonic())

    def _changed(self) -> None:
        if self._drawing is None:
            self._drawing = asyncio.get_running_loop().call_later(BETWEEN_DRAWINGS, self._draw)

    def _draw(self) -> None:
        self._drawing = None
        self._prompt.app.invalidate()

    def _note(self, _: object) -> None:
        self._pressed = self._clock.monotonic()

    @contextlib.contextmanager
    def _printing_above(self) -> Generator[None]:
        """Have what is printed to the terminal, by whomever, above the prompt."""
        out, err = (Above(stream, self._page) if stream.isatty() else stream for stream in (sys.stdout, sys.stderr))
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                yield
        finally:
            if self._page.unfinished:
                self._page.add(sys.stderr, "\n")

    def _write(self, _: object = None) -> None:
        """Write what was printed; the prompt comes back below it."""
        if self._page:
            self._prompt.app.renderer.erase()
            self._page.write()

    def _has_rows(self) -> bool:
        return bool(self._preview or self.queued or self._question or self._status)

    def _rows(self) -> StyleAndTextTuples:
        cells, screen = columns() - 1, self._prompt.output.get_size()
        last = self.queued[-max(screen.rows // 4, 1) :]
        below = [f"  queued: {one_line(text[:LONGEST])}" for text in last]
        if below:
            below[-1] = fitting(below[-1], " · ↑ takes it back", cells)
        if self._question:
            below += [f"  set aside: {one_line(self._aside[:LONGEST])}"] if self._aside else []
            below += pieces(self._question, cells)[: max(screen.rows // 2, 1)]
        elif self._status:
            text, since = self._status
            below.append(going_on(text, self._clock.monotonic() - since, cells))
        shown = [*to_formatted_text(ANSI("\n".join(self._preview)))]
        if self._preview and below:
            shown.append(("", "\n"))
        shown.append(("fg:ansibrightblack", "\n".join(cut(row, cells) for row in below)))
        return shown


def _joined(*texts: str) -> str:
    return "\n".join(filter(None, texts))
