"""The outbox sends messages in order, and never repeats one unless that is safe."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from denizen.ports import Channel, ChannelLimits, InboundMessage, OutboundMessage, Sent
from denizen.runtime.clock import Clock, SystemClock
from denizen.testing import FakeClock, MemoryChannel
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.ledger import outbound
from denizen.worlds.chat.ledger.database import Database, LedgerError, T
from denizen.worlds.chat.ledger.ledger import LedgerConnection
from denizen.worlds.chat.ledger.outbound import OutboxRow
from denizen.worlds.chat.ledger.sqlite_file import SqliteFile


def text(content: str, chat: str = "den") -> OutboundMessage:
    return OutboundMessage("irc", chat, content, id=content)


class ScriptedChannel(MemoryChannel):
    """Answers with these fates, then with `sent`; keeps the ids that it was asked to send, those it may have sent with
    a `?`.
    """

    def __init__(self, *fates: str, length: int = 0, reconciles: bool = True, wait: float = 40) -> None:
        super().__init__("irc", ChannelLimits(length=length, reconciles=reconciles))
        self._wait = wait
        self.asked: list[str] = []
        self._fates = [*fates]

    async def send(self, message: OutboundMessage) -> Sent:
        self.asked.append(message.id + "?" * message.may_be_sent)
        self.tried_at = message.tried_at
        if self._fates and (fate := self._fates.pop(0)) != "sent":
            if fate == "raises":
                raise ConnectionError("the line is dead")
            return Sent(fate, "no answer came", retry_after=self._wait)  # pyrefly: ignore[bad-argument-type]
        return await super().send(message)


@asynccontextmanager
async def sending(database: Database, *channels: Channel, clock: Clock | None = None) -> AsyncGenerator[Outbox]:
    outbox = Outbox(database, {channel.name: channel for channel in channels}, clock=clock or FakeClock())
    running = asyncio.create_task(outbox.run())
    try:
        yield outbox
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


class StoppedClock(FakeClock):
    """A clock whose sleeps never end; `asleep` is set once one has begun."""

    def __init__(self) -> None:
        super().__init__()
        self.asleep = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.asleep.set()
        await asyncio.Event().wait()


class UnreadableOnce(SqliteFile):
    """A file that can't be read at first."""

    gone = True

    async def read(self, work: Callable[[LedgerConnection], T]) -> T:
        if self.gone:
            self.gone = False
            raise LedgerError("It is gone.")
        return await super().read(work)


async def test_waiting_for_a_reply_continues_while_the_ledger_cannot_be_read(home: Path) -> None:
    database = Database(UnreadableOnce(home / "gateway.db"), FakeClock())
    question = InboundMessage("irc", "den", "ann", "?", "k", id="1")
    await put(database, outbound.reply_to(question, "yes"))
    assert await Outbox(database, {}, clock=FakeClock()).outcome(question, frozenset({""})) == ("", "yes")
    database.close()


async def put(database: Database, message: OutboundMessage, state: outbound.OutboxState = "pending") -> None:
    await database.run(partial(outbound.add_outbound, message=message, state=state))


async def settled(database: Database, count: int, chat: str = "den") -> list[OutboxRow]:
    """The first messages of a chat, once each has a final state."""
    look = partial(outbound.replies, channel="irc", chat=chat, after=0, most=count)
    async with asyncio.timeout(60):
        while True:
            found = await database.run(look)
            if len(found) == count and not {"pending", "sending"} & {each.state for each in found}:
                return found


async def test_messages_of_a_chat_are_sent_once_and_in_order(database: Database) -> None:
    channel = MemoryChannel("irc")
    for content in ("1", "2", "1", "3"):
        await put(database, text(content))
    async with sending(database, channel):
        assert [each.state for each in await settled(database, 3)] == ["sent"] * 3
    assert [*channel.sent] == ["1", "2", "3"]


async def test_send_interrupted_by_a_crash_may_be_sent(database: Database) -> None:
    channel = ScriptedChannel()
    await put(database, text("1"), "sending")
    await put(database, text("2"))
    async with sending(database, channel):
        assert [each.state for each in await settled(database, 2)] == ["sent", "sent"]
    assert channel.asked == ["1?", "2"]


@pytest.mark.parametrize("fate", ["unknown", "raises"])
async def test_reconciling_channel_is_asked_again_about_an_unknown_outcome(database: Database, fate: str) -> None:
    channel = ScriptedChannel(fate, fate, "sent")
    await put(database, text("1"))
    await put(database, text("2"))
    async with sending(database, channel):
        assert [each.state for each in await settled(database, 2)] == ["sent", "sent"]
    assert channel.asked == ["1", "1?", "1?", "2"]


async def test_channel_hears_when_a_message_that_may_be_sent_was_first_tried(database: Database) -> None:
    clock, channel = FakeClock(), ScriptedChannel("later", "unknown")
    began = clock.now()
    await put(database, text("1"))
    async with sending(database, channel, clock=clock):
        await settled(database, 1)
    assert (channel.asked[-1], channel.tried_at) == ("1?", began)


@pytest.mark.parametrize(("reconciles", "times"), [(True, 4), (False, 1)])
async def test_message_stays_unknown_if_the_channel_cannot_tell(
    database: Database, *, reconciles: bool, times: int
) -> None:
    channel = ScriptedChannel(*["unknown"] * times, reconciles=reconciles)
    await put(database, text("1"))
    await put(database, text("2"))
    async with sending(database, channel):
        first, second = await settled(database, 2)
    assert (first.state, first.reason, second.state) == ("unknown", "no answer came", "sent")
    assert len(channel.asked) == times + 1
    [found] = await database.run(partial(outbound.unconfirmed, most=5))
    assert found.message.id == "1"


