"""Passes the events of turns to listeners in this process, and to the gateway that a worker reports to."""

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
"""Gets the events of all turns, each with its session's key."""


class Listeners:
    """The listeners of turns; those in `of_all` get all events, and those in `of_turns` get them with their turn.

    Turns of messages from a channel that `is_live` are streamed. A gateway also gets the events of workers' turns, by
    the `side` channel, if there may be workers.
    """

    def __init__(self, side: SideChannel | None, database: Database, metrics: Metrics, clock: Clock) -> None:
        self.of_all: list[OnEvent] = []
        self.of_turns: list[Callable[[TurnEvent], None]] = []
        self.is_live: Callable[[str], bool] = lambda _: False
        self._of_message: dict[str, list[Callable[[TurnEvent], None]]] = {}
        self._side = side
        self._database = database
        self._metrics = metrics
        self._clock = clock
        self._audience: Audience | None = None
        self._reporter: Reporter | None = None

    def hear_workers(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """For a gateway: the coroutines that receive the events of workers until they are cancelled."""
        if not self._side:
            return []
        self._audience = Audience(self._side, self._database, self._publish_here, self._metrics, self._clock)
        return [self._audience.run]

    def report(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """For a worker: the coroutines that report to the gateway until they are cancelled."""
        if not self._side:
            return []
        self._reporter = Reporter(self._side, self._database, self._metrics, self._clock)
        return [self._reporter.send_events, self._reporter.send_counts]

    def listening(self) -> AbstractAsyncContextManager[None]:
        """Receive the events of workers' turns, too, for as long as the block runs."""
        return self._audience.listening() if self._audience else nullcontext()

    @contextmanager
    def subscribed(self, message: InboundMessage, listener: Callable[[TurnEvent], None]) -> Generator[None]:
        """Pass the events of a message's turn to `listener` for as long as the block runs."""
        listeners = self._of_message.setdefault(message.id, [])
        listeners.append(listener)
        try:
            yield
        finally:
            listeners.remove(listener)
            if not listeners:
                del self._of_message[message.id]

    def has_listener(self, message: InboundMessage) -> bool:
        """Whether somebody listens to a message's turn, here or where this worker reports to."""
        is_heard_here = bool(self.of_all) or message.id in self._of_message or self.is_live(message.channel)
        return is_heard_here or (self._reporter is not None and self._reporter.is_heard)

    def publish(self, event: TurnEvent) -> None:
        """Pass an event to the listeners, here and at the gateway."""
        self._publish_here(event)
        if self._reporter:
            self._reporter.add(event)

    async def flush(self) -> None:
        """Return once the gateway has all events of this worker, ahead of its later writes."""
        if self._reporter:
            await self._reporter.flush()

    async def close(self) -> None:
        """Send this worker's last counts to the gateway, once its turns have ended."""
        if self._reporter:
            await self._reporter.flush_counts()

    def _publish_here(self, event: TurnEvent) -> None:
        for listener in self.of_all:
            listener(event.session_key, event.event)
        for listener in (*self.of_turns, *self._of_message.get(event.message_id, ())):
            listener(event)
