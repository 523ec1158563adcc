"""The conformance suite of channels: tests to subclass."""
# ruff: noqa: S101 - tests assert

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import pytest

from denizen.ports import Channel, InboundMessage, OutboundMessage


class FarEnd(Protocol):
    """The service at the other end of a channel, with two chats, `home` and `work`."""

    async def write(self, content: str, *, chat: str = "home") -> None:
        """Say something in a chat, as its person does."""

    async def arrived(self, chat: str = "home") -> Sequence[str]:
        """The messages that the channel has sent to a chat."""


@dataclass(frozen=True, slots=True)
class Inbox:
    """Accepts messages, or refuses them while `refuses`."""

    messages: asyncio.Queue[InboundMessage] = field(default_factory=asyncio.Queue)
    refuses: bool = False

    async def accept(self, message: InboundMessage) -> bool:
        """Take a message in."""
        self.messages.put_nowait(message)
        if self.refuses:
            raise OSError("the disk is full")
        return True


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
        """The service that it is connected to."""
        raise NotImplementedError

    @asynccontextmanager
    async def receiving(self, channel: Channel, *, refuses: bool = False) -> AsyncGenerator[Inbox]:
        """An inbox for what the channel receives until the end of the block."""
        inbox = Inbox(refuses=refuses)
        task = asyncio.create_task(channel.receive(inbox.accept))
        try:
            yield inbox
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await task

    async def next(self, inbox: Inbox) -> InboundMessage:
        """The next message."""
        return await asyncio.wait_for(inbox.messages.get(), self.patience)

    def reply(self, channel: Channel, to: InboundMessage, content: str = "Good day.") -> OutboundMessage:
        """An answer to a message."""
        return OutboundMessage(channel.name, to.chat, content, to.session_key, to.id)

    async def heard(self, channel: Channel, far_end: FarEnd, chat: str = "home") -> InboundMessage:
        """A message that somebody wrote in that chat."""
        async with self.receiving(channel) as inbox:
            await far_end.write("Hello", chat=chat)
            return await self.next(inbox)

    # Receiving

    async def test_message_says_where_it_is_from(self, channel: Channel, far_end: FarEnd) -> None:
        message = await self.heard(channel, far_end)
        assert (message.channel, message.content) == (channel.name, "Hello")
        assert all([message.chat, message.sender, message.session_key, message.id])
        assert msgspec.json.decode(msgspec.json.encode(message), type=InboundMessage) == message

    async def test_messages_arrive_in_order_each_with_its_own_id(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.receiving(channel) as inbox:
            for content in ("1", "2", "2"):
                await far_end.write(content)
            messages = [await self.next(inbox) for _ in range(3)]
        assert [message.content for message in messages] == ["1", "2", "2"]
        assert len({message.id for message in messages}) == 3

    async def test_each_chat_has_a_session_of_its_own(self, channel: Channel, far_end: FarEnd) -> None:
        home, work = await self.heard(channel, far_end), await self.heard(channel, far_end, "work")
        again = await self.heard(channel, far_end)
        assert home.chat == again.chat != work.chat
        assert home.session_key == again.session_key != work.session_key

    async def test_message_that_was_not_accepted_is_delivered_again(self, channel: Channel, far_end: FarEnd) -> None:
        async with self.receiving(channel, refuses=True) as inbox:
            await far_end.write("1")
            refused = await self.next(inbox)
        async with self.receiving(channel) as inbox:
            assert await self.next(inbox) == refused

    async def test_accepted_message_is_not_delivered_again(self, channel: Channel, far_end: FarEnd) -> None:
        first = await self.heard(channel, far_end)
        second = await self.heard(channel, far_end)
        assert first.id != second.id

    # Sending

    async def test_message_is_sent_to_its_chat(self, channel: Channel, far_end: FarEnd) -> None:
        work = await self.heard(channel, far_end, "work")
        assert (await channel.send(self.reply(channel, work))).state == "sent"
        assert [*await far_end.arrived("work")] == ["Good day."]
        assert not await far_end.arrived("home")

    async def test_message_is_sent_once_however_often_it_is_asked(self, channel: Channel, far_end: FarEnd) -> None:
        message = await self.heard(channel, far_end)
        reply, other = self.reply(channel, message), self.reply(channel, message)
        for outgoing in (reply, reply, other):
            assert (await channel.send(outgoing)).state in {"sent", "unknown"}
        assert len(await far_end.arrived()) == 2

    async def test_longest_message_is_sent_whole_and_a_longer_one_not_at_all(
        self, channel: Channel, far_end: FarEnd
    ) -> None:
        message, longest = await self.heard(channel, far_end), channel.limits.length or 100_000
        assert (await channel.send(self.reply(channel, message, "x" * longest))).state == "sent"
        assert [len(text) for text in await far_end.arrived()] == [longest]
        if channel.limits.length:
            refused = await channel.send(self.reply(channel, message, "x" * (longest + 1)))
            assert refused.state == "failed"
            assert refused.reason
            assert len(await far_end.arrived()) == 1

    async def test_media_are_refused_where_the_channel_takes_none(self, channel: Channel, far_end: FarEnd) -> None:
        message = await self.heard(channel, far_end)
        if not channel.limits.media_out:
            refused = await channel.send(msgspec.structs.replace(self.reply(channel, message), media=("cat.png",)))
            assert (refused.state, bool(refused.reason)) == ("failed", True)
            assert not await far_end.arrived()
