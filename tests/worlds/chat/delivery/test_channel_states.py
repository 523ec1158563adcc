"""The states of channels, and alarms about those that stay down."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from tests.worlds.chat.conftest import PATIENCE, Serve

from denizen.ports import Accept, ChannelRefused
from denizen.testing import FakeClock, MemoryChannel
from denizen.worlds.chat.delivery.channel_states import ChannelStates


class Observed:
    """The states of one channel, and the alarms about it."""

    def __init__(self, home: Path) -> None:
        self.clock = FakeClock()
        self.alarms: list[str] = []
        self.path = home / "channels.json"
        self.states = ChannelStates(self.path, ["irc"], self.clock, self._alarm)

    async def _alarm(self, channel: str, text: str) -> None:
        self.alarms.append(text)

    @property
    def line(self) -> str:
        return self.states.now["irc"].line()

    async def fail(self, *, after: float = 0.0, is_refused: bool = False) -> None:
        self.states.note_start("irc")
        await self.clock.sleep(after)
        await self.states.fail("irc", "no route", is_refused=is_refused)


@pytest.fixture
def observed(home: Path) -> Observed:
    return Observed(home)


async def test_state_shows_the_last_message_and_error(observed: Observed) -> None:
    assert observed.line == "not connected; no message yet"
    observed.states.note_start("irc")
    observed.states.note_message("irc")
    assert observed.line == "connected; last message 2026-01-01 12:00"
    await observed.fail()
    assert observed.line == "not connected; last message 2026-01-01 12:00; last error 2026-01-01 12:00: no route"


async def test_channel_counts_as_connected_again_after_four_minutes_or_a_message(observed: Observed) -> None:
    await observed.fail()
    observed.states.note_start("irc")
    assert observed.line.startswith("not connected")
    await observed.clock.sleep(240)
    assert observed.line.startswith("connected")
    await observed.fail()
    observed.states.note_start("irc")
    observed.states.note_message("irc")
    assert observed.line.startswith("connected")


@pytest.mark.parametrize("after", [0, 55, 185], ids=["at once", "soon", "when its client gives up on a silent service"])
async def test_channel_that_stays_down_raises_one_alarm(observed: Observed, after: float) -> None:
    for _ in range(10):
        await observed.fail(after=after)
        await observed.clock.sleep(40)
    assert observed.alarms == ["Channel irc can't be reached; its messages wait. no route"]


async def test_channel_that_recovers_between_failures_raises_no_alarm(observed: Observed) -> None:
    for _ in range(10):
        await observed.fail(after=250)
    assert not observed.alarms


async def test_channel_that_is_refused_raises_an_alarm_at_once(observed: Observed) -> None:
    await observed.fail(is_refused=True)
    await observed.fail(is_refused=True)
    assert observed.alarms == ["Channel irc is refused; its messages wait. no route"]


async def _no_alarm(channel: str, text: str) -> None:
    pass


async def test_states_are_kept_after_the_gateway_stops(serve: Serve, home: Path) -> None:
    channel = MemoryChannel("irc")
    async with serve("hello", channels=[channel]) as scene:
        channel.write("hi", chat="ann")
        await scene.contents(1, channel="irc")
        assert scene.gateway.channels.now["irc"].connected
    kept = ChannelStates(home / "channels.json", ["irc"], FakeClock(), _no_alarm).now["irc"]
    assert kept.last_message
    assert kept.line(is_running=False).startswith("the gateway isn't running; last message")


class Revoked(MemoryChannel):
    """A channel whose token was revoked."""

    async def receive(self, accept: Accept) -> None:
        raise ChannelRefused("The token was revoked; get a new one.")


async def test_owner_is_alarmed_on_another_channel(serve: Serve) -> None:
    async with serve(channels=[Revoked("irc")], owner="http:ann") as scene:
        [alarm] = await scene.contents(1)
    assert alarm == "Channel irc is refused; its messages wait. The token was revoked; get a new one."


async def test_owner_is_not_alarmed_by_the_channel_that_is_down(serve: Serve) -> None:
    revoked = Revoked("irc")
    async with serve(channels=[revoked, MemoryChannel("board")], owner="irc:ann") as scene:
        async with asyncio.timeout(PATIENCE):
            while not scene.gateway.channels.now["irc"].last_error:
                await scene.gateway.database.run(lambda _: None)
        await scene.gateway.database.run(lambda _: None)
    assert not revoked.sent


@asynccontextmanager
async def target(bodies: list[str]) -> AsyncGenerator[str]:
    """A service that accepts notifications as JSON; yields its Apprise URL."""

    async def notify(request: web.Request) -> web.Response:
        bodies.append((await request.json())["message"])
        return web.Response()

    app = web.Application()
    app.router.add_post("/", notify)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"json://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


@pytest.mark.filterwarnings("ignore:'imghdr':DeprecationWarning")  # apprise imports it
async def test_targets_are_notified_of_an_alarm(serve: Serve) -> None:
    bodies = list[str]()
    async with target(bodies) as url, serve(channels=[Revoked("irc")], alarms=[url]) as scene:
        async with asyncio.timeout(PATIENCE):
            while not bodies:
                await scene.gateway.database.run(lambda _: None)
    assert "The token was revoked" in bodies[0]
