"""Slack, against a server of the documented Web API and Socket Mode."""

import textwrap
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.worlds.chat.delivery.channels.kill_conformance import KilledChannelConformance
from tests.worlds.chat.delivery.channels.servers.slack import ANN, APP_TOKEN, BEN, BOT, BOT_TOKEN, SlackServer

from denizen.errors import ConfigError
from denizen.ports import AnswerChoice, ChannelHome, ChannelRefused, ChannelSettings, OutboundMessage
from denizen.testing import FakeClock
from denizen.worlds.chat.delivery.channels.slack import KIND, MANIFEST, SlackChannel, SlackSettings

PAGE = Path(__file__).parents[5] / "docs" / "channels" / "slack.md"
THREAD = "D0ANN/1699.000007"


def settings(server: SlackServer, token: str = BOT_TOKEN) -> SlackSettings:
    return SlackSettings(bot_token=token, app_token=APP_TOKEN, base_url=f"{server.url}/api/")


def text(content: str, chat: str = "D0ANN", **fields: object) -> OutboundMessage:
    return replace(OutboundMessage("slack", chat, content), **fields)


class TestSlack(KilledChannelConformance):
    @pytest.fixture
    async def far_end(self) -> AsyncGenerator[SlackServer]:
        async with SlackServer().serving() as server:
            yield server

    @pytest.fixture
    def channel(self, far_end: SlackServer, tmp_path: Path) -> SlackChannel:
        channel = KIND.connect(settings(far_end), ChannelHome("slack", tmp_path / "home", FakeClock()))
        assert isinstance(channel, SlackChannel)
        return channel

    @pytest.fixture
    def opening(self, far_end: SlackServer) -> tuple[str, ChannelSettings]:
        return f"{SlackSettings.__module__}:KIND", settings(far_end)

    # Receiving

    async def test_mention_that_is_also_a_message_arrives_once(
        self, channel: SlackChannel, far_end: SlackServer
    ) -> None:
        async with self.receiving(channel) as inbox:
            await far_end.write(f"<@{BOT}> lunch?", chat="group")
            await far_end.write(f"<@{BOT}> lunch?", chat="group", kind="app_mention", ts=far_end.last["ts"])
            message, *more = await self.until_after(inbox, far_end)
        assert (message.content, message.is_addressed, more) == ("lunch?", True, [])

    async def test_envelope_is_acknowledged_once_its_message_is_accepted(
        self, channel: SlackChannel, far_end: SlackServer
    ) -> None:
        async with self.receiving(channel, refuses=True) as inbox:
            await far_end.write("1")
            await self.next(inbox)
        assert far_end.unconfirmed() == 1
        async with self.receiving(channel) as inbox:
            await self.next(inbox)
            await far_end.settled()

    async def test_nothing_is_lost_when_slack_refreshes_the_connection(
        self, channel: SlackChannel, far_end: SlackServer
    ) -> None:
        async with self.talking(channel, far_end) as (inbox, _):
            for reason in ("refresh_requested", "warning"):
                await far_end.refresh(reason)
                await far_end.write(reason)
                assert (await self.next(inbox)).content == reason
        assert far_end.calls["apps.connections.open"] == 3

    async def test_thread_of_a_channel_is_a_chat(self, channel: SlackChannel, far_end: SlackServer) -> None:
        async with self.receiving(channel) as inbox:
            await far_end.write("Hot?", chat="group", thread_ts="1699.1", parent_user_id=ANN)
            await far_end.write("Sure?", chat="group", thread_ts="1699.2", parent_user_id=BOT)
            aside, reply = await self.next(inbox), await self.next(inbox)
        assert (aside.chat, aside.thread, aside.is_addressed) == ("C0LUNCH/1699.1", "1699.1", False)
        assert (reply.chat, reply.is_addressed) == ("C0LUNCH/1699.2", True)

    async def test_unfolded_link_is_not_an_edit(self, channel: SlackChannel, far_end: SlackServer) -> None:
        async with self.talking(channel, far_end) as (inbox, _):
            await far_end.edit("Hello", is_edited=False)
            await far_end.edit("Hello")
            assert await self.until_after(inbox, far_end) == []

    @pytest.mark.parametrize(
        ("written", "heard"),
        [
            ("1 &lt; 2 &amp;&amp; <https://a.b|docs>", "1 < 2 && docs (https://a.b)"),
            ("<https://a.b|a.b> <@U0BEN> <#C0LUNCH|lunch> <!here>", "https://a.b @U0BEN #lunch @here"),
        ],
    )
    async def test_text_is_read_as_people_see_it(
        self, channel: SlackChannel, far_end: SlackServer, written: str, heard: str
    ) -> None:
        async with self.receiving(channel) as inbox:
            await far_end.write(written)
            assert (await self.next(inbox)).content == heard

    async def test_file_that_the_app_may_not_read_is_reported(
        self, channel: SlackChannel, far_end: SlackServer
    ) -> None:
        far_end.hides_files = True
        async with self.receiving(channel) as inbox:
            await far_end.attach(10)
            message = await self.next(inbox)
        assert (message.media, "files:read" in message.content) == ((), True)

    async def test_file_of_another_host_is_not_fetched_with_the_token(
        self, channel: SlackChannel, far_end: SlackServer
    ) -> None:
        url = far_end.url.replace("127.0.0.1", "localhost") + "/files/F1"
        async with self.receiving(channel) as inbox:
            await far_end.attach(10)
            assert (await self.next(inbox)).media
            file = {"id": "F1", "name": "notes", "mode": "external", "is_external": True, "url_private": url}
            await far_end.write("Look", subtype="file_share", files=[file])
            message = await self.next(inbox)
        assert (message.media, f"it is kept at {url}" in message.content) == ((), True)

    async def test_file_that_is_gone_is_reported(self, channel: SlackChannel, far_end: SlackServer) -> None:
        file = {"id": "F9", "name": "notes", "mimetype": "text/plain", "url_private": f"{far_end.url}/gone/F9"}
        async with self.receiving(channel) as inbox:
            await far_end.write("Look", subtype="file_share", files=[file])
            message = await self.next(inbox)
        assert (message.media, "Slack answered 404" in message.content) == ((), True)

    async def test_button_belongs_to_the_presser(self, channel: SlackChannel, far_end: SlackServer) -> None:
        async with self.receiving(channel) as inbox:
            await channel.send(text("Delete it?", THREAD, choices=(AnswerChoice("Allow", "yes k4"),)))
            await far_end.press("Allow", presser=BEN)
            answer = await self.next(inbox)
        assert (answer.content, answer.sender, answer.chat) == ("yes k4", BEN, THREAD)

    # Sending

    async def test_refused_markup_is_sent_as_plain_text(self, channel: SlackChannel, far_end: SlackServer) -> None:
        far_end.refuses_markup = True
        assert (await channel.send(text("**1 < 2**"))).state == "sent"
        assert [*await far_end.arrived()] == ["**1 &lt; 2**"]

    async def test_reply_in_a_thread_is_streamed(self, channel: SlackChannel, far_end: SlackServer) -> None:
        async with self.talking(channel, far_end, "thread"):
            draft = await channel.show(THREAD, "", "Good …")
            assert await channel.show(THREAD, draft, "Good day …") == draft
            assert [*await far_end.arrived("thread")] == ["Good day"]
            assert far_end.calls["chat.appendStream"] == 1
            reply = text("Good day.", THREAD, edits=draft)
            assert draft.endswith((await channel.send(reply)).native_id)
            assert (await channel.send(replace(reply, may_be_sent=True))).state == "sent"
        assert [*await far_end.arrived("thread")] == ["Good day."]

    async def test_stream_of_a_process_that_died_becomes_the_reply(
        self, channel: SlackChannel, far_end: SlackServer, tmp_path: Path
    ) -> None:
        async with self.talking(channel, far_end, "thread"):
            draft = await channel.show(THREAD, "", "Good …")
        later = KIND.connect(settings(far_end), ChannelHome("slack", tmp_path, FakeClock()))
        assert (await later.send(text("Good day.", THREAD, edits=draft))).state == "sent"
        assert [*await far_end.arrived("thread")] == ["Good day."]

    async def test_refused_stream_is_a_message_that_is_edited(
        self, channel: SlackChannel, far_end: SlackServer
    ) -> None:
        far_end.refuses_streams = True
        async with self.talking(channel, far_end, "thread"):
            draft = await channel.show(THREAD, "", "Good …")
            await channel.show(THREAD, draft, "Good day …")
            assert [*await far_end.arrived("thread")] == ["Good day …"]

    async def test_files_whose_answer_is_lost_are_found(
        self, channel: SlackChannel, far_end: SlackServer, tmp_path: Path
    ) -> None:
        (path := tmp_path / "a.png").write_bytes(b"12345")
        reply = text("", media=(str(path),))
        await far_end.lose_answer()
        assert (await channel.send(reply)).state == "unknown"
        assert (await channel.send(replace(reply, may_be_sent=True))).state == "sent"
        assert far_end.uploaded() == [b"12345"]
        assert far_end.messages[0]["files"][0]["title"] == "a.png"

    async def test_deleted_file_in_the_history_is_no_obstacle(
        self, channel: SlackChannel, far_end: SlackServer
    ) -> None:
        reply = text("Hello")
        await far_end.lose_answer()
        assert (await channel.send(reply)).state == "unknown"
        far_end.messages.append({**far_end.messages[0], "metadata": {}, "files": [{"id": "F1", "mode": "tombstone"}]})
        assert (await channel.send(replace(reply, may_be_sent=True))).state == "sent"

    async def test_history_that_is_too_long_leaves_it_unknown_unless_its_time_is_known(
        self, channel: SlackChannel, far_end: SlackServer
    ) -> None:
        await channel.send(text("Earlier"))
        far_end.messages += [{**far_end.messages[0], "metadata": {}} for _ in range(1_000)]
        far_end.page_size = 200
        lost = replace(text("Hello"), may_be_sent=True)
        assert (await channel.send(lost)).state == "unknown"
        tried_at = datetime.now(UTC) + timedelta(minutes=1)
        assert (await channel.send(replace(lost, tried_at=tried_at))).state == "sent"
        assert [*await far_end.arrived()][1_000:] == ["Earlier", "Hello"]

    async def test_question_mentions_nobody_in_its_notification(
        self, channel: SlackChannel, far_end: SlackServer
    ) -> None:
        await channel.send(text("Tell <!channel>?", choices=(AnswerChoice("Allow", "yes k4"),)))
        assert far_end.messages[-1]["fallback"] == "Tell &lt;!channel&gt;?"

    async def test_files_after_a_text_wait_out_a_flood_limit(self, far_end: SlackServer, tmp_path: Path) -> None:
        (path := tmp_path / "a.png").write_bytes(b"12345")

        class Clock(FakeClock):
            async def sleep(self, seconds: float) -> None:
                await super().sleep(seconds)
                await far_end.flood(0)

        clock = Clock()
        waiting = KIND.connect(settings(far_end), ChannelHome("slack", tmp_path, clock))
        await far_end.flood(60, method="files.completeUploadExternal")
        assert (await waiting.send(text("Look", media=(str(path),)))).state == "sent"
        assert (clock.slept, far_end.uploaded()) == ([60], [b"12345"])
        assert [*await far_end.arrived()] == ["Look", ""]

    async def test_unknown_chat_is_a_failure(self, channel: SlackChannel) -> None:
        failed = await channel.send(text("Hello", "C0GONE"))
        assert (failed.state, "channel_not_found" in failed.reason) == ("failed", True)

    async def test_unreachable_service_is_asked_later(self, tmp_path: Path) -> None:
        nobody = SlackSettings(bot_token=BOT_TOKEN, app_token=APP_TOKEN, base_url="http://127.0.0.1:9/api/")
        sent = await KIND.connect(nobody, ChannelHome("slack", tmp_path, FakeClock())).send(text("Hello"))
        assert (sent.state, sent.retry_after > 0) == ("later", True)
        with pytest.raises(ConfigError, match="doesn't respond"):
            await KIND.check(nobody)

    # Setting it up

    async def test_check_names_the_bot(self, far_end: SlackServer) -> None:
        assert await KIND.check(settings(far_end)) == "@denizen in Lunch & Co"
        assert KIND.account(settings(far_end)) == "A01APP"
        with pytest.raises(ChannelRefused, match="invalid_auth"):
            await KIND.check(settings(far_end, "xoxb-wrong"))

    async def test_check_reports_an_address_without_the_web_api(self, far_end: SlackServer) -> None:
        elsewhere = SlackSettings(bot_token=BOT_TOKEN, app_token=APP_TOKEN, base_url=far_end.url)
        with pytest.raises(ConfigError, match="doesn't respond like Slack"):
            await KIND.check(elsewhere)


def test_page_and_setup_steps_have_the_same_manifest() -> None:
    shown = textwrap.dedent(PAGE.read_text().partition("```yaml\n")[2].partition("```")[0])
    assert msgspec.yaml.decode(shown.encode()) == MANIFEST
    assert msgspec.json.format(msgspec.json.encode(MANIFEST), indent=2).decode() in KIND.steps