async def test_message_sent_later_keeps_its_place(database: Database) -> None:
    clock, channel = FakeClock(), ScriptedChannel("later", "later", "sent")
    began = clock.monotonic()
    await put(database, text("1"))
    await put(database, text("2"))
    async with sending(database, channel, clock=clock):
        assert [each.state for each in await settled(database, 2)] == ["sent", "sent"]
    assert channel.asked == ["1", "1", "1", "2"]
    assert clock.monotonic() - began == 80


async def test_message_waits_at_most_keep_days(database: Database) -> None:
    channel = ScriptedChannel(*["later"] * 100, wait=86_400)
    await put(database, text("1"))
    async with sending(database, channel):
        [row] = await settled(database, 1)
    assert (row.state, row.reason) == ("failed", "It waited too long. no answer came")
    assert len(channel.asked) == 31


async def test_service_that_names_a_time_after_those_days_is_asked_at_their_end(database: Database) -> None:
    clock, channel = FakeClock(), ScriptedChannel("later", "later", wait=1e9)
    await put(database, text("1"))
    async with sending(database, channel, clock=clock):
        [row] = await settled(database, 1)
    assert (row.state, clock.monotonic()) == ("failed", 30 * 86_400)


async def test_restart_during_a_wait_sends_the_message_once(database: Database) -> None:
    await put(database, text("1"))
    clock = StoppedClock()
    async with sending(database, ScriptedChannel("later"), clock=clock):
        await clock.asleep.wait()
    channel = ScriptedChannel()
    async with sending(database, channel):
        assert [each.state for each in await settled(database, 1)] == ["sent"]
    assert channel.asked == ["1"]


async def test_only_the_part_in_flight_may_be_sent_after_a_crash(database: Database) -> None:
    await put(database, text("one two three four"))
    clock = StoppedClock()
    async with sending(database, ScriptedChannel("sent", "unknown", length=6), clock=clock):
        await clock.asleep.wait()
    channel = ScriptedChannel(length=6)
    async with sending(database, channel):
        assert [each.state for each in await settled(database, 1)] == ["sent"]
    assert channel.asked == [f"one two three four/{part}" for part in ("2?", "3", "4")]
    assert [each.content for each in channel.sent.values()] == ["two", "three", "four"]


async def test_part_that_stays_unknown_does_not_stop_the_later_ones(database: Database) -> None:
    channel = ScriptedChannel("sent", "unknown", length=6, reconciles=False)
    await put(database, text("one two three"))
    async with sending(database, channel):
        [row] = await settled(database, 1)
    assert [each.content for each in channel.sent.values()] == ["one", "three"]
    assert (row.state, row.reason) == ("unknown", "Part 2 of 3: no answer came")


async def test_part_that_fails_ends_the_message(database: Database) -> None:
    channel = ScriptedChannel("sent", "failed", length=6)
    await put(database, text("one two three"))
    async with sending(database, channel):
        [row] = await settled(database, 1)
    assert [each.content for each in channel.sent.values()] == ["one"]
    assert (row.state, row.reason) == ("failed", "Part 2 of 3: no answer came")


async def test_message_that_fails_is_marked_with_the_reason_and_the_next_is_sent(database: Database) -> None:
    await put(database, text("1"))
    await put(database, text("2"))
    async with sending(database, ScriptedChannel("failed")):
        first, second = await settled(database, 2)
    assert (first.state, first.reason, second.state) == ("failed", "no answer came", "sent")


async def test_message_to_an_unknown_channel_fails(database: Database) -> None:
    await put(database, text("1"))
    async with sending(database):
        assert (await settled(database, 1))[0].state == "failed"


async def test_ids_of_any_length_are_stored_in_every_database(database: Database) -> None:
    """Random, so that no index gets room by compression."""
    outbox = Outbox(database, {}, clock=SystemClock())
    chat = secrets.token_hex(5000)
    await outbox.put(OutboundMessage("http", chat, "hello", id="m1"))
    [reply] = await outbox.replies("http", chat, after=0, most=1, wait=0)
    assert (reply.message.chat, reply.message.content) == (chat, "hello")
    assert not await outbox.replies("http", f"{chat}0", after=0, most=1, wait=0)


class CountedReads(SqliteFile):
    """Counts how often the ledger is read."""

    reads = 0

    async def read(self, work: Callable[[LedgerConnection], T]) -> T:
        self.reads += 1
        return await super().read(work)


async def test_poll_after_the_last_message_waits_without_reading(tmp_path: Path) -> None:
    database = Database(ledger := CountedReads(tmp_path / "gateway.db"), SystemClock())
    outbox = Outbox(database, {}, clock=SystemClock())
    look = partial(outbox.replies, "irc", "den", most=10, wait=60)
    await outbox.put(text("one"))
    assert [row.seq for row in await look(after=0)] == [1]
    read = ledger.reads
    polls = [asyncio.create_task(look(after=1)) for _ in range(2)]
    await asyncio.sleep(0)
    await outbox.put(text("two"))
    assert [[row.seq for row in await poll] for poll in polls] == [[2], [2]]
    assert ledger.reads == read + len(polls)
    assert [row.seq for row in await look(after=1)] == [2]
    database.close()
