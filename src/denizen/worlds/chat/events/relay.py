"""How the gateway hears what happens in the turns of workers, while it happens.

It goes through NOTIFY of the database that they share: what is lost with a connection stays lost, as events are never
the record.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from denizen.errors import DenizenError
from denizen.events import LlmStream, RunEvent, TextDelta
from denizen.runtime.clock import Clock
from denizen.worlds.chat.events.metrics import Count, Metrics
from denizen.worlds.chat.ledger.database import Database, WorkerTiming

LISTENING, REPORTS = "listening", "reports"
"""Subjects: the gateway announces to all processes that somebody listens; workers report to the gateway."""
BATCH_S = 0.05
"""Seconds for which a worker gathers events, before it sends them together."""
MAX_PIECE_BYTES = 7_900
"""Bytes of a piece of a report: a notification has less than 8,000, with its prefix."""
_ENCODER = msgspec.json.Encoder(enc_hook=repr)
_log = logging.getLogger(__name__)


class SideChannel(NamedTuple):
    """Sends notifications to other processes: `send` takes a subject and texts, which arrive together and in order."""

    send: Callable[[str, Sequence[str]], Awaitable[None]]
    timing: WorkerTiming


class TurnEvent(msgspec.Struct, frozen=True, array_like=True):
    """An event, and whose it is: number `first` to `last` of that attempt at the message's turn.

    One of no message's turn has an attempt of 0.
    """

    session_key: str
    message_id: str
    attempt: int
    first: int
    last: int
    event: RunEvent

    def joined(self, later: "TurnEvent") -> "TurnEvent | None":
        """Both as one; None: they aren't two pieces of one text."""
        match self.event, later.event:
            case LlmStream(TextDelta(begin)), LlmStream(TextDelta(rest)) if self._is_followed_by(later):
                return msgspec.structs.replace(self, last=later.last, event=LlmStream(TextDelta(begin + rest)))
        return None

    def _is_followed_by(self, later: "TurnEvent") -> bool:
        return (self.message_id, self.attempt, self.last + 1) == (later.message_id, later.attempt, later.first)


class _Report(msgspec.Struct, frozen=True, array_like=True):
    events: Sequence[msgspec.Raw] = ()
    counts: Sequence[Count] = ()


class Reporter:
    """In a worker: sends its counts to the gateway and, while somebody listens there, the events of its turns."""

    def __init__(self, side: SideChannel, database: Database, metrics: Metrics, clock: Clock) -> None:
        self._side = side
        self._metrics = metrics
        self._clock = clock
        self._until = clock.monotonic() + side.timing.stalled  # the gateway announces listeners only now and then
        self._gathered: list[TurnEvent] = []
        self._news = asyncio.Event()
        self._sending = asyncio.Lock()
        database.news[LISTENING] = self._hear

    @property
    def is_heard(self) -> bool:
        """Whether somebody listens."""
        return self._clock.monotonic() < self._until

    def add(self, event: TurnEvent) -> None:
        """Send an event soon, if somebody listens."""
        if not self.is_heard:
            return
        if self._gathered and (both := self._gathered[-1].joined(event)):
            self._gathered[-1] = both
        else:
            self._gathered.append(event)
        self._news.set()

    async def flush(self) -> None:
        """Send the gathered events; the gateway gets them before anything that is written later."""
        async with self._sending:
            if gathered := self._gathered:
                self._gathered = []
                await self._send(_Report(events=[raw for raw in map(_encoded, gathered) if raw]))

    async def flush_counts(self) -> None:
        """Send the counts; after a failure, they are sent the next time."""
        if (counts := self._metrics.take()) and not await self._send(_Report(counts=counts)):
            self._metrics.add_counts(counts)

    async def send_events(self) -> None:
        """Send the events soon after they happen, until cancelled."""
        while True:
            await self._news.wait()
            await self._clock.sleep(BATCH_S)
            self._news.clear()
            await self.flush()

    async def send_counts(self) -> None:
        """Send the counts with each heartbeat, until cancelled."""
        while True:
            await self._clock.sleep(self._side.timing.heartbeat)
            await self.flush_counts()

    async def _send(self, report: _Report) -> bool:
        pieces = [*_split(_ENCODER.encode(report), MAX_PIECE_BYTES)]
        try:
            await self._side.send(REPORTS, [f"{at}/{len(pieces)} {piece}" for at, piece in enumerate(pieces, 1)])
        except DenizenError:  # reported by the writers
            return False
        return True

    def _hear(self, seconds: str) -> None:
        if seconds:
            self._until = self._clock.monotonic() + float(seconds)


@dataclass(eq=False)
class Audience:
    """In the gateway: asks workers for events while somebody listens, and receives their events and counts."""

    side: SideChannel
    database: Database
    on_event: Callable[[TurnEvent], None]
    metrics: Metrics
    clock: Clock

    def __post_init__(self) -> None:
        self._listeners = 0
        self._announced = float("-inf")
        self._pieces: list[str] = []
        self.database.news[REPORTS] = self._hear

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[None]:
        """Have workers report the events of their turns for as long as the block runs."""
        self._listeners += 1
        try:
            await self._announce()
            yield
        finally:
            self._listeners -= 1

    async def run(self) -> None:
        """Keep the workers reporting while somebody listens, until cancelled."""
        while True:
            await self.clock.sleep(self.side.timing.heartbeat)
            if self._listeners:
                await self._announce()

    async def _announce(self) -> None:
        if self.clock.monotonic() - self._announced < self.side.timing.heartbeat:
            return
        with suppress(DenizenError):  # announced again soon
            await self.side.send(LISTENING, [f"{self.side.timing.stalled:g}"])
            self._announced = self.clock.monotonic()

    def _hear(self, said: str) -> None:
        """Receive a piece of a report. Its pieces arrive together, except for lost ones."""
        if not said:
            return
        place, _, piece = said.partition(" ")
        at, _, count = place.partition("/")
        if at == "1":
            self._pieces.clear()
        self._pieces.append(piece)
        if at != count or at != str(len(self._pieces)):
            return
        try:
            report = msgspec.json.decode("".join(self._pieces), type=_Report)
            events = [msgspec.json.decode(raw, type=TurnEvent) for raw in report.events]
        except msgspec.DecodeError as error:
            _log.warning("A worker's report can't be read; do gateway and worker have the same version? %s", error)
            return
        for event in events:
            self.on_event(event)
        self.metrics.add_counts(report.counts)


def _encoded(event: TurnEvent) -> msgspec.Raw | None:
    try:
        return msgspec.Raw(_ENCODER.encode(event))
    except (TypeError, ValueError, RecursionError):  # half a character: listeners notice that it is missing
        return None


def _split(data: bytes, most: int) -> Iterator[str]:
    """Text in pieces of at most `most` bytes."""
    while data:
        end = most
        while end < len(data) and data[end] & 0xC0 == 0x80:  # in the middle of a character
            end -= 1
        yield data[:end].decode()
        data = data[end:]
