"""What goes out: in order, and never twice unasked."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from denizen.ports import Channel, ChannelLimits, InboundMessage, OutboundMessage, Sent
from denizen.runtime.clock import SystemClock
from denizen.testing import FakeClock, MemoryChannel
from denizen.worlds.chat.delivery.outbox import Outbox, parts
from denizen.worlds.chat.ledger import outbound
from denizen.worlds.chat.ledger.database import Database, LedgerError, T
from denizen.worlds.chat.ledger.ledger import LedgerConnection
from denizen.worlds.chat.ledger.outbound import OutboxRow
from denizen.worlds.chat.ledger.sqlite_file import SqliteFile


def text(content: str, chat: str = "den") -> OutboundMessage:
    return OutboundMessage("irc", chat, content, id=content)


class Uncertain(MemoryChannel):
    """Says what became of a message when it is asked again; keeps how often it was asked for each."""

    def __init__(self, *fates: str) -> None:
        super().__init__("irc")
        self.asked: list[str] = []
        self._fates = [*fates]

    async def send(self, message: OutboundMessage) -> Sent:
        self.asked.append(message.id)
        await super().send(message)
        if self._fates and (fate := self._fates.pop(0)) != "sent":
            if fate == "raises":
                raise ConnectionError("the line is dead")
            return Sent("failed" if fate == "failed" else "unknown", "no answer came")
        return Sent()


@asynccontextmanager
async def sending(database: Database, *channels: Channel) -> AsyncGenerator[Outbox]:
    outbox = Outbox(database, {channel.name: channel for channel in channels}, clock=FakeClock())
    running = asyncio.create_task(outbox.run())
    try:
        yield outbox
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


class GoneOnce(SqliteFile):
    """A file that can't be read at first."""

    gone = True

    async def read(self, work: Callable[[LedgerConnection], T]) -> T:
        if self.gone:
            self.gone = False
            raise LedgerError("It is gone.")
        return await super().read(work)


async def test_who_waits_for_a_reply_waits_on_while_the_ledger_cannot_be_read(home: Path) -> None:
    database = Database(GoneOnce(home / "gateway.db"), FakeClock())
    question = InboundMessage("irc", "den", "ann", "?", "k", id="1")
    await put(database, outbound.reply_to(question, "yes"))
    assert await Outbox(database, {}, clock=FakeClock()).outcome(question, frozenset({""})) == ("", "yes")
    database.close()


async def put(database: Database, message: OutboundMessage, state: outbound.OutboxState = "pending") -> None:
    await database.run(partial(outbound.add_outbound, message=message, state=state))


async def settled(database: Database, count: int, chat: str = "den") -> list[OutboxRow]:
    """The first messages of a chat, once something became of each."""
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


async def test_channel_is_asked_what_became_of_a_send_that_a_crash_interrupted(database: Database) -> None:
    channel = Uncertain()
    await put(database, text("1"), "sending")
    async with sending(database, channel):
        assert [each.state for each in await settled(database, 1)] == ["sent"]
    assert channel.asked == ["1"]


@pytest.mark.parametrize("fate", ["unknown", "raises"])
async def test_unknown_fate_is_marked_and_reconciled_by_the_channel(database: Database, fate: str) -> None:
    channel = Uncertain(fate, fate, "sent")
    await put(database, text("1"))
    await put(database, text("2"))
    async with sending(database, channel):
        while [each.state for each in await settled(database, 2)] != ["sent", "sent"]:
            pass
    assert channel.asked == ["1", "1", "1", "2"]


async def test_fate_that_stays_unknown_is_left_so(database: Database) -> None:
    channel = Uncertain(*["unknown"] * 4)
    await put(database, text("1"))
    await put(database, text("2"))
    async with sending(database, channel):
        first, second = await settled(database, 2)
    assert (first.state, first.reason, second.state) == ("unknown", "no answer came", "sent")


async def test_message_that_fails_is_marked_with_the_reason_and_the_next_is_sent(database: Database) -> None:
    await put(database, text("1"))
    await put(database, text("2"))
    async with sending(database, Uncertain("failed")):
        first, second = await settled(database, 2)
    assert (first.state, first.reason, second.state) == ("failed", "no answer came", "sent")


async def test_message_to_a_channel_that_is_not_there_fails(database: Database) -> None:
    await put(database, text("1"))
    async with sending(database):
        assert (await settled(database, 1))[0].state == "failed"


@pytest.mark.parametrize(
    ("content", "pieces"),
    [
        ("short", ["short"]),
        ("one two three", ["one two", "three"]),
        ("one\ntwo three", ["one\ntwo", "three"]),
        ("0123456789", ["01234567", "89"]),
        ("do:\n  a\n  b", ["do:\n  a", "  b"]),
        ("one\n \n  two", ["one\n ", "  two"]),
        ("one two   three", ["one two ", "three"]),
    ],
)
def test_long_message_is_cut_at_lines_and_words(content: str, pieces: list[str]) -> None:
    found = [*parts(OutboundMessage("irc", "den", content, media=("a.png",), id="1"), ChannelLimits(length=8).length)]
    assert [each.content for each in found] == pieces
    assert len({each.id for each in found}) == len(pieces)
    assert [each.media for each in found][-1] == ("a.png",)


async def test_ids_of_any_length_are_stored_in_every_database(database: Database) -> None:
    """Random, so that no index gets room by compression."""
    outbox = Outbox(database, {}, clock=SystemClock())
    chat = secrets.token_hex(5000)
    await outbox.put(OutboundMessage("http", chat, "hello", id="m1"))
    [reply] = await outbox.replies("http", chat, after=0, most=1, wait=0)
    assert (reply.message.chat, reply.message.content) == (chat, "hello")
    assert not await outbox.replies("http", f"{chat}0", after=0, most=1, wait=0)
