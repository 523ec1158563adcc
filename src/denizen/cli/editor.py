"""Where a person types messages: line editing, history, several lines. Imports prompt_toolkit."""

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle

Pressed = Callable[[KeyPressEvent], None]


class _Interrupted(Exception):
    """Ctrl-C with nothing typed."""


class Editor:
    """Reads messages; `history` is a file that only the user can read, `words` are completed at the beginning.

    `draft` is what the next prompt begins with.
    """

    def __init__(self, history: Path, words: Sequence[str]) -> None:
        history.touch(mode=0o600)
        self.draft = ""
        self._history = FileHistory(history)
        self._words = WordCompleter([*words], sentence=True)
        self._prompt = self.prompt(keys(_clear_or_leave))

    async def read(self) -> str | None:
        """The next message; None when the person leaves, by Ctrl-D or by Ctrl-C twice where nothing is typed."""
        with contextlib.suppress(EOFError, _Interrupted):
            try:
                return await self._read()
            except _Interrupted:
                click.secho("  Ctrl-C again leaves.", dim=True, err=True)
                return await self._read()
        return None

    def prompt(self, pressed: KeyBindings, *, passing: bool = False) -> PromptSession[str]:
        """A prompt with this history and these completions; of a `passing` one nothing stays on the screen."""
        return PromptSession(
            "> ",
            multiline=True,
            prompt_continuation="… ",
            history=self._history,
            key_bindings=pressed,
            completer=self._words,
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            interrupt_exception=_Interrupted,
            enable_suspend=True,
            erase_when_done=passing,
            refresh_interval=1 if passing else 0,
            output=_output(),
        )

    def holding(self) -> AbstractContextManager[None]:
        """Between prompts too, what is typed waits for the next one: not echoed, and Ctrl-C is a key like others."""
        return self._prompt.input.raw_mode()

    async def _read(self) -> str:
        draft, self.draft = self.draft, ""
        return await self._prompt.prompt_async(default=draft)


def _output() -> Output:
    """The terminal. It isn't asked where its cursor is: its answers might come when nobody waits for them any more."""
    output = create_output(always_prefer_tty=True)
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    return output


def keys(interrupt: Pressed) -> KeyBindings:
    """Enter sends; Alt-Enter, and Enter behind a backslash, begin another line; Ctrl-C is what it is given as."""
    bindings = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER)

    @bindings.add("enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.current_line_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline()
        else:
            buffer.validate_and_handle()

    @bindings.add("escape", "enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline()

    bindings.add("c-c", filter=typing)(interrupt)
    return bindings


def _clear_or_leave(event: KeyPressEvent) -> None:
    """What is cleared can be had again from the history."""
    if event.current_buffer.text:
        event.current_buffer.append_to_history()
        event.current_buffer.reset()
    else:
        event.app.exit(exception=_Interrupted)
