"""The prompt that stays at the bottom of the screen while the agent works. Imports prompt_toolkit."""

import asyncio
import contextlib
import io
import re
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from typing import Any, TextIO, TypeVar

import click
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.key_binding import KeyPressEvent
from prompt_toolkit.layout import ConditionalContainer, FormattedTextControl, HSplit, Window

from denizen.cli.editor import Editor, keys
from denizen.cli.host import COMMAND_SIGNS
from denizen.cli.output import error_width
from denizen.cli.progress import with_seconds
from denizen.cli.text import cut, cut_before, one_line, printable, shorten, wrapped
from denizen.runtime.clock import Clock

TYPING_PAUSE_S = 1.0
"""Seconds without a key after which a question may come between a person and what they are typing."""

REDRAW_INTERVAL_S = 0.05
"""Seconds: what streams in smaller pieces is drawn together."""

MAX_SHOWN_CHARS = 1000
"""Characters that are shown of a message."""

MAX_SHOWN_LINES = 12
"""Lines of it, once the agent has it."""

_Result = TypeVar("_Result")


class _Above(io.TextIOBase):
    """Stands in for a terminal's stream, and has what is printed to it added above the prompt."""

    def __init__(self, stream: TextIO, add: Callable[[TextIO, str], None]) -> None:
        self._stream = stream
        self._add = add

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._add(self._stream, text)
        return len(text)


