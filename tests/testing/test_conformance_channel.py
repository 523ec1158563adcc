"""The channel in memory passes the suite for channels, which fails for each channel that breaks a rule."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from msgspec.structs import replace

from denizen.ports import Accept, Channel, ChannelLimits, ChannelRefused, Fetch, InboundMessage, OutboundMessage, Sent
from denizen.testing import ChannelConformance, FarEnd, MemoryChannel

SUITE = ChannelConformance
LIMITS = ChannelLimits(
    length=400,
    unit="utf16",
    media_in=1000,
    media_out=1000,
    live="edit",
    buttons=True,
    threads=True,
    groups=True,
    reconciles=True,
    replays_with_new_ids=True,
)


@dataclass
class Chats(FarEnd):
    channel: MemoryChannel
    folder: Path
    last: InboundMessage | None = None

    async def write(self, content: str, *, chat: str = "home") -> None:
        is_thread = chat == "thread"
        self.last = self.channel.write(
            content, chat="home/1" if is_thread else chat, thread="1" if is_thread else "", sender="ann"
        )

    async def arrived(self, chat: str = "home") -> Sequence[str]:
        return self.channel.shown("home/1" if chat == "thread" else chat)

    async def write_in_group(self, content: str, *, addressed: bool) -> None:
        self.channel.write(content, chat="group", is_group=True, is_addressed=addressed)

    async def attach(self, size: int) -> None:
        (file := self.folder / "cat.png").write_bytes(b"x" * size)
        file.chmod(0o600)
        self.channel.write("", media=(str(file),))

    async def press(self, label: str) -> None:
        self.channel.press(label)

    async def refuse_edits(self) -> None:
        self.channel.refuses_edits = True

    async def repeat(self, *, new_id: bool = False) -> None:
        assert self.last
        self.channel.deliver(replace(self.last, id=uuid4().hex) if new_id else self.last)

    async def echo(self) -> None:
        self.channel.write((await self.arrived())[-1], sender=self.channel.name)

    async def edit(self, content: str) -> None:
        assert self.last
        self.channel.write(content, edit_of=self.last.id)

    async def write_as_bot(self, content: str) -> None:
        self.channel.write(content, sender="bot", is_bot=True)

    async def flood(self, seconds: float) -> None:
        self.channel.flood_s = seconds

    async def lose_answer(self) -> None:
        self.channel.loses_answer = True

    async def drop_connections(self) -> None:
        self.channel.drop_connection()

    async def go_down(self) -> None:
        self.channel.is_down = True
        self.channel.drop_connection()

    async def come_back(self) -> None:
        self.channel.is_down = False

    async def rotate_token(self) -> None:
        self.channel.is_revoked = True
        self.channel.drop_connection()


class TestMemoryChannel(SUITE):
    @pytest.fixture(
        params=[
            ChannelLimits(),
            LIMITS,
            replace(LIMITS, reconciles=False),
            replace(LIMITS, live="draft"),
            replace(LIMITS, live="stream", unit="bytes"),
        ],
        ids=["no limits", "all", "can't look", "drafts", "streams"],
    )
    def channel(self, request: pytest.FixtureRequest) -> Channel:
        return MemoryChannel(limits=request.param)

    @pytest.fixture
    def far_end(self, channel: MemoryChannel, tmp_path: Path) -> FarEnd:
        return Chats(channel, tmp_path)


class TestSmallFarEnd(SUITE):
    """A far end needs only what the limits name."""

    class TwoCommands(FarEnd):
        def __init__(self, channel: MemoryChannel) -> None:
            self.channel = channel

        async def write(self, content: str, *, chat: str = "home") -> None:
            self.channel.write(content, chat=chat)

        async def arrived(self, chat: str = "home") -> Sequence[str]:
            return self.channel.shown(chat)

    @pytest.fixture
    def channel(self) -> Channel:
        return MemoryChannel()

    @pytest.fixture
    def far_end(self, channel: MemoryChannel) -> FarEnd:
        return self.TwoCommands(channel)


class Changes(MemoryChannel):
    """Changes a message each time that it is delivered."""

    def change(self, message: InboundMessage) -> InboundMessage:
        raise NotImplementedError

    async def receive(self, accept: Accept) -> None:
        async def changed(message: InboundMessage, fetch: Fetch | None = None) -> bool:
            async def fetch_changed(message: InboundMessage) -> InboundMessage:
                assert fetch
                return self.change(await fetch(message))

            return await accept(self.change(message), fetch_changed if fetch else None)

        await super().receive(changed)


class SaysNotWhere(Changes):
    def change(self, message: InboundMessage) -> InboundMessage:
        return replace(message, chat="")


class GivesOneId(Changes):
    def change(self, message: InboundMessage) -> InboundMessage:
        return replace(message, id="1")


class GivesNewIds(Changes):
    def change(self, message: InboundMessage) -> InboundMessage:
        return replace(message, id=uuid4().hex)


class DatesItself(Changes):
    def change(self, message: InboundMessage) -> InboundMessage:
        return replace(message, sent_at=self._clock.now())


class HasOneSession(Changes):
    def change(self, message: InboundMessage) -> InboundMessage:
        return replace(message, session_key="one")


class HasNoThreads(Changes):
    def change(self, message: InboundMessage) -> InboundMessage:
        return replace(message, chat=message.chat.split("/")[0], thread="")


class TakesEditsForNew(Changes):
    def change(self, message: InboundMessage) -> InboundMessage:
        return replace(message, edit_of="")


class TakesBotsForPeople(Changes):
    def change(self, message: InboundMessage) -> InboundMessage:
        return replace(message, is_bot=False)


class FeelsAddressed(Changes):
    def change(self, message: InboundMessage) -> InboundMessage:
        return replace(message, is_addressed=True)


class SharesFiles(Changes):
    def change(self, message: InboundMessage) -> InboundMessage:
        for path in map(Path, message.media):
            path.chmod(0o644)
        return message


class HidesLargeFiles(Changes):
    def change(self, message: InboundMessage) -> InboundMessage:
        return replace(message, content="") if "larger" in message.content else message


class FetchesAtOnce(MemoryChannel):
    async def receive(self, accept: Accept) -> None:
        async def fetched(message: InboundMessage, fetch: Fetch | None = None) -> bool:
            return await accept(await fetch(message) if fetch else message)

        await super().receive(fetched)


class HearsItself(MemoryChannel):
    def deliver(self, message: InboundMessage) -> InboundMessage:
        return super().deliver(replace(message, sender="ann"))


class AcknowledgesWhatWasRefused(MemoryChannel):
    async def receive(self, accept: Accept) -> None:
        async def acknowledged(message: InboundMessage, fetch: Fetch | None = None) -> bool:
            try:
                return await accept(message, fetch)
            except OSError:
                return True

        await super().receive(acknowledged)


class NeverAcknowledges(MemoryChannel):
    delivered: list[InboundMessage]

    async def receive(self, accept: Accept) -> None:
        self._written.extendleft(getattr(self, "delivered", []))

        async def noted(message: InboundMessage, fetch: Fetch | None = None) -> bool:
            self.delivered.append(message)
            return await accept(message, fetch)

        self.delivered = []
        await super().receive(noted)


class LosesWhatCameMeanwhile(MemoryChannel):
    async def receive(self, accept: Accept) -> None:
        try:
            await super().receive(accept)
        except ConnectionResetError:
            self._written.clear()
            raise


class TriesAWrongTokenForever(MemoryChannel):
    async def receive(self, accept: Accept) -> None:
        try:
            await super().receive(accept)
        except ChannelRefused as error:
            raise OSError("the connection failed") from error


class WaitsForTheService(MemoryChannel):
    async def receive(self, accept: Accept) -> None:
        try:
            await super().receive(accept)
        except ConnectionRefusedError:
            await asyncio.Event().wait()


class GivesUpWhileTheServiceIsDown(MemoryChannel):
    async def send(self, message: OutboundMessage) -> Sent:
        return Sent("failed", "It can't be reached.") if self.is_down else await super().send(message)


class SendsElsewhere(MemoryChannel):
    async def send(self, message: OutboundMessage) -> Sent:
        return await super().send(replace(message, chat="home"))


class SendsAgain(MemoryChannel):
    async def send(self, message: OutboundMessage) -> Sent:
        return await super().send(replace(message, id=uuid4().hex))


class SendsAgainUnasked(MemoryChannel):
    async def send(self, message: OutboundMessage) -> Sent:
        return await super().send(replace(message, id=uuid4().hex, may_be_sent=False))


class SendsAfterAnEdit(MemoryChannel):
    async def send(self, message: OutboundMessage) -> Sent:
        again = replace(message, id=uuid4().hex, edits="", may_be_sent=False)
        return await super().send(again if message.may_be_sent else message)


class PretendsWhileOffline(MemoryChannel):
    is_online = False

    async def receive(self, accept: Accept) -> None:
        self.is_online = True
        try:
            await super().receive(accept)
        finally:
            self.is_online = False

    async def send(self, message: OutboundMessage) -> Sent:
        return await super().send(message) if self.is_online and not self._is_dropped else Sent()


class BelievesItWasSent(MemoryChannel):
    async def send(self, message: OutboundMessage) -> Sent:
        return Sent() if message.may_be_sent else await super().send(message)


class Cuts(MemoryChannel):
    async def send(self, message: OutboundMessage) -> Sent:
        return await super().send(replace(message, content=message.content[: self.limits.length]))


class CountsCodePoints(MemoryChannel):
    async def send(self, message: OutboundMessage) -> Sent:
        limits, self.limits = self.limits, replace(self.limits, unit="characters")
        try:
            return await super().send(message)
        finally:
            self.limits = limits


class LosesCode(MemoryChannel):
    async def send(self, message: OutboundMessage) -> Sent:
        return await super().send(replace(message, content=message.content.replace("    value", "#")[:-20]))


class LosesMedia(MemoryChannel):
    async def send(self, message: OutboundMessage) -> Sent:
        return await super().send(replace(message, media=()))


class GivesUpAtAFlood(MemoryChannel):
    async def send(self, message: OutboundMessage) -> Sent:
        sent = await super().send(message)
        return Sent("failed", sent.reason) if sent.state == "later" else sent


class HidesFloods(MemoryChannel):
    async def show(self, chat: str, draft: str, text: str) -> str:
        flood_s, self.flood_s = self.flood_s, 0.0
        try:
            return await super().show(chat, draft, text)
        finally:
            self.flood_s = flood_s


class KeepsPreviews(MemoryChannel):
    async def send(self, message: OutboundMessage) -> Sent:
        return await super().send(replace(message, edits=""))


class GivesUpAtARefusedEdit(MemoryChannel):
    async def send(self, message: OutboundMessage) -> Sent:
        if message.edits and self.refuses_edits:
            return Sent("failed", "It can't be edited.")
        return await super().send(message)


class ForgetsTheButton(MemoryChannel):
    def press(self, label: str) -> InboundMessage:
        return self.write(label)


CANT_LOOK = replace(LIMITS, reconciles=False)


@pytest.mark.parametrize(
    ("wrong", "test", "limits"),
    [
        (SaysNotWhere, SUITE.test_message_says_where_it_is_from, LIMITS),
        (GivesOneId, SUITE.test_messages_arrive_in_order_each_with_its_own_id, LIMITS),
        (HasOneSession, SUITE.test_each_chat_has_a_session_of_its_own, LIMITS),
        (AcknowledgesWhatWasRefused, SUITE.test_message_that_was_not_accepted_is_delivered_again, LIMITS),
        (GivesNewIds, SUITE.test_message_that_was_not_accepted_is_delivered_again, LIMITS),
        (NeverAcknowledges, SUITE.test_accepted_message_is_not_delivered_again, LIMITS),
        (GivesNewIds, SUITE.test_duplicate_has_the_same_id, LIMITS),
        (DatesItself, SUITE.test_duplicate_with_a_new_id_is_the_same_otherwise, LIMITS),
        (HearsItself, SUITE.test_own_echo_is_dropped, LIMITS),
        (TakesEditsForNew, SUITE.test_edit_names_the_message_that_it_corrects, LIMITS),
        (TakesBotsForPeople, SUITE.test_bot_is_marked, LIMITS),
        (FeelsAddressed, SUITE.test_message_of_a_group_says_whether_it_is_addressed, LIMITS),
        (HasNoThreads, SUITE.test_thread_is_a_chat_of_its_own, LIMITS),
        (SharesFiles, SUITE.test_received_file_is_private, LIMITS),
        (FetchesAtOnce, SUITE.test_file_is_not_fetched_before_its_sender_is_admitted, LIMITS),
        (HidesLargeFiles, SUITE.test_received_file_over_the_limit_is_reported, LIMITS),
        (LosesWhatCameMeanwhile, SUITE.test_messages_arrive_after_a_reconnect, LIMITS),
        (TriesAWrongTokenForever, SUITE.test_rotated_token_is_reported_and_messages_wait, LIMITS),
        (WaitsForTheService, SUITE.test_owner_is_alarmed_when_the_service_stays_down, LIMITS),
        (GivesUpWhileTheServiceIsDown, SUITE.test_owner_is_alarmed_when_the_service_stays_down, LIMITS),
        (SendsElsewhere, SUITE.test_message_is_sent_to_its_chat, LIMITS),
        (SendsAgain, SUITE.test_message_that_was_sent_is_found_or_unknown, LIMITS),
        (SendsAgainUnasked, SUITE.test_message_that_was_sent_is_found_or_unknown, CANT_LOOK),
        (BelievesItWasSent, SUITE.test_message_that_was_not_sent_is_sent_or_unknown, LIMITS),
        (PretendsWhileOffline, SUITE.test_message_without_a_connection_is_sent_or_waits, LIMITS),
        (PretendsWhileOffline, SUITE.test_message_after_a_reconnect_is_sent_once, LIMITS),
        (GivesUpAtAFlood, SUITE.test_part_that_meets_a_flood_limit_waits, LIMITS),
        (SendsAgain, SUITE.test_lost_answer_is_found_out_or_reported, LIMITS),
        (SendsAgainUnasked, SUITE.test_lost_answer_is_found_out_or_reported, CANT_LOOK),
        (Cuts, SUITE.test_longest_message_is_sent_whole_and_a_longer_one_not_at_all, LIMITS),
        (CountsCodePoints, SUITE.test_longest_message_is_sent_whole_and_a_longer_one_not_at_all, LIMITS),
        (LosesCode, SUITE.test_long_markdown_arrives_whole_and_in_order, LIMITS),
        (LosesMedia, SUITE.test_media_are_refused_where_the_channel_takes_none, ChannelLimits()),
        (LosesMedia, SUITE.test_media_over_the_limit_are_refused, LIMITS),
        (ForgetsTheButton, SUITE.test_pressed_button_is_its_text, LIMITS),
        (KeepsPreviews, SUITE.test_reply_replaces_its_preview, LIMITS),
        (HidesFloods, SUITE.test_flood_limit_ends_a_preview_and_delays_its_reply, LIMITS),
        (SendsAfterAnEdit, SUITE.test_lost_answer_of_the_final_edit_is_harmless, LIMITS),
        (GivesUpAtARefusedEdit, SUITE.test_reply_is_sent_where_its_edit_is_refused, LIMITS),
    ],
)
async def test_suite_fails_for_a_channel_that_breaks_the_rule(
    wrong: type[MemoryChannel], test: Callable[..., Awaitable[None]], limits: ChannelLimits, tmp_path: Path
) -> None:
    suite, channel = ChannelConformance(), wrong(limits=limits)
    suite.patience = 0.1
    folder = {"tmp_path": tmp_path} if "tmp_path" in inspect.signature(test).parameters else {}
    with pytest.raises((AssertionError, TimeoutError, pytest.fail.Exception)):
        await test(suite, channel, Chats(channel, tmp_path), **folder)
