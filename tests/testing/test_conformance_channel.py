"""The channel in memory passes the suite for channels, which fails for each channel that breaks a rule."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from uuid import uuid4

import pytest
from msgspec.structs import replace

from denizen.ports import Accept, Channel, ChannelLimits, InboundMessage, OutboundMessage, Sent
from denizen.testing import ChannelConformance, MemoryChannel
from denizen.testing.conformance_channel import FarEnd

SUITE = ChannelConformance


@dataclass(frozen=True)
class Chats:
    channel: MemoryChannel

    async def write(self, content: str, *, chat: str = "home") -> None:
        self.channel.write(content, chat=chat)

    async def arrived(self, chat: str = "home") -> Sequence[str]:
        return [message.content for message in self.channel.sent.values() if message.chat == chat]


class TestMemoryChannel(SUITE):
    @pytest.fixture(params=[ChannelLimits(), ChannelLimits(length=50, media_out=1000)], ids=["no limits", "limits"])
    def channel(self, request: pytest.FixtureRequest) -> Channel:
        return MemoryChannel(limits=request.param)

    @pytest.fixture
    def far_end(self, channel: MemoryChannel) -> FarEnd:
        return Chats(channel)


class Changes(MemoryChannel):
    """Changes a message each time that it is delivered."""

    def change(self, message: InboundMessage) -> InboundMessage:
        raise NotImplementedError

    async def receive(self, accept: Accept) -> None:
        await super().receive(lambda message: accept(self.change(message)))


class SaysNotWhere(Changes):
    def change(self, message: InboundMessage) -> InboundMessage:
        return replace(message, chat="")


class GivesOneId(Changes):
    def change(self, message: InboundMessage) -> InboundMessage:
        return replace(message, id="1")


class GivesNewIds(Changes):
    def change(self, message: InboundMessage) -> InboundMessage:
        return replace(message, id=uuid4().hex)


class HasOneSession(Changes):
    def change(self, message: InboundMessage) -> InboundMessage:
        return replace(message, session_key="one")


class AcknowledgesWhatWasRefused(MemoryChannel):
    async def receive(self, accept: Accept) -> None:
        async def acknowledged(message: InboundMessage) -> bool:
            try:
                return await accept(message)
            except OSError:
                return True

        await super().receive(acknowledged)


class NeverAcknowledges(MemoryChannel):
    delivered: list[InboundMessage]

    async def receive(self, accept: Accept) -> None:
        self._written.extendleft(getattr(self, "delivered", []))

        async def noted(message: InboundMessage) -> bool:
            self.delivered.append(message)
            return await accept(message)

        self.delivered = []
        await super().receive(noted)


class SendsElsewhere(MemoryChannel):
    async def send(self, message: OutboundMessage) -> Sent:
        return await super().send(replace(message, chat="home"))


class SendsAgain(MemoryChannel):
    async def send(self, message: OutboundMessage) -> Sent:
        return await super().send(replace(message, id=uuid4().hex))


class Cuts(MemoryChannel):
    async def send(self, message: OutboundMessage) -> Sent:
        return await super().send(replace(message, content=message.content[: self.limits.length]))


class LosesMedia(MemoryChannel):
    async def send(self, message: OutboundMessage) -> Sent:
        return await super().send(replace(message, media=()))


@pytest.mark.parametrize(
    ("wrong", "test"),
    [
        (SaysNotWhere, SUITE.test_message_says_where_it_is_from),
        (GivesOneId, SUITE.test_messages_arrive_in_order_each_with_its_own_id),
        (HasOneSession, SUITE.test_each_chat_has_a_session_of_its_own),
        (AcknowledgesWhatWasRefused, SUITE.test_message_that_was_not_accepted_is_delivered_again),
        (GivesNewIds, SUITE.test_message_that_was_not_accepted_is_delivered_again),
        (NeverAcknowledges, SUITE.test_accepted_message_is_not_delivered_again),
        (SendsElsewhere, SUITE.test_message_is_sent_to_its_chat),
        (SendsAgain, SUITE.test_message_is_sent_once_however_often_it_is_asked),
        (Cuts, SUITE.test_longest_message_is_sent_whole_and_a_longer_one_not_at_all),
        (LosesMedia, SUITE.test_media_are_refused_where_the_channel_takes_none),
    ],
)
async def test_suite_fails_for_a_channel_that_breaks_the_rule(
    wrong: type[MemoryChannel], test: Callable[[ChannelConformance, Channel, FarEnd], Awaitable[None]]
) -> None:
    suite, channel = ChannelConformance(), wrong(limits=ChannelLimits(length=50))
    suite.patience = 0.1
    with pytest.raises((AssertionError, TimeoutError)):
        await test(suite, channel, Chats(channel))