class LivePrompt:
    """A prompt where a person can type while the agent works; it shows above what is going on, and asks them.

    What is entered is `queued`, which is shown, until a model call is to see it; slash commands stay there until the
    work is over. The last that is queued can be taken back. What is being typed goes over to the editor's next prompt.
    `quiet`: what is going on is not shown. prompt_toolkit's patch_stdout isn't used: it writes from a thread, up to
    0.2 s late, and nobody could wait until a question is on the screen.
    """

    def __init__(self, editor: Editor, clock: Clock, *, quiet: bool = False) -> None:
        self.queued: list[str] = []
        self._editor = editor
        self._clock = clock
        self._quiet = quiet
        self._status: tuple[str, float] | None = None
        self._preview: Sequence[str] = ()
        self._question = self._draft = ""  # what is asked; what was being typed before
        self._answer: asyncio.Future[str | None] | None = None
        self._one_question = asyncio.Lock()
        self._work: asyncio.Task[Any] | None = None
        self._stopped = False
        self._pressed = 0.0
        self._drawn = asyncio.Event()
        self._printed: list[tuple[TextIO, str]] = []  # lines that aren't on the screen yet
        self._unfinished = ""  # a line without an end
        pressed = keys(self._stop, self._send)
        pressed.add("<sigint>")(self._stop)
        empty = Condition(lambda: not self._buffer.text)
        pressed.add("c-d", filter=empty)(lambda _: self._reply(None))
        pressed.add("up", filter=empty & Condition(lambda: bool(self.queued) and not self._answer))(self._take_back)
        self._prompt = self._editor.prompt(pressed, transient=True)
        self._prompt.message = lambda: "? " if self._answer else "> "
        self._buffer = self._prompt.default_buffer
        self._buffer.accept_handler = self._queue
        self._buffer.on_text_changed += self._note_time
        above = Window(FormattedTextControl(self._rows), wrap_lines=True, dont_extend_height=True)
        shown = ConditionalContainer(above, Condition(self._has_rows))
        self._prompt.app.min_redraw_interval = REDRAW_INTERVAL_S
        self._prompt.app.before_render += self._write
        self._prompt.app.after_render += self._note_drawn
        self._prompt.layout.container = HSplit([shown, self._prompt.layout.container])

    async def read(self) -> str | None:
        """The next message, queued or typed at the editor; None when the person leaves."""
        return self.queued.pop(0) if self.queued else await self._editor.read()

    async def run(self, work: Coroutine[Any, Any, _Result], stopped: _Result) -> _Result:
        """Do the work while the person types; `stopped` where Ctrl-C stopped it."""
        task = self._work = asyncio.create_task(work)  # it begins before a key can stop it
        self._stopped = False
        async with self._typing() as typing:
            typing.add_done_callback(lambda _: task.cancel())  # who can't see it and stop it doesn't let it run
            with self._printing_above():
                try:
                    result = await task
                except asyncio.CancelledError:
                    current = asyncio.current_task()
                    if not self._stopped or (current and current.cancelling()):
                        raise
                    return stopped
                return stopped if self._stopped else result

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
                self._editor.draft, self._status, self._preview = self._buffer.text, None, ()
                # Where a line of the history is shown, have the one that it was left for there too.
                shown = self._buffer.working_index
                self._buffer.history_forward(sys.maxsize)
                if self._buffer.working_index != shown:
                    self._buffer.append_to_history()
                self._write()  # last: the terminal may be gone

    def restore_unsent(self, unsent: Sequence[str]) -> None:
        """Make that, and what is queued, the beginning of the next prompt."""
        self._editor.draft = join_lines(*unsent, *self.queued, self._editor.draft)
        self.queued.clear()

    def show(self, text: str, since: float) -> None:
        """Show what has been going on `since` a time of the clock's stopwatch."""
        self._status, self._preview = None if self._quiet else (one_line(text), since), ()
        self._prompt.app.invalidate()

    def preview(self, lines: Sequence[str]) -> None:
        """Show lines that are to be replaced, none wider than the terminal."""
        self._preview = lines
        self._prompt.app.invalidate()

    def clear(self) -> None:
        """Take that away."""
        self._status, self._preview = None, ()
        self._prompt.app.invalidate()

    def waiting(self) -> Sequence[str]:
        """Hand over the messages that were entered meanwhile, and show them as said."""
        delivered = [text for text in self.queued if not text.startswith(COMMAND_SIGNS)]
        self.queued = [text for text in self.queued if text.startswith(COMMAND_SIGNS)]
        for text in delivered:
            shown = shorten(
                printable(text), lines=MAX_SHOWN_LINES, characters=MAX_SHOWN_CHARS, how="the agent has them"
            )
            click.echo("> " + re.sub("\n(?!… )", "\n… ", shown), err=True)
        return delivered

    async def ask(self, question: str, prompt: str) -> str | None:
        """What the person answers; None for Ctrl-D. What they were typing is put aside meanwhile.

        No key that came before the question was on the screen is an answer to it.
        """
        async with self._one_question:
            await self._shown()
            while self._buffer.text and (left := self._pressed + TYPING_PAUSE_S - self._clock.monotonic()) > 0:
                self.show("a question will appear when you pause", self._clock.monotonic())
                await self._clock.sleep(left)
            self.clear()
            click.echo(f"\n{question}", err=True)
            await self._shown()
            words = await self._answered(prompt)
            click.echo(f"{prompt}: {printable(words or '')}", err=True)
            return words

    async def _shown(self) -> None:
        """Wait until all there is to see was drawn, and take in every key that came before."""
        self._drawn.clear()
        self._prompt.app.invalidate()
        await self._drawn.wait()
        processor = self._prompt.app.key_processor
        while pressed := self._prompt.input.read_keys():
            processor.feed_multiple(pressed)
            processor.process_keys()

    async def _answered(self, prompt: str) -> str | None:
        self._question, self._draft = prompt, self._buffer.text
        answer = self._answer = asyncio.get_running_loop().create_future()
        self._buffer.document = Document()
        self._prompt.app.invalidate()
        try:
            return await answer
        finally:
            if self._answer:
                self._go_back_to(join_lines(self._draft, self._buffer.text))

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
        """Answer; what is typed right after that belongs to the draft again."""
        if self._answer and not self._answer.done():
            self._answer.set_result(words)
            self._go_back_to(self._draft)

    def _go_back_to(self, draft: str) -> None:
        self._question, self._draft, self._answer = "", "", None
        self._buffer.document = Document(draft)

    def _take_back(self, _: KeyPressEvent) -> None:
        self._buffer.document = Document(self.queued.pop())

    def _stop(self, _: KeyPressEvent) -> None:
        """Stop the work, once: how it ends is not to be interrupted."""
        if self._work and not self._stopped:
            self._stopped = True
            self._work.cancel()
            self.show("stopping …", self._clock.monotonic())

    def _note_drawn(self, _: object) -> None:
        self._drawn.set()

    def _note_time(self, _: object) -> None:
        self._pressed = self._clock.monotonic()

    @contextlib.contextmanager
    def _printing_above(self) -> Generator[None]:
        """Have what is printed to the terminal, by whomever, above the prompt."""
        out, err = (_Above(stream, self._print) if stream.isatty() else stream for stream in (sys.stdout, sys.stderr))
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                yield
        finally:
            if self._unfinished:
                self._print(sys.stderr, "\n")

    def _print(self, stream: TextIO, text: str) -> None:
        lines, end, self._unfinished = (self._unfinished + text).rpartition("\n")
        if end:
            self._printed.append((stream, lines + end))
        self._prompt.app.invalidate()

    def _write(self, _: object = None) -> None:
        """Write the whole lines that were printed; the prompt comes back below them."""
        if self._printed:
            self._prompt.app.renderer.erase()
            for stream, text in self._printed:
                stream.write(text)
                stream.flush()
            self._printed.clear()

    def _has_rows(self) -> bool:
        return bool(self._preview or self.queued or self._question or self._status)

    def _rows(self) -> StyleAndTextTuples:
        cells, screen = error_width() - 1, self._prompt.output.get_size()
        last = self.queued[-max(screen.rows // 4, 1) :]
        below = [f"  queued: {one_line(text[:MAX_SHOWN_CHARS])}" for text in last]
        if below:
            below[-1] = cut_before(below[-1], " · ↑ takes it back", cells)
        if self._question:
            below += [f"  set aside: {one_line(self._draft[:MAX_SHOWN_CHARS])}"] if self._draft else []
            below += wrapped(self._question, cells).split("\n")[: max(screen.rows // 2, 1)]
        elif self._status:
            text, since = self._status
            below.append(with_seconds(text, self._clock.monotonic() - since, cells))
        shown = [*to_formatted_text(ANSI("\n".join(self._preview)))]
        if self._preview and below:
            shown.append(("", "\n"))
        shown.append(("fg:ansibrightblack", "\n".join(cut(row, cells) for row in below)))
        return shown


def join_lines(*texts: str) -> str:
    """What there is of the texts, each in lines of its own."""
    return "\n".join(filter(None, texts))
