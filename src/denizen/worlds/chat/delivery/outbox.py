"""The outbox: sends each chat's messages in order, and never repeats one unless that is safe."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from denizen.ports import Channel, InboundMessage, OutboundMessage, Sent
from denizen.runtime.clock import Clock
from denizen.sessions.key import bounded
from denizen.worlds.chat.delivery.splitting import split_message
from denizen.worlds.chat.ledger import outbound, questions
from denizen.worlds.chat.ledger.database import Database
from denizen.worlds.chat.ledger.outbound import OutboxRow
from denizen.worlds.chat.ledger.pairings import Pairing

RECONCILE_DELAYS_S = (1.0, 10.0, 60.0)
"""Seconds before a reconciling channel is asked again about a message whose delivery is unknown."""
MIN_RETRY_DELAY_S = 1.0
"""The least seconds before a message is retried that its channel wants later."""
_DAY_S = 86_400.0
_MAX_CACHED_CHATS = 10_000
"""How many chats' last numbers are remembered."""
_log = logging.getLogger(__name__)


class Outbox:
    """Sends messages to these channels, by name; messages to other channels fail, unless those are `POLLED`.

    A message is split according to its channel's limits, and each part is recorded before the channel gets it. A part
    that was being sent when the process died is sent again with `may_be_sent`. A message that the channel wants later
    keeps its place, and fails after `keep_days`. `sends` counts the channels' outcomes. `settle_preview` ends the
    preview of the message that a reply answers; `alarm` is called with a channel's name and the problem, `note_outcome`
    with the channel, the chat, the outcome of each send, and how long the message has waited, and `changed` with a
    session whose messages or questions changed.
    """

    def __init__(
        self, database: Database, channels: Mapping[str, Channel], *, clock: Clock, keep_days: float = 30.0
    ) -> None:
        self.database = database
        self.channels = channels
        self.sends = Counter[str]()
        self.alarm: Callable[[str, str], Awaitable[None]] = _no_alarm
        self.note_outcome: Callable[[str, str, Sent, float], Awaitable[None]] = _no_note
        self.settle_preview: Callable[[OutboundMessage], Awaitable[None]] = _no_preview
        self.changed: Callable[[str], None] = lambda _: None
        self._clock = clock
        self._keep_s = keep_days * _DAY_S
        self._news = asyncio.Event()
        self._any_chat_has_news = True  # at the start, and after other processes have written
        self._chats_with_news: set[tuple[str, str]] = set()
        self._readers: WeakValueDictionary[tuple[str, str], asyncio.Event] = WeakValueDictionary()
        self._last_numbers: dict[tuple[str, str], int] = {}  # by chat: the number of its last message
        database.news["outbox"] = self._on_notification

    async def put(self, message: OutboundMessage) -> None:
        """Queue a message. Raises LedgerError."""
        await self.database.run(partial(outbound.add_outbound, message=message))
        self.database.ring()  # one from another session is also a message to its chat's session
        self.added(message)

    def added(self, message: OutboundMessage | InboundMessage | Pairing) -> None:
        """Wake the readers of this message's chat."""
        self._wake([(message.channel, message.chat)])
        self.changed(message.session_key)

    def _on_notification(self, chat: str) -> None:
        """Wake readers after another process wrote to a chat (as JSON), or to any."""
        try:
            self._wake([msgspec.json.decode(chat, type=tuple[str, str])])
        except msgspec.DecodeError:
            self._last_numbers.clear()
            self._wake([*self._readers])
            self._any_chat_has_news = True
            self._news.set()

    def _wake(self, chats: Iterable[tuple[str, str]]) -> None:
        for chat in chats:
            self._last_numbers.pop(chat, None)
            if reader := self._readers.pop(chat, None):
                reader.set()
            if chat[0] not in outbound.POLLED:
                self._chats_with_news.add((chat[0], bounded(chat[1], questions.MAX_ID_CHARS)))
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
            news, found = self._reader(channel, chat), list[OutboxRow]()
            if wait <= 0 or after < self._last_numbers.get((channel, chat), after + 1):
                found = await self.database.read(look)
                if not news.is_set() and (last or len(found) < most):
                    self._note_end((channel, chat), found[-1].seq if found else after)
            rest = deadline - self._clock.monotonic()
            if found or rest <= 0:
                return found
            try:
                await asyncio.wait_for(news.wait(), rest)
            except TimeoutError:
                return []

    async def outcome(self, message: InboundMessage, states: frozenset[str]) -> tuple[str, str]:
        """Wait until a message has one of these states; return its state and its reply.

        The reply is empty if another message's reply also answers this one.
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
            await self._send(row)
            busy.discard(chat)
            self._chats_with_news.add(chat)
            self._news.set()

        async with asyncio.TaskGroup() as sending:
            while True:
                self._news.clear()
                if self._any_chat_has_news:
                    self._any_chat_has_news = False
                    self._chats_with_news |= {*await self.database.find(outbound.unsent_chats)}
                chats, self._chats_with_news = self._chats_with_news - busy, set()
                for chat, row in (await self.database.find(partial(outbound.first_unsent, chats=chats))).items():
                    busy.add(chat)
                    sending.create_task(send(row, chat))
                await self._news.wait()

    async def _send(self, row: OutboxRow) -> None:
        """Send the remaining parts of a message, one after another."""
        message, channel = row.message, self.channels.get(row.message.channel)
        if channel is None:
            await self._end(row._replace(state="failed", reason=f"No channel {message.channel!r} is connected."))
            return
        may_be_sent = row.state == "sending"
        if not may_be_sent:
            row = row._replace(waits_since=row.waits_since or self._now())
        if row.state == "pending" and not row.parts and channel.limits.live in {"edit", "stream"}:
            await self.settle_preview(message)
            row = await self.database.persist(partial(outbound.begin_sending, row=row))
            message = row.message
        parts = split_message(message, channel.limits)
        for number, part in enumerate(parts[row.parts :], row.parts + 1):
            if row.state != "sending":
                row = await self._save(row._replace(state="sending"))
            row, sent = await self._send_part(channel, part, row, may_be_sent=may_be_sent)
            may_be_sent = False
            if sent.state != "sent":
                of = f"Part {number} of {len(parts)}: " if len(parts) > 1 else ""
                row = row._replace(reason=row.reason or f"{of}{sent.reason or sent.state}")
            if sent.state == "failed":
                await self._end(row._replace(state="failed"))
                return
            row = row._replace(parts=number, native_id=sent.native_id or row.native_id, waits_since=self._now())
            if number < len(parts):  # also marks the next part as begun, to save a write
                row = await self._save(row)
        await self._end(row._replace(state="unknown" if row.reason else "sent"))

    async def _send_part(
        self, channel: Channel, part: OutboundMessage, row: OutboxRow, *, may_be_sent: bool
    ) -> tuple[OutboxRow, Sent]:
        """Send a part, waiting until its channel takes it, and return the final outcome.

        If the outcome is unknown, reconciling channels are asked again.
        """
        delays = iter(RECONCILE_DELAYS_S if channel.limits.reconciles else ())
        since = row.waits_since or self._now()
        part = replace(part, tried_at=datetime.fromtimestamp(row.waits_since, UTC) if row.waits_since else None)
        while True:
            try:
                sent = await channel.send(replace(part, may_be_sent=may_be_sent))
            except Exception as broken:  # noqa: BLE001 (the boundary to a channel: any error leaves the outcome unknown)
                sent = Sent("unknown", f"{type(broken).__name__}: {broken}")
            self.sends[sent.state] += 1
            now = self._now()
            await self.note_outcome(part.channel, part.chat, sent, now - since)
            if sent.state == "later":
                if now - since >= self._keep_s:
                    text = f"A message to {part.channel}:{part.chat} waited too long and was dropped. {sent.reason}"
                    await self.alarm(part.channel, text)
                    return row, Sent("unknown" if may_be_sent else "failed", f"It waited too long. {sent.reason}")
                row = await self._save(row._replace(state="sending" if may_be_sent else "pending"))
                await self._clock.sleep(max(min(sent.retry_after, since + self._keep_s - now), MIN_RETRY_DELAY_S))
                row = await self._save(row._replace(state="sending"))
            elif sent.state == "unknown" and (delay := next(delays, None)):
                may_be_sent = True
                await self._clock.sleep(delay)
            else:
                return row, sent

    def _now(self) -> float:
        return self._clock.now().timestamp()

    async def _end(self, row: OutboxRow) -> None:
        await self._save(row)
        if row.state != "sent":
            message = row.message
            _log.warning(
                "Message %s to %s:%s: %s. %s", message.id, message.channel, message.chat, row.state, row.reason
            )

    async def _save(self, row: OutboxRow) -> OutboxRow:
        await self.database.persist(partial(outbound.save_progress, row=row))
        return row

    def _note_end(self, chat: tuple[str, str], number: int) -> None:
        """Record the chat's last message, so that the next poll waits without reading."""
        if len(self._last_numbers) >= _MAX_CACHED_CHATS:
            self._last_numbers.clear()
        self._last_numbers[chat] = number

    def _reader(self, channel: str, chat: str) -> asyncio.Event:
        """The event of the next message to a chat."""
        reader = self._readers.get((channel, chat))
        if reader is None:
            reader = self._readers[channel, chat] = asyncio.Event()
        return reader


async def _no_preview(_: OutboundMessage) -> None:
    pass


async def _no_alarm(channel: str, text: str) -> None:
    pass


async def _no_note(channel: str, chat: str, sent: Sent, waited_s: float) -> None:
    pass
