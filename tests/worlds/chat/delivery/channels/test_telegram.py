"""Telegram, against a server of the documented Bot API."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.worlds.chat.delivery.channels.kill_conformance import KilledChannelConformance
from tests.worlds.chat.delivery.channels.servers.telegram import ANN, BEN, GROUP, TOKEN, TelegramServer

from denizen.errors import ConfigError
from denizen.ports import AnswerChoice, ChannelHome, ChannelRefused, ChannelSettings, OutboundMessage
from denizen.testing import FakeClock
from denizen.testing.conformance_channel import Inbox
from denizen.worlds.chat.delivery.channels.telegram import KIND, TelegramChannel, TelegramSettings


def settings(server: TelegramServer, token: str = TOKEN) -> TelegramSettings:
    return TelegramSettings(token=token, base_url=server.url)


def text(content: str, chat: str = str(ANN["id"]), **fields: object) -> OutboundMessage:
    return replace(OutboundMessage("telegram", chat, content), **fields)


class TestTelegram(KilledChannelConformance):
    @pytest.fixture
    async def far_end(self) -> AsyncGenerator[TelegramServer]:
        async with TelegramServer().serving() as server:
            yield server

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def channel(self, far_end: TelegramServer, tmp_path: Path, clock: FakeClock) -> TelegramChannel:
        channel = KIND.connect(settings(far_end), ChannelHome("telegram", tmp_path / "home", clock))
        assert isinstance(channel, TelegramChannel)
        return channel

    @pytest.fixture
    def opening(self, far_end: TelegramServer) -> tuple[str, ChannelSettings]:
        return f"{TelegramSettings.__module__}:KIND", settings(far_end)

    # Receiving

    async def test_topic_of_a_group_is_a_thread(self, channel: TelegramChannel, far_end: TelegramServer) -> None:
        opened = {"message_id": 7, "date": 1, "chat": GROUP, "from": {"id": 1234, "is_bot": True, "first_name": "D"}}
        opened["forum_topic_created"] = {"name": "Soup", "icon_color": 1}
        topic = {"message_thread_id": 7, "is_topic_message": True, "reply_to_message": opened}
        async with self.receiving(channel) as inbox:
            await far_end.write("Hot?", chat="group", **topic)
            message = await self.next(inbox)
        assert (message.chat, message.thread, message.is_group) == ("-100500/7", "7", True)
        assert not message.is_addressed
        assert message.sent_at == datetime(2026, 1, 1, 12, tzinfo=UTC)

    @pytest.mark.parametrize(
        ("content", "entity", "heard"),
        [
            ("/stop@denizen_bot now", "bot_command", "/stop now"),
            ("well, @denizen_bot", "mention", "well, @denizen_bot"),
            ("@denizen_bot: yes k4", "mention", "yes k4"),
            ("@denizen_bot", "mention", "@denizen_bot"),
        ],
    )
    async def test_bot_is_addressed_by_name(
        self, channel: TelegramChannel, far_end: TelegramServer, content: str, entity: str, heard: str
    ) -> None:
        offset = content.index("/stop" if entity == "bot_command" else "@")
        length = len("/stop@denizen_bot" if entity == "bot_command" else "@denizen_bot")
        async with self.receiving(channel) as inbox:
            await far_end.write(content, chat="group", entities=[{"type": entity, "offset": offset, "length": length}])
            message = await self.next(inbox)
        assert (message.is_addressed, message.content) == (True, heard)

    async def test_reply_to_the_bot_is_addressed(self, channel: TelegramChannel, far_end: TelegramServer) -> None:
        async with self.receiving(channel) as inbox:
            await channel.send(text("Yes.", str(GROUP["id"])))
            await far_end.write("Why?", chat="group", reply_to_message=far_end.messages[-1])
            assert (await self.next(inbox)).is_addressed

    async def test_button_belongs_to_the_presser(self, channel: TelegramChannel, far_end: TelegramServer) -> None:
        choices = (AnswerChoice("Allow", "yes k4"), AnswerChoice("Too long", "x" * 65))
        async with self.receiving(channel) as inbox:
            await channel.send(text("Delete it?", choices=choices[:1]))
            await far_end.press("Allow", presser=BEN)
            assert (await self.next(inbox)).sender == str(BEN["id"])
            await channel.send(text("Without buttons?", choices=choices))
            await self.until_after(inbox, far_end)
        assert far_end.calls["answerCallbackQuery"] == 1
        assert "reply_markup" not in far_end.messages[-1]

    async def test_voice_and_files_are_saved(self, channel: TelegramChannel, far_end: TelegramServer) -> None:
        async with self.receiving(channel) as inbox:
            await far_end.attach(3, kind="voice", data=b"ogg")
            await far_end.attach(4, data=b"note")
            voice, document = await self.next(inbox), await self.next(inbox)
        assert Path(voice.media[0]).read_bytes() == b"ogg"
        assert Path(document.media[0]).name.endswith("-.._notes_1.txt")

    async def test_file_that_is_gone_is_reported_and_keeps_nothing_back(
        self, channel: TelegramChannel, far_end: TelegramServer
    ) -> None:
        await far_end.attach(3)
        far_end.forget_files()
        async with self.receiving(channel) as inbox:
            message = await self.next(inbox)
        assert (message.media, "Telegram answered Wrong file_id" in message.content) == ((), True)

    async def test_file_whose_download_fails_is_reported_and_keeps_nothing_back(
        self, channel: TelegramChannel, far_end: TelegramServer
    ) -> None:
        await far_end.attach(3)
        far_end.lose_files()
        async with self.receiving(channel) as inbox:
            message = await self.next(inbox)
        assert (message.media, "Telegram lost the file" in message.content) == ((), True)

    async def test_second_poller_is_refused_by_name(self, channel: TelegramChannel, far_end: TelegramServer) -> None:
        far_end.is_polled_elsewhere = True
        with pytest.raises(ChannelRefused, match=r"\[channels.telegram\].*only one bot instance.*stop the other"):
            await channel.receive(Inbox().accept)

    # Sending

    async def test_refused_markup_is_sent_as_plain_text(
        self, channel: TelegramChannel, far_end: TelegramServer
    ) -> None:
        assert (await channel.send(text("**Hi**"))).state == "sent"
        far_end.refuses_markup = True
        assert (await channel.send(text("**Hi**"))).state == "sent"
        assert [*await far_end.arrived()] == ["Hi", "**Hi**"]

    async def test_drafts_are_shown_in_private_chats(self, channel: TelegramChannel, far_end: TelegramServer) -> None:
        far_end.has_drafts = True
        draft = await channel.show(str(ANN["id"]), "", "Good …")
        assert await channel.show(str(ANN["id"]), draft, "Good day …") == draft
        assert [*far_end.drafts.values()] == ["Good day …"]
        assert (await channel.send(text("Good day.", edits=draft))).state == "sent"
        assert (await channel.send(text("Good day.", edits=draft, may_be_sent=True))).state == "unknown"
        assert [*await far_end.arrived()] == ["Good day."]
        in_group = await channel.show(str(GROUP["id"]), "", "Good …")
        assert (await channel.send(text("Good day.", str(GROUP["id"]), edits=in_group))).native_id == in_group
        assert [*await far_end.arrived("group")] == ["Good day."]

    async def test_files_are_sent_with_a_caption(
        self, channel: TelegramChannel, far_end: TelegramServer, tmp_path: Path
    ) -> None:
        for name in ("a.png", "b.txt", "c.ogg"):
            (tmp_path / name).write_bytes(b"12345")
        for names in (["a.png"], ["b.txt"], ["c.ogg"], ["a.png", "b.txt"]):
            paths = tuple(str(tmp_path / name) for name in names)
            assert (await channel.send(text("*Look*", media=paths))).state == "sent"
        assert [call for call in far_end.calls if call.startswith("send")] == [
            "sendPhoto", "sendDocument", "sendVoice", "sendMediaGroup"
        ]  # fmt: skip
        assert [*await far_end.arrived()] == ["Look", "Look", "Look", "Look", ""]
        gone = await channel.send(text("Look", media=(str(tmp_path / "gone"),)))
        assert (gone.state, "can't be read" in gone.reason) == ("failed", True)

    async def test_files_after_a_long_text_wait_out_a_flood_limit(
        self, channel: TelegramChannel, far_end: TelegramServer, tmp_path: Path
    ) -> None:
        (tmp_path / "a.png").write_bytes(b"12345")
        await far_end.flood(60, method="sendPhoto")

        class Clock(FakeClock):
            async def sleep(self, seconds: float) -> None:
                await super().sleep(seconds)
                await far_end.flood(0)

        clock = Clock()
        waiting = KIND.connect(settings(far_end), ChannelHome("telegram", tmp_path, clock))
        assert (await waiting.send(text("x" * 2000, media=(str(tmp_path / "a.png"),)))).state == "sent"
        assert clock.slept == [60]
        assert [len(each) for each in await far_end.arrived()] == [2000, 0]

    async def test_unknown_chat_is_a_failure(self, channel: TelegramChannel) -> None:
        failed = await channel.send(text("Hello", "999"))
        assert (failed.state, "hat not found" in failed.reason) == ("failed", True)

    async def test_unreachable_service_is_asked_later(self, far_end: TelegramServer, tmp_path: Path) -> None:
        nobody = TelegramSettings(token=TOKEN, base_url="http://127.0.0.1:9")
        sent = await KIND.connect(nobody, ChannelHome("telegram", tmp_path, FakeClock())).send(text("Hello"))
        assert (sent.state, sent.retry_after > 0) == ("later", True)
        with pytest.raises(ConfigError, match="doesn't answer"):
            await KIND.check(nobody)

    # Setting it up

    async def test_check_names_the_bot(self, far_end: TelegramServer) -> None:
        assert await KIND.check(settings(far_end)) == "@denizen_bot"
        assert KIND.account(settings(far_end)) == "1234"
        for token in ("1234:wrong", ""):
            with pytest.raises(ChannelRefused, match="@BotFather"):
                await KIND.check(settings(far_end, token))
