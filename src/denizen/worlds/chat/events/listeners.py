"""Who hears what happens in turns: whoever listens in this process, and the gateway that a worker reports to."""

from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from typing import Any

from denizen.events import RunEvent
from denizen.ports import InboundMessage
from denizen.runtime.clock import Clock
from denizen.worlds.chat.events.metrics import Metrics
from denizen.worlds.chat.events.relay import Audience, Reporter, SideChannel, TurnEvent
from denizen.worlds.chat.ledger.database import Database

OnEvent = Callable[[str, RunEvent], None]
"""Hears the events of all turns; the first argument is the session's key."""


class Listeners:
    """Those `of_all` turns hear all events.

    By the `side` channel a gateway hears those of workers' turns, too, if there may be workers.
    """

    def __init__(self, side: SideChannel | None, database: Database, metrics: Metrics, clock: Clock) -> None:
        self.of_all: list[OnEvent] = []
        self._of_message: dict[str, list[Callable[[TurnEvent], None]]] = {}
        self._side = side
        self._database = database
        self._metrics = metrics
        self._clock = clock
        self._audience: Audience | None = None
        self._reporter: Reporter | None = None

    def hear_workers(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """In a gateway: hear the turns of workers; what is to run for that, until it is cancelled."""
        if not self._side:
            return []
        self._audience = Audience(self._side, self._database, self._tell_here, self._metrics, self._clock)
        return [self._audience.run]

    def report(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """In a worker: report to the gateway; what is to run for that, until it is cancelled."""
        if not self._side:
            return []
        self._reporter = Reporter(self._side, self._database, self._metrics, self._clock)
        return [self._reporter.run]

    def listening(self) -> AbstractAsyncContextManager[None]:
        """Hear the events of workers' turns, too, for as long as the block runs."""
        return self._audience.listening() if self._audience else nullcontext()

    @contextmanager
    def hearing(self, message: InboundMessage, listener: Callable[[TurnEvent], None]) -> Generator[None]:
        """Have the events of a message's turn heard for as long as the block runs."""
        listeners = self._of_message.setdefault(message.id, [])
        listeners.append(listener)
        try:
            yield
        finally:
            listeners.remove(listener)
            if not listeners:
                del self._of_message[message.id]

    def hear(self, message: InboundMessage) -> bool:
        """Whether somebody listens to a message's turn, here or where this worker reports to."""
        here = bool(self.of_all) or message.id in self._of_message
        return here or (self._reporter is not None and self._reporter.is_heard)

    def tell(self, event: TurnEvent) -> None:
        """Tell whoever listens, here or where this worker reports to."""
        self._tell_here(event)
        if self._reporter:
            self._reporter.add(event)

    async def flush(self) -> None:
        """Return when the gateway has all that this worker told, ahead of what is written from now on."""
        if self._reporter:
            await self._reporter.flush()

    async def close(self) -> None:
        """Give the gateway what this worker counted, once its turns have ended."""
        if self._reporter:
            await self._reporter.flush_counts()

    def _tell_here(self, event: TurnEvent) -> None:
        for listener in self.of_all:
            listener(event.session_key, event.event)
        for listener in self._of_message.get(event.message_id, ()):
            listener(event)
