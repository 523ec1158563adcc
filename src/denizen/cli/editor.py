"""Where a person types messages: line editing, history, several lines. Imports prompt_toolkit."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Generator, Iterable
from pathlib import Path

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle

from denizen.cli.completion import PromptCompleter
from denizen.runtime.clock import Clock

IGNORE_CTRL_C_S = 1.0
"""Seconds in which Ctrl-C doesn't clear what came back from a turn: who stops one often presses it twice."""

_TYPING = has_focus(DEFAULT_BUFFER)

Pressed = Callable[[KeyPressEvent], None]
Send = Callable[[Buffer], None]


class _Interrupted(Exception):
    """Ctrl-C with nothing typed."""


class History(FileHistory):
    """What was said, in a file that only the user can read; `trouble` is why it can't be kept there."""

    trouble = ""

    def load_history_strings(self) -> Iterable[str]:
        try:
            return super().load_history_strings()
        except OSError as error:
            self.trouble = f"The history can't be read: {error}."
            return ()

    def store_string(self, string: str) -> None:
        try:
            Path(os.fsdecode(self.filename)).touch(mode=0o600)
            super().store_string(string)
        except OSError as error:
            self.trouble = f"The history isn't kept: {error}."


class Editor:
    """Reads messages; `history` is a file that only the user can read.

    `draft` is what the next prompt begins with; what is left of it at the end goes into the history.
    """

    def __init__(self, history: Path, completer: PromptCompleter, clock: Clock) -> None:
        self.draft = ""
        self._clock = clock
        self._given = ("", 0.0)  # what the prompt began with, and when
        self._history = History(history)
        self._completer = completer
        self._prompt = self.prompt(keys(self._clear_or_leave))

    async def read(self) -> str | None:
        """The next message; None when the person leaves, by Ctrl-D or by Ctrl-C twice where nothing is typed."""
        with contextlib.suppress(EOFError, _Interrupted):
            try:
                return await self._read()
            except _Interrupted:
                click.secho("  Press Ctrl-C again to leave.", dim=True, err=True)
                return await self._read()
        return None

    def prompt(self, pressed: KeyBindings, *, transient: bool = False) -> PromptSession[str]:
        """A prompt with this history and these completions; of a `transient` one nothing stays on the screen."""
        only_one = Condition(lambda: bool(self._completer.only_command(get_app().current_buffer.text)))
        pressed.add("tab", filter=_TYPING & only_one)(self._complete_command)
        output = create_output(always_prefer_tty=True)
        if isinstance(output, Vt100_Output):  # where the cursor is, isn't asked: the answer might come too late
            output.enable_cpr = False
        return PromptSession(
            "> ",
            multiline=True,
            prompt_continuation="… ",
            history=self._history,
            key_bindings=pressed,
            completer=self._completer,
            complete_while_typing=Condition(lambda: PromptCompleter.applies(get_app().current_buffer.text)),
            complete_style=CompleteStyle.COLUMN,
            enable_open_in_editor=True,
            tempfile_suffix=".md",
            interrupt_exception=_Interrupted,
            enable_suspend=True,
            erase_when_done=transient,
            refresh_interval=1 if transient else 0,
            output=output,
        )

    @contextlib.contextmanager
    def holding(self) -> Generator[None]:
        """Between prompts too, what is typed waits for the next one: not echoed, and Ctrl-C is a key like others."""
        with self._raw_mode():
            try:
                yield
            finally:
                if self.draft:
                    self._history.append_string(self.draft)

    @contextlib.contextmanager
    def _raw_mode(self) -> Generator[None]:
        """Treat Ctrl-J as Enter for keys typed before raw mode, because the terminal translated them."""
        source = self._prompt.input
        with source.raw_mode():
            enter = KeyPress(Keys.Enter, "\r")
            store_typeahead(source, [enter if press.key is Keys.ControlJ else press for press in source.read_keys()])
            yield

    async def _read(self) -> str:
        draft, self.draft = self.draft, ""
        self._given = (draft, self._clock.monotonic())
        if self._history.trouble:
            click.secho(f"  {self._history.trouble}", fg="yellow", err=True)
            self._history.trouble = ""
        try:
            with self._raw_mode():
                return await self._prompt.prompt_async(default=draft)
        except asyncio.CancelledError:
            self.draft = self._prompt.default_buffer.text
            raise

    def _complete_command(self, event: KeyPressEvent) -> None:
        """Complete at once, in case Enter follows; other completions come asynchronously."""
        event.current_buffer.document = Document(self._completer.only_command(event.current_buffer.text))

    def _clear_or_leave(self, event: KeyPressEvent) -> None:
        """What is cleared can be had again from the history; what has only just come back isn't."""
        text = event.current_buffer.text
        draft, since = self._given
        if text == draft and text and self._clock.monotonic() - since < IGNORE_CTRL_C_S:
            return
        if text:
            event.current_buffer.append_to_history()
            event.current_buffer.reset()
        else:
            event.app.exit(exception=_Interrupted)


def keys(interrupt: Pressed, send: Send = Buffer.validate_and_handle) -> KeyBindings:
    """Enter sends; Ctrl-J, Alt-Enter, and Enter after a backslash start a new line; Ctrl-C calls `interrupt`."""
    bindings = KeyBindings()

    @bindings.add("enter", filter=_TYPING)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.current_line_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline()
        else:
            send(buffer)

    @bindings.add("c-j", filter=_TYPING)
    @bindings.add("escape", "enter", filter=_TYPING)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline()

    bindings.add("c-c", filter=_TYPING)(interrupt)
    return bindings
