"""Where a person types messages: line editing, history, several lines. Imports prompt_toolkit."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import create_output
from prompt_toolkit.shortcuts import CompleteStyle


class _Interrupted(Exception):
    """Ctrl-C with nothing typed."""


class Editor:
    """Reads messages; `history` is a file that only the user can read, `words` are completed at the beginning."""

    def __init__(self, history: Path, words: Sequence[str]) -> None:
        history.touch(mode=0o600)
        self._prompt: PromptSession[str] = PromptSession(
            "> ",
            multiline=True,
            prompt_continuation="… ",
            history=FileHistory(history),
            key_bindings=_keys(),
            completer=WordCompleter([*words], sentence=True),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            interrupt_exception=_Interrupted,
            output=create_output(always_prefer_tty=True),
        )

    async def read(self) -> str | None:
        """The next message; None when the person leaves, by Ctrl-D or by Ctrl-C twice where nothing is typed."""
        with contextlib.suppress(EOFError, _Interrupted):
            try:
                return await self._prompt.prompt_async()
            except _Interrupted:
                click.secho("  Ctrl-C again leaves.", dim=True, err=True)
                return await self._prompt.prompt_async()
        return None


def _keys() -> KeyBindings:
    keys = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER)

    @keys.add("enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.current_line_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline()
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline()

    @keys.add("c-c", filter=typing)
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=_Interrupted)

    return keys
