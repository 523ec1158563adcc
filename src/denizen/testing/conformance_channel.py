"""The conformance suite of channels: tests to subclass."""
# ruff: noqa: S101 - tests assert

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec
import pytest
from msgspec.structs import replace

from denizen.ports.channel import Accept, Channel, ChannelRefused, Fetch, PreviewingChannel, RateLimited
from denizen.ports.queue import AnswerChoice, InboundMessage, OutboundMessage
from denizen.testing.fake_clock import FakeClock
from denizen.testing.memory_channel import MemoryChannel
from denizen.worlds.chat.delivery.alarms import Alarms
from denizen.worlds.chat.delivery.channel_states import ALARM_AFTER_S, ChannelStates
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.delivery.splitting import split_message
from denizen.worlds.chat.ledger import outbound
from denizen.worlds.chat.ledger.database import Database
from denizen.worlds.chat.ledger.sqlite_file import SqliteFile

RECONNECT_DELAY_S = 0.01
FLOOD_S = 60.0
TIME_STEP_S = 30.0
MARKDOWN = "\n".join(
    f"## Part {part}\n\nSome *text* with `code{part}` and a [link](https://example.org/{part}):\n\n```python\n"
    + "\n".join(f"    value_{part}_{line} = {line}  # line{part}x{line}" for line in range(12))
    + "\n```\n"
    for part in range(20)
)
"""More than 10,000 characters; each line of code has a unique word."""
_WORD = re.compile(r"line\d+x\d+")


def needs(has: object, what: str) -> None:
    """Skip the test if the channel doesn't have this feature."""
    if not has:
        pytest.skip(f"the channel has no {what}")


class ManualClock(FakeClock):
    """Stands still until the test advances it."""

    async def sleep(self, seconds: float) -> None:
        await self.wait_until(self.monotonic() + seconds)

    async def advance(self, seconds: float, *, sleepers: int = 0) -> None:
        """Let time pass, once that many sleep."""
        while len(self._waiting) < sleepers:  # noqa: ASYNC110 - the channel is trying to connect
            await asyncio.sleep(RECONNECT_DELAY_S)
        await super().sleep(seconds)
        await asyncio.sleep(RECONNECT_DELAY_S)


class FarEnd(Protocol):
    """The service at the other end of a channel; subclasses control a fake service.

    It has the chats `home` and `work`, and with `limits.threads` also `thread`, a thread in `home`. Every channel needs
    `write` and `arrived`. A docstring that begins with a limit is for channels with that limit. Override the remaining
    methods if the service can do it; otherwise their tests are skipped.
    """

    connects_itself: bool = False
    """The service connects to the channel, as with webhooks, so the channel doesn't notice that it is down."""

    async def write(self, content: str, *, chat: str = "home") -> None:
        """Write in a chat as a person."""
        raise NotImplementedError

    async def arrived(self, chat: str = "home") -> Sequence[str]:
        """The current texts of the channel's messages in a chat, in order, after edits and without deleted ones."""
        raise NotImplementedError

    async def write_in_group(self, content: str, *, addressed: bool) -> None:
        """`groups`: write in a group, to the account or to others."""
        raise NotImplementedError

    async def attach(self, size: int) -> None:
        """`media_in`: send a file of this size in bytes to `home`, without a text."""
        raise NotImplementedError

    async def press(self, label: str) -> None:
        """`buttons`: press a button of the last message in `home`."""
        raise NotImplementedError

    async def refuse_edits(self) -> None:
        """`live` is `edit` or `stream`: refuse edits from now on."""
        raise NotImplementedError

    async def repeat(self, *, new_id: bool = False) -> None:
        """Deliver the last message again; with another id only if `replays_with_new_ids`."""
        pytest.skip("the service never delivers a message twice")

    async def echo(self) -> None:
        """Deliver the channel's last message back to it, unless the service has already done so."""
        pytest.skip("the service returns no messages to their sender")

    async def edit(self, content: str) -> None:
        """Edit the person's last message in `home`."""
        pytest.skip("the service has no edits")

    async def write_as_bot(self, content: str) -> None:
        """Write in `home` as another bot."""
        pytest.skip("the service doesn't distinguish bots from people")

    async def flood(self, seconds: float) -> None:
        """Refuse messages and previews, with this many seconds to wait, until called with 0."""
        pytest.skip("the service has no flood limits")

    async def lose_answer(self) -> None:
        """Accept the next message, and lose the answer."""
        pytest.skip("the service gives no answers")

    async def drop_connections(self) -> None:
        """Drop all connections; new ones work."""
        pytest.skip("the service keeps no connection")

    async def go_down(self) -> None:
        """Drop all connections, and refuse new ones until `come_back`."""
        pytest.skip("the service can't be stopped")

    async def come_back(self) -> None:
        """Accept connections again."""
        raise NotImplementedError

    async def rotate_token(self) -> None:
        """Refuse the channel's token from now on, even on open connections."""
        pytest.skip("the service has no tokens")


