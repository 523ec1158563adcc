"""What a running tool shows."""

import asyncio
import threading

from denizen.engine.turn import Turn
from denizen.events import ToolUpdate
from denizen.messages import ToolCall


class Progress:
    """Passes a call's output on while it runs, without secrets; also from the thread that a plain function runs in."""

    def __init__(self, turn: Turn, call: ToolCall) -> None:
        self._turn = turn
        self._call = call
        self._stream = turn.agent.redactor.stream()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._over = False

    def emit(self, text: str) -> None:
        """Show some more."""
        if threading.get_ident() == self._thread:
            self._show(self._stream.feed(text))
        else:
            self._loop.call_soon_threadsafe(lambda: self._show(self._stream.feed(text)))

    def end(self) -> None:
        """Show what was held back; nothing comes after it."""
        self._show(self._stream.flush())
        self._over = True

    def _show(self, text: str) -> None:
        if text and not self._over:
            self._turn.emit(ToolUpdate(self._call.name, self._call.id, text))
