"""The outbox: sends messages, in each chat in order, and never twice by itself."""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from denizen.ports import Channel, InboundMessage, OutboundMessage, Sent
from denizen.runtime.clock import Clock
from denizen.worlds.chat.ledger import outbound
from denizen.worlds.chat.ledger.database import Database
from denizen.worlds.chat.ledger.outbound import OutboxRow, OutboxState

RECONCILE_DELAYS_S = (1.0, 10.0, 60.0)
"""Seconds before a channel is asked again about a message whose delivery is unknown."""
_GAP = re.compile(r"\A(?:(?: *\n)+| +)")
"""Between two pieces: the end of a line and blank lines, without the next line's indentation; or spaces."""
_log = logging.getLogger(__name__)


class Outbox:
    """Sends messages to these channels, by name; messages to other channels fail, unless those are `POLLED`.

    A message is marked `sending` before its channel gets it. If the process dies in between, or the delivery is
    unknown, the channel gets it again with the same id, and reports what happened. `sends` counts the reports.
    """

    def __init__(self, database: Database, channels: Mapping[str, Channel], *, clock: Clock) -> None:
        self.database = database
        self.channels = channels
        self.sends = Counter[str]()
        self._clock = clock
        self._news = asyncio.Event()
        self._readers: WeakValueDictionary[tuple[str, str], asyncio.Event] = WeakValueDictionary()
        database.news["outbox"] = self._hear

    async def put(self, message: OutboundMessage) -> None:
        """Queue a message. Raises LedgerError."""
        await self.database.run(partial(outbound.add_outbound, message=message))
        self.database.ring()  # one from another session is also a message to its chat's session
        self.added(message)

    def added(self, message: OutboundMessage | InboundMessage) -> None:
        """Wake the readers of this message's chat."""
        self._tell([(message.channel, message.chat)])

    def _hear(self, chat: str) -> None:
        """Wake readers after a write by another process: to a chat, as JSON, or to any."""
        try:
            self._tell([msgspec.json.decode(chat, type=tuple[str, str])])
        except msgspec.DecodeError:
            self._tell([*self._readers])
            self._news.set()

    def _tell(self, chats: Iterable[tuple[str, str]]) -> None:
        for chat in chats:
            if reader := self._readers.pop(chat, None):
                reader.set()
            if chat[0] not in outbound.POLLED:
                self._news.set()

    async def replies(
        self, channel: str, chat: str, *, after: int, most: int, wait: float, last: bool = False
    ) -> Sequence[OutboxRow]:
        """The messages to a chat after number `after`: the first `most`, or the `last`.

        If there are none yet, wait for up to `wait` seconds.
        """
        look = partial(outbound.replies, channel=channel, chat=chat, after=after, most=most, last=last)
        deadline = self._clock.monotonic() + wait
        while True:
            news = self._reader(channel, chat)
            found = await self.database.read(look)
            rest = deadline - self._clock.monotonic()
            if found or rest <= 0:
                return found
            try:
                await asyncio.wait_for(news.wait(), rest)
            except TimeoutError:
                return []

    async def outcome(self, message: InboundMessage, states: frozenset[str]) -> tuple[str, str]:
        """Wait until a message has one of these states: its state and its reply.

        The reply is empty if another message's reply answers it, too.
        """
        while True:
            news = self._reader(message.channel, message.chat)
            state, reply = await self.database.find(partial(outbound.outcome, message=message))
            if state in states:
                return state, reply
            await news.wait()

    async def run(self) -> None:
        """Send until cancelled; slow chats don't delay the others."""
        busy: set[tuple[str, str]] = set()

        async def send(row: OutboxRow, chat: tuple[str, str]) -> None:
            await self._send(row.message, is_new=row.state == "pending")
            busy.discard(chat)
            self._news.set()

        async with asyncio.TaskGroup() as sending:
            while True:
                self._news.clear()
                for row in await self.database.find(outbound.unsent):
                    chat = (row.message.channel, row.message.chat)
                    if chat not in busy:
                        busy.add(chat)
                        sending.create_task(send(row, chat))
                await self._news.wait()

    async def _send(self, message: OutboundMessage, *, is_new: bool) -> None:
        if is_new:
            await self._mark(message, "sending")
        for wait in (*RECONCILE_DELAYS_S, None):
            sent = await self._sent(message)
            while sent.state == "later":
                await self._clock.sleep(sent.retry_after)
                sent = await self._sent(message)
            await self._mark(message, sent.state, sent.reason)
            self.sends[sent.state] += 1
            if sent.state == "sent":
                return
            _log.warning(
                "Message %s to %s:%s: %s. %s", message.id, message.channel, message.chat, sent.state, sent.reason
            )
            if sent.state == "failed" or wait is None:
                return
            await self._clock.sleep(wait)

    def _reader(self, channel: str, chat: str) -> asyncio.Event:
        """The event of the next message to a chat."""
        bell = self._readers.get((channel, chat))
        if bell is None:
            bell = self._readers[channel, chat] = asyncio.Event()
        return bell

    async def _sent(self, message: OutboundMessage) -> Sent:
        channel = self.channels.get(message.channel)
        if channel is None:
            return Sent("failed", f"No channel {message.channel!r} is connected.")
        for part in parts(message, channel.limits.length):
            try:
                sent = await channel.send(part)
            except Exception as broken:  # noqa: BLE001 (the boundary to a channel: what it raises says nothing of the message)
                sent = Sent("unknown", f"{type(broken).__name__}: {broken}")
            if sent.state != "sent":
                return sent
        return Sent()

    async def _mark(self, message: OutboundMessage, state: OutboxState, reason: str = "") -> None:
        await self.database.persist(partial(outbound.mark_outbound, message=message, state=state, reason=reason))


def parts(message: OutboundMessage, chars: int) -> Iterator[OutboundMessage]:
    """The message in pieces of at most so many characters (0: no limit), cut between lines or words if possible.

    Each piece has its own id; the last one has the media.
    """
    if not 0 < chars < len(message.content):
        yield message
        return
    rest, number = message.content, 0
    while len(rest) > chars:
        cut = max(rest.rfind("\n", chars // 2, chars + 1), 0) or max(rest.rfind(" ", chars // 2, chars + 1), 0) or chars
        number += 1
        yield replace(message, content=rest[:cut], media=(), id=f"{message.id}/{number}")
        rest = _GAP.sub("", rest[cut:])
    if rest or message.media:
        yield replace(message, content=rest, id=f"{message.id}/{number + 1}")