@dataclass(frozen=True, slots=True)
class Inbox:
    """Accepts each message once, or none while `refuses`; `refused` is set when the service refuses the account.

    Files are fetched if it `admits` senders.
    """

    messages: asyncio.Queue[InboundMessage] = field(default_factory=asyncio.Queue)
    refuses: bool = False
    admits: bool = True
    ids: set[str] = field(default_factory=set)
    refused: asyncio.Event = field(default_factory=asyncio.Event)

    async def accept(self, message: InboundMessage, fetch: Fetch | None = None) -> bool:
        """Accept a message."""
        if message.id in self.ids:
            return False
        if fetch and self.admits:
            message = await fetch(message)
        self.messages.put_nowait(message)
        if self.refuses:
            raise OSError("the disk is full")
        self.ids.add(message.id)
        return True

    async def run(self, channel: Channel) -> None:
        """Receive until cancelled, as hosts do: again after each error, except a refusal."""
        while True:
            try:
                await channel.receive(self.accept)
            except ChannelRefused:
                self.refused.set()
                return
            except Exception:  # noqa: BLE001, S110 - the boundary to a channel, which may raise anything
                pass
            await asyncio.sleep(RECONNECT_DELAY_S)


class ChannelConformance:
    """Subclass it as `Test…` and fill in the fixtures; tests are `async`, for pytest-asyncio's auto mode.

    `patience` is how many seconds a message may take.
    """

    patience = 30.0

    @pytest.fixture
    def channel(self) -> Channel:
        """The channel."""
        raise NotImplementedError

    @pytest.fixture
    def far_end(self, channel: Channel) -> FarEnd:
        """The service that the channel is connected to."""
        raise NotImplementedError

    @asynccontextmanager
    async def receiving(self, channel: Channel, *, refuses: bool = False, admits: bool = True) -> AsyncGenerator[Inbox]:
        """An inbox that receives from the channel until the end of the block."""
        inbox = Inbox(refuses=refuses, admits=admits)
        task = asyncio.create_task(inbox.run(channel))
        try:
            yield inbox
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def next(self, inbox: Inbox) -> InboundMessage:
        """The next message."""
        return await asyncio.wait_for(inbox.messages.get(), self.patience)

    @asynccontextmanager
    async def talking(
        self, channel: Channel, far_end: FarEnd, chat: str = "home"
    ) -> AsyncGenerator[tuple[Inbox, InboundMessage]]:
        """Keep the channel connected during the block; yields its inbox, and a message from somebody in the chat."""
        async with self.receiving(channel) as inbox:
            await far_end.write("Hello", chat=chat)
            yield inbox, await self.next(inbox)

    async def until_after(self, inbox: Inbox, far_end: FarEnd) -> list[InboundMessage]:
        """All messages up to one that is written now."""
        await far_end.write("After that")
        messages = [await self.next(inbox)]
        while messages[-1].content != "After that":
            messages.append(await self.next(inbox))
        return messages[:-1]

    def reply(self, channel: Channel, to: InboundMessage, content: str = "Good day.") -> OutboundMessage:
        """An answer to a message."""
        return OutboundMessage(channel.name, to.chat, content, to.session_key, to.id)

    # Receiving

    async def test_message_says_where_it_is_from(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (_, message):
            assert (message.channel, message.content) == (channel.name, "Hello")
            assert all([message.chat, message.sender, message.session_key, message.id])
            assert not any([message.is_group, message.is_bot, message.edit_of])
            assert message.sent_at is None or message.sent_at.tzinfo
            assert msgspec.json.decode(msgspec.json.encode(message), type=InboundMessage) == message

    async def test_messages_arrive_in_order_each_with_its_own_id(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.receiving(channel) as inbox:
            for content in ("1", "2", "2"):
                await far_end.write(content)
            messages = [await self.next(inbox) for _ in range(3)]
        assert [message.content for message in messages] == ["1", "2", "2"]
        assert len({message.id for message in messages}) == 3

    async def test_each_chat_has_a_session_of_its_own(self, channel: Channel, far_end: FarEnd) -> None:
        heard: list[InboundMessage] = []
        async with self.receiving(channel) as inbox:
            for chat in ("home", "work", "home"):
                await far_end.write("Hello", chat=chat)
                heard.append(await self.next(inbox))
        home, work, again = heard
        assert home.chat == again.chat != work.chat
        assert home.session_key == again.session_key != work.session_key

    async def test_message_that_was_not_accepted_is_delivered_again(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.receiving(channel, refuses=True) as inbox:
            await far_end.write("1")
            refused = await self.next(inbox)
        async with self.receiving(channel) as inbox:
            assert await self.next(inbox) == refused

    async def test_accepted_message_is_not_delivered_again(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (_, first):
            pass
        async with self.talking(channel, far_end) as (_, second):
            assert first.id != second.id

    async def test_duplicate_has_the_same_id(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (inbox, _):
            await far_end.repeat()
            assert await self.until_after(inbox, far_end) == []

    async def test_duplicate_with_a_new_id_is_the_same_otherwise(self, channel: Channel, far_end: FarEnd) -> None:
        needs(channel.limits.replays_with_new_ids, "messages with new ids")
        async with self.talking(channel, far_end) as (inbox, message):
            await far_end.repeat(new_id=True)
            assert message.sent_at
            for again in await self.until_after(inbox, far_end):
                assert replace(again, id=message.id) == message

    async def test_own_echo_is_dropped(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (inbox, message):
            await channel.send(self.reply(channel, message))
            await far_end.echo()
            assert await self.until_after(inbox, far_end) == []

    async def test_edit_names_the_message_that_it_corrects(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (inbox, message):
            await far_end.edit("Good morning")
            edit = await self.next(inbox)
            assert (edit.content, edit.edit_of, edit.chat) == ("Good morning", message.id, message.chat)
            assert edit.id != message.id

    async def test_bot_is_marked(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (inbox, _):
            await far_end.write_as_bot("Buy now")
            assert all(message.is_bot for message in await self.until_after(inbox, far_end))

    async def test_message_of_a_group_says_whether_it_is_addressed(self, channel: Channel, far_end: FarEnd) -> None:
        needs(channel.limits.groups, "groups")
        async with self.receiving(channel) as inbox:
            await far_end.write_in_group("Lunch?", addressed=False)
            await far_end.write_in_group("Will it rain?", addressed=True)
            aside, question = await self.next(inbox), await self.next(inbox)
        assert (aside.is_group, aside.is_addressed, question.is_group, question.is_addressed) == (
            True,
            False,
            True,
            True,
        )
        assert (aside.content, "Will it rain?" in question.content) == ("Lunch?", True)
        assert (aside.chat, aside.session_key) == (question.chat, question.session_key)

    async def test_thread_is_a_chat_of_its_own(self, channel: Channel, far_end: FarEnd) -> None:
        needs(channel.limits.threads, "threads")
        async with self.talking(channel, far_end) as (inbox, home):
            await far_end.write("And here?", chat="thread")
            message = await self.next(inbox)
            assert message.thread
            assert message.chat != home.chat
            assert message.session_key != home.session_key
            assert (await channel.send(self.reply(channel, message))).state == "sent"
            assert [*await far_end.arrived("thread")] == ["Good day."]
            assert not await far_end.arrived("home")

    async def test_received_file_is_private(self, channel: Channel, far_end: FarEnd) -> None:
        needs(channel.limits.media_in, "incoming files")
        async with self.receiving(channel) as inbox:
            await far_end.attach(100)
            message = await self.next(inbox)
        [path] = map(Path, message.media)
        assert (path.stat().st_size, path.stat().st_mode & 0o077) == (100, 0)

    async def test_file_is_not_fetched_before_its_sender_is_admitted(self, channel: Channel, far_end: FarEnd) -> None:
        needs(channel.limits.media_in, "incoming files")
        async with self.receiving(channel, admits=False) as inbox:
            await far_end.attach(100)
            assert not (await self.next(inbox)).media

    async def test_received_file_over_the_limit_is_reported(self, channel: Channel, far_end: FarEnd) -> None:
        needs(channel.limits.media_in, "incoming files")
        async with self.receiving(channel) as inbox:
            await far_end.attach(channel.limits.media_in + 1)
            message = await self.next(inbox)
        assert (message.media, bool(message.content)) == ((), True)

    async def test_messages_arrive_after_a_reconnect(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (inbox, _):
            await far_end.drop_connections()
            await far_end.write("Still there?")
            messages = [*await self.until_after(inbox, far_end)]
        assert [message.content for message in messages if message.content != "Hello"] == ["Still there?"]

    async def test_rotated_token_is_reported_and_messages_wait(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (inbox, message):
            await far_end.rotate_token()
            await asyncio.wait_for(inbox.refused.wait(), self.patience)
            waits = await channel.send(self.reply(channel, message))
            assert (waits.state, waits.retry_after > 0, bool(waits.reason)) == ("later", True, True)
            assert not await far_end.arrived()

    async def test_owner_is_alarmed_when_the_service_stays_down(
        self, channel: Channel, far_end: FarEnd, tmp_path: Path
    ) -> None:
        async with self.talking(channel, far_end) as (_, message):
            pass
        await far_end.go_down()
        clock, owner = ManualClock(), MemoryChannel("owner")
        database = Database(SqliteFile(tmp_path / "ledger.db"), clock)
        outbox = Outbox(database, {each.name: each for each in (channel, owner)}, clock=clock)
        alarms = Alarms([f"{channel.name}:{message.chat}", "owner:boss"], [], outbox, clock)
        states = ChannelStates(tmp_path / "channels.json", [channel.name], clock, alarms.send)
        outbox.note_outcome = states.note_outcome
        await outbox.put(self.reply(channel, message))

        async def new_accept() -> Accept:
            return Inbox().accept

        receiving = states.keep_receiving(channel, new_accept, repr)
        running = [asyncio.create_task(each) for each in (outbox.run(), receiving)]
        try:
            async with asyncio.timeout(self.patience):
                while not owner.sent:
                    await clock.advance(TIME_STEP_S, sleepers=1 if far_end.connects_itself else 2)
                assert clock.monotonic() >= ALARM_AFTER_S
                await far_end.come_back()
                while await database.find(outbound.unsent_chats):
                    await clock.advance(TIME_STEP_S)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            database.close()
        assert [*await far_end.arrived()] == ["Good day."]
        assert [channel.name in alarm for alarm in owner.shown("boss")] == [True]

    # Sending

    async def test_message_is_sent_to_its_chat(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end, "work") as (_, work):
            assert (await channel.send(self.reply(channel, work))).state == "sent"
            assert [*await far_end.arrived("work")] == ["Good day."]
            assert not await far_end.arrived("home")

    async def test_message_that_was_sent_is_found_or_unknown(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (_, message):
            reply, other = self.reply(channel, message), self.reply(channel, message)
            for outgoing in (reply, other):
                assert (await channel.send(outgoing)).state == "sent"
            again = await channel.send(replace(reply, may_be_sent=True))
            assert again.state == ("sent" if channel.limits.reconciles else "unknown")
            assert len(await far_end.arrived()) == 2

    async def test_message_that_was_not_sent_is_sent_or_unknown(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (_, message):
            sent = await channel.send(replace(self.reply(channel, message), may_be_sent=True))
            assert sent.state == ("sent" if channel.limits.reconciles else "unknown")
            assert len(await far_end.arrived()) == channel.limits.reconciles

    async def test_message_without_a_connection_is_sent_or_waits(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (_, message):
            pass
        sent = await channel.send(self.reply(channel, message))
        assert sent.state in {"sent", "later"}
        assert len(await far_end.arrived()) == (sent.state == "sent")

    async def test_lost_answer_is_found_out_or_reported(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (_, message):
            await self.send_without_answer(channel, far_end, self.reply(channel, message))

    async def send_without_answer(self, channel: Channel, far_end: FarEnd, message: OutboundMessage) -> None:
        """Send a message as hosts do when the first answer is lost."""
        await far_end.lose_answer()
        sent = await channel.send(message)
        assert sent.state in {"sent", "unknown"}
        if sent.state == "unknown":
            while (again := await channel.send(replace(message, may_be_sent=True))).state == "later":  # noqa: ASYNC110
                await asyncio.sleep(RECONNECT_DELAY_S)
            assert again.state == ("sent" if channel.limits.reconciles or message.edits else "unknown")
        assert [*await far_end.arrived()] == [message.content]

    async def test_message_after_a_reconnect_is_sent_once(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (inbox, message):
            await far_end.drop_connections()
            reply = self.reply(channel, message)
            sent = await channel.send(reply)
            if sent.state != "sent":
                await self.until_after(inbox, far_end)
                sent = await channel.send(replace(reply, may_be_sent=sent.state == "unknown"))
            assert sent.state == "sent" or not channel.limits.reconciles
            assert len(await far_end.arrived()) == (sent.state == "sent")

    async def test_longest_message_is_sent_whole_and_a_longer_one_not_at_all(
        self, channel: Channel, far_end: FarEnd
    ) -> None:
        longest = channel.limits.length or 100_000
        async with self.talking(channel, far_end) as (_, message):
            assert (await channel.send(self.reply(channel, message, "x" * longest))).state == "sent"
            assert [len(text) for text in await far_end.arrived()] == [longest]
            if channel.limits.length:
                for content in ("x" * (longest + 1), "🙂" * (longest // channel.limits.measure("🙂") + 1)):
                    refused = await channel.send(self.reply(channel, message, content))
                    assert (refused.state, bool(refused.reason)) == ("failed", True)
                assert len(await far_end.arrived()) == 1

    async def test_long_markdown_arrives_whole_and_in_order(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (_, message):
            for part in split_message(self.reply(channel, message, MARKDOWN), channel.limits):
                assert (await channel.send(part)).state == "sent"
            assert _WORD.findall("\n".join(await far_end.arrived())) == _WORD.findall(MARKDOWN)

    async def test_part_that_meets_a_flood_limit_waits(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (_, message):
            first, second = (replace(self.reply(channel, message, text), id=f"reply/{text}") for text in "12")
            assert (await channel.send(first)).state == "sent"
            await far_end.flood(FLOOD_S)
            waits = await channel.send(second)
            assert (waits.state, waits.retry_after >= FLOOD_S) == ("later", True)
            assert [*await far_end.arrived()] == ["1"]
            await far_end.flood(0)
            assert (await channel.send(second)).state == "sent"
            assert [*await far_end.arrived()] == ["1", "2"]

    async def test_media_are_refused_where_the_channel_takes_none(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (_, message):
            if not channel.limits.media_out:
                refused = await channel.send(replace(self.reply(channel, message), media=("cat.png",)))
                assert (refused.state, bool(refused.reason)) == ("failed", True)
                assert not await far_end.arrived()

    async def test_media_over_the_limit_are_refused(self, channel: Channel, far_end: FarEnd, tmp_path: Path) -> None:
        needs(channel.limits.media_out, "outgoing files")
        (small := tmp_path / "small.png").write_bytes(b"x" * 100)
        with (large := tmp_path / "large.png").open("wb") as file:
            file.truncate(channel.limits.media_out + 1)
        async with self.talking(channel, far_end) as (_, message):
            refused = await channel.send(replace(self.reply(channel, message), media=(str(large),)))
            assert (refused.state, bool(refused.reason)) == ("failed", True)
            assert not await far_end.arrived()
            assert (await channel.send(replace(self.reply(channel, message), media=(str(small),)))).state == "sent"

    async def test_pressed_button_is_its_text(self, channel: Channel, far_end: FarEnd) -> None:
        needs(channel.limits.buttons, "buttons")
        choices = (AnswerChoice("Allow", "yes k4"), AnswerChoice("Deny", "no k4"))
        async with self.talking(channel, far_end) as (inbox, message):
            question = replace(self.reply(channel, message, "Delete it?"), choices=choices)
            assert (await channel.send(question)).state == "sent"
            await far_end.press("Deny")
            answer = await self.next(inbox)
            assert (answer.content, answer.sender, answer.chat) == ("no k4", message.sender, message.chat)
            assert answer.id != message.id

    # Previews

    async def preview(self, channel: Channel, to: InboundMessage) -> OutboundMessage:
        """Show part of a reply, and return the reply. Skips if the channel has no previews."""
        needs(channel.limits.live != "none", "previews")
        reply = self.reply(channel, to)
        draft = await self.show(channel, to, "", "Good …")
        draft = await self.show(channel, to, draft, "Good day …")
        return reply if channel.limits.live == "draft" else replace(reply, edits=draft)

    async def show(self, channel: Channel, to: InboundMessage, draft: str, text: str) -> str:
        """Show a preview, and return its native id."""
        previews: PreviewingChannel = channel  # type: ignore[assignment]
        return await previews.show(to.chat, draft, text)

    async def test_reply_replaces_its_preview(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (_, message):
            reply = await self.preview(channel, message)
            assert (await channel.send(reply)).state == "sent"
            assert [*await far_end.arrived()] == ["Good day."]

    async def test_flood_limit_ends_a_preview_and_delays_its_reply(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (_, message):
            reply = await self.preview(channel, message)
            await far_end.flood(FLOOD_S)
            with pytest.raises(RateLimited):
                await self.show(channel, message, reply.edits, "Good day to …")
            waits = await channel.send(reply)
            assert (waits.state, waits.retry_after >= FLOOD_S) == ("later", True)
            await far_end.flood(0)
            assert (await channel.send(reply)).state == "sent"
            assert [*await far_end.arrived()] == ["Good day."]

    async def test_lost_answer_of_the_final_edit_is_harmless(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (_, message):
            reply = await self.preview(channel, message)
            needs(reply.edits, "previews that are edited")
            await self.send_without_answer(channel, far_end, reply)

    async def test_reply_is_sent_where_its_edit_is_refused(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.talking(channel, far_end) as (_, message):
            reply = await self.preview(channel, message)
            needs(reply.edits, "previews that are edited")
            await far_end.refuse_edits()
            assert (await channel.send(reply)).state == "sent"
            arrived = await far_end.arrived()
            assert arrived[-1] == "Good day."
            assert all(text.endswith("…") for text in arrived[:-1])
