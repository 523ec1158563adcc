"""Discord, with the real library and a fake server on loopback."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.worlds.chat.delivery.channels.kill_conformance import KilledChannelConformance, home_of
from tests.worlds.chat.delivery.channels.servers.discord_server import (
    ANN,
    BOT,
    GROUP,
    HOME,
    OTHER_BOT,
    THREAD,
    WORK,
    DiscordServer,
    connected,
)

from denizen.ports import (
    AnswerChoice,
    Channel,
    ChannelHome,
    ChannelRefused,
    ChannelSettings,
    Fetch,
    InboundMessage,
    OutboundMessage,
)
from denizen.testing import FakeClock, FarEnd
from denizen.testing.conformance_channel import Inbox
from denizen.worlds.chat.delivery.channels.discord import KIND, MAX_SEARCHED_MESSAGES, MAX_STRANGERS, check

CHATS = {"home": HOME, "work": WORK, "thread": THREAD}
PATIENCE_S = 60.0
pytestmark = pytest.mark.filterwarnings("ignore:'audioop' is deprecated")  # by the library, on Python 3.11 and 3.12


class DiscordEnd(FarEnd):
    def __init__(self, server: DiscordServer) -> None:
        self.server = server

    async def write(self, content: str, *, chat: str = "home") -> None:
        await self.server.connected.wait()  # a bot can't find out who wrote to it for the first time before
        await self.server.post(CHATS[chat], ANN, content)

    async def arrived(self, chat: str = "home") -> Sequence[str]:
        return [each["content"] for each in self.server.messages[CHATS[chat]] if each["author"]["id"] == str(BOT)]

    async def write_in_group(self, content: str, *, addressed: bool) -> None:
        mentions, prefix = ([self.server.user(BOT)], f"<@{BOT}> ") if addressed else ([], "")
        await self.server.post(GROUP, ANN, f"{prefix}{content}", mentions=mentions)

    async def attach(self, size: int) -> None:
        await self.server.connected.wait()
        self.server.files["notes.txt"] = b"x" * min(size, 100)
        url = "https://cdn.discordapp.com/attachments/notes.txt"
        file = {"id": "7", "filename": "notes.txt", "size": size, "url": url, "proxy_url": url}
        await self.server.post(HOME, ANN, "", attachments=[file])

    async def press(self, label: str) -> None:
        await self.server.press(HOME, label)

    async def refuse_edits(self) -> None:
        self.server.refuses_edits = True

    async def repeat(self, *, new_id: bool = False) -> None:
        await self.server.dispatch("MESSAGE_CREATE", self.last())

    async def echo(self) -> None:
        """The server always echoes."""

    async def edit(self, content: str) -> None:
        await self.server.change(self.last(), content)

    def last(self) -> dict[str, object]:
        return [each for each in self.server.messages[HOME] if each["author"]["id"] == str(ANN)][-1]

    async def write_as_bot(self, content: str) -> None:
        await self.server.post(HOME, OTHER_BOT, content)

    async def flood(self, seconds: float) -> None:
        self.server.flood_s = seconds

    async def lose_answer(self) -> None:
        self.server.loses_answer = True

    async def drop_connections(self) -> None:
        self.server.drop_connections()

    async def go_down(self) -> None:
        await self.server.listener.close()
        self.server.drop_connections()

    async def come_back(self) -> None:
        await self.server.listener.open()

    async def rotate_token(self) -> None:
        await self.server.reset_token()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[DiscordServer]:
    server = DiscordServer(tmp_path)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def channel(server: DiscordServer, tmp_path: Path) -> Channel:
    return connected(server.settings, home_of(tmp_path, "discord"))


class TestDiscord(KilledChannelConformance):
    @pytest.fixture
    def channel(self, server: DiscordServer, tmp_path: Path) -> Channel:
        return connected(server.settings, home_of(tmp_path, "discord"))

    @pytest.fixture
    def far_end(self, server: DiscordServer) -> FarEnd:
        return DiscordEnd(server)

    @pytest.fixture
    def opening(self, server: DiscordServer) -> tuple[str, ChannelSettings]:
        return f"{connected.__module__}:KIND", server.settings


@asynccontextmanager
async def listening(channel: Channel, server: DiscordServer) -> AsyncGenerator[asyncio.Queue[InboundMessage]]:
    """The messages that the channel receives during the block."""
    messages: asyncio.Queue[InboundMessage] = asyncio.Queue()

    async def accept(message: InboundMessage, fetch: Fetch | None = None) -> bool:
        messages.put_nowait(await fetch(message) if fetch else message)
        return True

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        task = group.create_task(channel.receive(accept))
        await server.connected.wait()
        yield messages
        task.cancel()


async def test_dropped_connection_is_resumed(server: DiscordServer, channel: Channel) -> None:
    async with listening(channel, server) as messages:
        await server.post(HOME, ANN, "1")
        await messages.get()
        server.drop_connections()
        for content in ("2", "3"):
            await server.post(HOME, ANN, content)
        assert [(await messages.get()).content for _ in range(2)] == ["2", "3"]
    assert server.opened == ["identify", "resume"]


async def test_messages_of_an_absence_arrive_also_in_channels_that_it_never_read(
    server: DiscordServer, channel: Channel
) -> None:
    async with listening(channel, server) as messages:
        await server.post(HOME, ANN, "Hello")
        await messages.get()
    for number in range(120):
        await server.post(HOME, ANN, str(number))
    await server.post(GROUP, ANN, "Anybody here?")
    async with listening(channel, server) as messages:
        arrived = [await messages.get() for _ in range(121)]
    assert [each.content for each in arrived if not each.is_group] == [*map(str, range(120))]
    assert [each.content for each in arrived if each.is_group] == ["Anybody here?"]


async def test_history_from_before_the_first_connection_is_not_received(server: DiscordServer, tmp_path: Path) -> None:
    await server.post(GROUP, ANN, "Between us")
    home = ChannelHome("discord", tmp_path / "discord", FakeClock(server.after_all))
    async with listening(connected(server.settings, home), server) as messages:
        await server.post(HOME, ANN, "Hello")
        assert (await messages.get()).content == "Hello"


async def test_messages_before_a_new_session_come_before_those_after_it(
    server: DiscordServer, channel: Channel
) -> None:
    async with listening(channel, server) as messages:
        await server.post(HOME, ANN, "1")
        await messages.get()
        server.sessions_end = True
        server.drop_connections()
        server.messages[HOME].append(server.messages[HOME][0] | {"id": str(server.new_id()), "content": "2"})
        server.connected.clear()
        await server.connected.wait()
        await server.post(HOME, ANN, "3")
        assert [(await messages.get()).content for _ in range(2)] == ["2", "3"]
    assert server.opened == ["identify", "resume", "identify"]


async def test_message_that_was_sent_long_ago_is_found_in_the_history(server: DiscordServer, channel: Channel) -> None:
    async with listening(channel, server) as messages:
        await server.post(HOME, ANN, "Hello")
        hello = await messages.get()
        reply = OutboundMessage("discord", hello.chat, "Good day.", in_reply_to=hello.id)
        sent = await channel.send(reply)
        server.nonces.clear()
        assert await channel.send(replace(reply, may_be_sent=True)) == sent
    assert len(server.messages[HOME]) == 2


async def test_message_too_far_back_to_find_stays_unknown(server: DiscordServer, channel: Channel) -> None:
    async with listening(channel, server) as messages:
        await server.post(HOME, ANN, "Hello")
        hello = await messages.get()
        later = [server.messages[HOME][0] | {"id": str(server.new_id())} for _ in range(MAX_SEARCHED_MESSAGES)]
        server.messages[HOME] += later
        reply = OutboundMessage("discord", hello.chat, "Good day.", in_reply_to=hello.id, may_be_sent=True)
        assert (await channel.send(reply)).state == "unknown"
        tried_at = server.after_all + timedelta(minutes=1)
        assert (await channel.send(replace(reply, in_reply_to="", tried_at=tried_at))).state == "sent"
    assert len(server.messages[HOME]) == 2 + MAX_SEARCHED_MESSAGES


async def test_pressed_button_is_confirmed_after_it_was_accepted(server: DiscordServer, channel: Channel) -> None:
    async with listening(channel, server) as messages:
        await server.post(HOME, ANN, "Hello")
        hello = await messages.get()
        choices = (AnswerChoice("Allow", "yes k4"),)
        await channel.send(OutboundMessage("discord", hello.chat, "Delete it?", choices=choices))
        await server.press(HOME, "Allow")
        assert (await messages.get()).content == "yes k4"
        await server.acknowledged()
    assert server.pressed == [{"type": 6}]


async def test_answer_to_its_message_addresses_it(server: DiscordServer, channel: Channel) -> None:
    async with listening(channel, server) as messages:
        await server.post(GROUP, ANN, "Hello")
        hello = await messages.get()
        await channel.send(OutboundMessage("discord", hello.chat, "Good day."))
        answered = server.messages[GROUP][-1]
        reference = {"message_id": answered["id"], "channel_id": str(GROUP)}
        more = {"type": 19, "message_reference": reference, "referenced_message": answered}
        await server.post(GROUP, ANN, "Thanks", **more)
        thanks = await messages.get()
    assert (hello.is_addressed, thanks.is_addressed) == (False, True)


async def test_nobody_mentions_everyone_also_in_an_edit(server: DiscordServer, channel: Channel) -> None:
    async with listening(channel, server):
        sent = await channel.send(OutboundMessage("discord", str(HOME), "@everyone"))
        await channel.send(OutboundMessage("discord", str(HOME), "@here, look", edits=sent.native_id))
    assert [each["parse"] for each in server.mentions] == [["users"]] * 2


async def test_files_are_sent_in_one_message(server: DiscordServer, channel: Channel, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.txt", "b.txt")]
    for path in paths:
        path.write_text(path.name)
    async with listening(channel, server) as messages:
        await server.post(HOME, ANN, "Hello")
        hello = await messages.get()
        sent = await channel.send(OutboundMessage("discord", hello.chat, "Both", media=tuple(map(str, paths))))
    assert sent.state == "sent"
    assert server.files == {"a.txt": b"a.txt", "b.txt": b"b.txt"}
    assert [each["content"] for each in server.messages[HOME]] == ["Hello", "Both"]


async def test_file_that_is_gone_is_reported(server: DiscordServer, channel: Channel) -> None:
    url = "https://cdn.discordapp.com/attachments/gone.txt"
    file = {"id": "7", "filename": "gone.txt", "size": 3, "url": url, "proxy_url": url}
    async with listening(channel, server) as messages:
        await server.post(HOME, ANN, "Look", attachments=[file])
        message = await messages.get()
    assert (message.media, message.content) == ((), "Look\n[The file gone.txt was not received: Discord answered 404.]")


async def test_preview_of_a_link_is_no_edit(server: DiscordServer, channel: Channel) -> None:
    async with listening(channel, server) as messages:
        message = await server.post(HOME, ANN, "https://example.org")
        await messages.get()
        await server.dispatch("MESSAGE_UPDATE", message | {"embeds": [{"type": "link"}]})
        await server.post(HOME, ANN, "After that")
        assert (await messages.get()).content == "After that"


async def test_thread_names_its_channel(server: DiscordServer, channel: Channel) -> None:
    async with listening(channel, server) as messages:
        await server.post(THREAD, ANN, "Hello")
        await server.post(GROUP, ANN, "Hello")
        rooms = {each.chat: each.room for each in (await messages.get(), await messages.get())}
    assert rooms == {str(THREAD): str(GROUP), str(GROUP): ""}


async def test_only_the_newest_chats_with_strangers_are_remembered(server: DiscordServer, tmp_path: Path) -> None:
    channel, inbox = connected(server.settings, home_of(tmp_path, "discord")), Inbox()
    strangers = range(5000, 5000 + MAX_STRANGERS + 5)
    server.messages |= {chat: [] for chat in (*strangers, 9999)}

    async def accept(message: InboundMessage, fetch: Fetch | None = None) -> bool:
        await inbox.accept(message)
        return message.chat == str(HOME)

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        task = group.create_task(channel.receive(accept))
        await server.connected.wait()
        for chat in (HOME, *strangers, 9999):
            await server.post(chat, ANN, "Hello")
        while (await inbox.messages.get()).chat != "9999":
            pass
        task.cancel()
    progress = msgspec.json.decode((tmp_path / "channel" / "read.json").read_bytes())
    kept = {int(chat) for chat in progress["chats"]}
    assert kept == {HOME, 9999, *strangers[1 - MAX_STRANGERS :]}


async def test_chat_that_is_not_a_number_is_a_failure(channel: Channel) -> None:
    sent = await channel.send(OutboundMessage("discord", "#general", "Hello"))
    assert (sent.state, "isn't the id of a Discord channel" in sent.reason) == ("failed", True)


async def test_missing_intent_is_explained(server: DiscordServer, channel: Channel) -> None:
    server.intent_flags = 0
    with pytest.raises(ChannelRefused, match="Message Content Intent"):
        async with asyncio.timeout(PATIENCE_S):
            await channel.receive(Inbox().accept)
    with pytest.raises(ChannelRefused, match="Message Content Intent"):
        await check(server.settings, server.settings.connector)


async def test_check_names_the_bot_or_says_what_is_wrong(server: DiscordServer) -> None:
    settings = server.settings
    assert await check(settings, settings.connector) == "denizen"
    assert KIND.account(settings) == "MTAw"
    with pytest.raises(ChannelRefused, match="Copy the new one"):
        await check(replace(settings, token="old"), settings.connector)
