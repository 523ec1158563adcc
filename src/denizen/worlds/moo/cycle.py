"""The host of the turn that is one cycle of an agent."""

import asyncio
from collections.abc import Callable, Sequence

from denizen.events import LlmEnd, LlmStart, Notice, Retry, RunEvent, ToolEnd, ToolStart
from denizen.ports import Answer, Ask, Control, Stop
from denizen.worlds.moo.tool_actor import ToolActor


class CycleHost:
    """The host of a cycle's turn: no person can be asked."""

    def __init__(self, actor: ToolActor, asks: Callable[[], None], tell: Callable[[str], None]) -> None:
        self._actor = actor
        self._asks = asks
        self._tell = tell
        self._is_calling = False
        self._has_acted = asyncio.Event()

    def emit(self, event: RunEvent) -> None:
        """Pass on what matters here."""
        match event:
            case LlmStart():
                self._is_calling = False
                self._asks()
            case ToolStart():
                self._is_calling = True
            case LlmEnd():
                self._actor.replied()
                self._has_acted.set()
            case ToolEnd():
                self._is_calling = False
                self._actor.ran(event)
                self._has_acted.set()
            case Notice(text=text, level="warning" | "error"):
                self._tell(text)
            case Retry():
                self._tell(f"The model: {event.words}")

    def controls(self) -> Sequence[Control]:
        """A stop, once the cycle is to end; a call that runs isn't cut short."""
        return [Stop()] if self._actor.is_over and not self._is_calling else []

    async def changed(self) -> None:
        """Return once the cycle is to end: a reply or a result says so."""
        while not self.controls():
            self._has_acted.clear()
            await self._has_acted.wait()

    async def ask(self, request: Ask) -> Answer:
        """Refuse: nobody is there to answer, and in a text world no quotation runs (decisions, "Safety")."""
        return Answer(request.call_id, allow=False, text="nobody is there to be asked", unasked=True)
