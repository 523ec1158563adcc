"""A text world as a channel: characters in a world of data page their owner."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from tests.conftest import Drive
from tests.worlds.chat.delivery.channels.kill_conformance import KilledChannelConformance
from tests.worlds.moo.play import FakeWorld, Play, playing

from denizen.ports import Channel, ChannelHome, ChannelSettings, InboundMessage, OutboundMessage, Sent
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore
from denizen.sessions.request_socket import SessionRequest, serve_requests
from denizen.testing import FarEnd
from denizen.testing.conformance_channel import Inbox
from denizen.worlds.moo.channel import KIND, MooChannel, MooChannelSettings
from denizen.worlds.moo.server_text import CommandOutput

CHATS = {"home": "mason", "work": "tinker"}
SETTINGS = MooChannelSettings(owner="Ann")
PAGE = 'page Ann with "'


class World(FakeWorld):
    """May have a player Ann, who is there or not."""

    is_known = is_there = True

    async def request(self, command: str) -> CommandOutput:
        output = await super().request(command)
        if output.problem:
            return output
        answer = "Your message has been sent." if self.is_there else "Ann is not currently logged in."
        return CommandOutput(command, [answer if self.is_known else "There is no 'Ann' here."])


class Town(FarEnd):
    """The worlds of Mason and Tinker, as their owner reads them."""

    def __init__(self) -> None:
        self.plays: dict[str, Play] = {}
        self.loses_answer = False

    async def write(self, content: str, *, chat: str = "home") -> None:
        pytest.skip("the channel only sends")

    async def write_in_group(self, content: str, *, addressed: bool) -> None:
        pytest.skip("the channel only sends")

    async def arrived(self, chat: str = "home") -> Sequence[str]:
        sent = self.plays[chat].world.sent
        return [each.removeprefix(PAGE)[:-1].rstrip() for each in sent if each.startswith(PAGE)]

    async def lose_answer(self) -> None:
        self.loses_answer = True

    async def answer(self, chat: str, request: SessionRequest) -> str:
        answer = await self.plays[chat].brain.answer(request)
        if self.loses_answer:
            self.loses_answer = False
            raise ConnectionResetError
        return answer


def key_of(chat: str) -> str:
    return f"agent:{CHATS[chat]}:channel:moo:account:{chat}@localhost:peer:direct:world"


@asynccontextmanager
async def character(home: Path, town: Town, chat: str) -> AsyncGenerator[Play]:
    """A character that plays in a world of its own, and listens."""
    await (await JsonlStore(home / "sessions", clock=SystemClock()).open(key_of(chat))).close()
    (folder := home / chat).mkdir(exist_ok=True)
    async with AsyncExitStack() as stack:
        play = await stack.enter_async_context(playing(folder, [], make_world=World, idle_wakeup_seconds=0))
        town.plays[chat] = play
        await stack.enter_async_context(serve_requests(home, key_of(chat), lambda asked: town.answer(chat, asked)))
        yield play


class TestMoo(KilledChannelConformance):
    @pytest.fixture
    def channel(self, tmp_path: Path) -> Channel:
        return MooChannel(SETTINGS, ChannelHome("moo", tmp_path / "channels" / "moo", SystemClock()))

    @pytest.fixture
    async def far_end(self, channel: Channel, tmp_path: Path) -> AsyncGenerator[FarEnd]:
        town = Town()
        async with character(tmp_path, town, "home"), character(tmp_path, town, "work"):
            yield town

    @pytest.fixture
    def opening(self) -> tuple[str, ChannelSettings]:
        return "denizen.worlds.moo.channel:KIND", SETTINGS

    @asynccontextmanager
    async def talking(
        self, channel: Channel, far_end: FarEnd, chat: str = "home"
    ) -> AsyncGenerator[tuple[Inbox, InboundMessage]]:
        async with self.receiving(channel) as inbox:
            yield inbox, InboundMessage("moo", CHATS[chat], "", "", "")

    async def test_message_says_where_it_is_from(self, channel: Channel, far_end: FarEnd) -> None:
        pytest.skip("the channel only sends")

    async def kill_each_send(self, channel: Channel, far_end: FarEnd, driver: Drive, folder: Path) -> int:
        (channels := folder / "channels").mkdir()
        return await super().kill_each_send(channel, far_end, driver, channels)

    async def test_second_gateway_is_refused_by_name(
        self, channel: Channel, opening: tuple[str, ChannelSettings], tmp_path: Path
    ) -> None:
        pytest.skip("several gateways may page the same player")


def world_of(play: Play) -> World:
    assert isinstance(play.world, World)
    return play.world


def to(chat: str, request_id: str = "1") -> OutboundMessage:
    return OutboundMessage("moo", chat, "The backup\nis done.", id=request_id)


@pytest.fixture
def town() -> Town:
    return Town()


@pytest.fixture
def channel(tmp_path: Path) -> MooChannel:
    return MooChannel(SETTINGS, ChannelHome("moo", tmp_path / "channels" / "moo", SystemClock()))


async def test_page_is_one_line_and_the_character_sees_it(channel: MooChannel, town: Town, tmp_path: Path) -> None:
    async with character(tmp_path, town, "home") as play:
        assert await channel.send(to("Mason")) == Sent()
        assert await town.arrived() == ["The backup is done."]
        assert play.watcher.told("action") == [f'{PAGE}The backup is done."']


async def test_page_to_a_player_who_is_not_there_waits_and_then_arrives(
    channel: MooChannel, town: Town, tmp_path: Path
) -> None:
    async with character(tmp_path, town, "home") as play:
        world_of(play).is_there = False
        sent = await channel.send(to("mason"))
        assert (sent.state, sent.reason, sent.retry_after) == ("later", "Ann is not currently logged in.", 60)
        world_of(play).is_there = True
        assert await channel.send(to("mason")) == await channel.send(to("mason")) == Sent()
        assert len(await town.arrived()) == 2


async def test_unknown_player_fails_with_the_words_of_the_world(
    channel: MooChannel, town: Town, tmp_path: Path
) -> None:
    async with character(tmp_path, town, "home") as play:
        world_of(play).is_known = False
        assert await channel.send(to("mason")) == Sent("failed", "There is no 'Ann' here.")


async def test_page_without_an_answer_of_the_world_is_unknown_and_not_repeated(
    channel: MooChannel, town: Town, tmp_path: Path
) -> None:
    async with character(tmp_path, town, "home") as play:
        play.world.problems[f'{PAGE}The backup is done."'] = "no answer within 40 s"
        assert (await channel.send(to("mason"))).state == (await channel.send(to("mason"))).state == "unknown"
        assert len(await town.arrived()) == 1


async def test_character_that_is_not_running_or_not_signed_in_is_paged_later(
    channel: MooChannel, town: Town, tmp_path: Path
) -> None:
    async with character(tmp_path, town, "home") as play:
        play.world.lose()
        await play.until(play.running.done)
        assert (await channel.send(to("mason"))).state == "later"
        play.go_on(world := World(play.clock))
        play.world = world
    sent = await channel.send(to("mason"))
    assert (sent.state, sent.reason, sent.retry_after > 0) == ("later", "mason isn't running.", True)


async def test_character_that_died_while_it_paged_leaves_the_page_unknown(
    channel: MooChannel, town: Town, tmp_path: Path
) -> None:
    async with character(tmp_path, town, "home") as play:

        def crash() -> None:
            play.running.cancel()

        play.world.on[f'{PAGE}The backup is done."'] = crash
        sending = asyncio.create_task(channel.send(to("mason")))
        await play.until(lambda: play.world.sent)
        town.plays.clear()
    assert (await sending).state == "unknown"
    async with character(tmp_path, town, "home"):
        assert (await channel.send(to("mason"))).state == "unknown"
        assert not await town.arrived()


async def test_unknown_character_fails(channel: MooChannel) -> None:
    sent = await channel.send(to("mason"))
    assert (sent.state, "called mason" in sent.reason) == ("failed", True)


async def test_check_returns_the_owner() -> None:
    assert await KIND.check(SETTINGS) == "Ann"
