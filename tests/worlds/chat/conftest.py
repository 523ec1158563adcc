"""A gateway in this process, with a scripted model."""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from denizen import Agent, load_config, tool
from denizen.config.zone import user_zone
from denizen.entries import AnyEntry
from denizen.errors import SessionError
from denizen.events import StreamEvent, TextDelta
from denizen.ports import (
    Channel,
    ChannelSettings,
    InboundMessage,
    Model,
    ModelRequest,
    SessionInfo,
    SessionStore,
    Traits,
)
from denizen.runtime.clock import Clock, SystemClock
from denizen.sessions import MemoryStore
from denizen.testing import ScriptedModel
from denizen.testing.scripted import Line, Scripted
from denizen.tools.subagent import subagent
from denizen.worlds.chat.delivery.message import message_tool
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.ledger import ledger
from denizen.worlds.chat.ledger.database import Database, WorkerTiming
from denizen.worlds.chat.ledger.outbound import OutboxRow
from denizen.worlds.chat.ledger.postgres_ledger import PostgresLedger
from denizen.worlds.chat.ledger.reply_options import ReplyOptions
from denizen.worlds.chat.ledger.sqlite_file import SqliteFile
from denizen.worlds.chat.settings import GatewaySettings
from denizen.worlds.chat.timers.cron import Cron, cron_tool
from denizen.worlds.chat.turns.spawn import spawn_tool

PATIENCE = 60.0
ALLOWED = ChannelSettings(allow=["ann", "ben", "boss", "den", "#den", "direct", "mallory"], groups="all")
"""Lets the people of the tests speak on a channel."""
QUICK = WorkerTiming(heartbeat=0.5, stalled=1.5, poll=0.2)
"""Of workers, so that a dead one is found soon."""

PLUMS = "There are plums, pears, and apples"

Serve = Callable[..., AbstractAsyncContextManager["Scene"]]


def key_of(chat: str, channel: str = "http") -> str:
    return f"agent:main:channel:{channel}:account:default:peer:direct:{chat}"


def message(content: str, chat: str = "ann", *, channel: str = "http", **more: Any) -> InboundMessage:
    """A message whose id is its content, in the first chat, or says its chat, too."""
    at = content if chat == "ann" else f"{chat}: {content}"
    given: dict[str, Any] = {"session_key": key_of(chat, channel), "id": at, **more}
    return InboundMessage(channel, chat, chat, content, **given)


class Held:
    """A reply that the model gives when it is let go; `begun` once it was asked."""

    def __init__(self, text: Scripted) -> None:
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self._text = text

    def __call__(self, _: ModelRequest) -> Awaitable[Scripted]:
        async def reply() -> Scripted:
            self.begun.set()
            await self.go.wait()
            return self._text

        return reply()


class Halting(ScriptedModel):
    """Begins each reply, such as `PLUMS`, and goes on after "and" when it is let."""

    def __init__(self, script: Sequence[Line]) -> None:
        super().__init__(script)
        self.go = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent]:
        async for event in super().stream(request):
            yield event
            if isinstance(event, TextDelta) and event.delta == "and ":
                await self.go.wait()


AWAY = "The database at db.example is away. Check that it is running."


class AwayStore(MemoryStore):
    """Sessions in a database that may be away."""

    is_away = False

    async def read(self, key: str) -> Sequence[AnyEntry]:
        self._check()
        return await super().read(key)

    async def list(self) -> Sequence[SessionInfo]:
        self._check()
        return await super().list()

    def _check(self) -> None:
        if self.is_away:
            raise SessionError(AWAY)


class Scene:
    """A gateway that serves, and the model that it asks."""

    def __init__(self, gateway: Gateway, model: ScriptedModel) -> None:
        self.gateway = gateway
        self.model = model

    async def say(self, content: str, chat: str = "ann", **more: Any) -> None:
        """Put a message."""
        assert await self.gateway.accept(message(content, chat, **more))

    async def ask(self, content: str, session_key: str, *, channel: str = "cli", chat: str = "direct") -> str:
        """The reply to a program's message, which is kept for it."""
        asked = InboundMessage(channel, chat, "direct", content, session_key)
        asked = ReplyOptions(send_response=False).put_in(asked)
        await self.gateway.accept(asked)
        _, reply = await self.gateway.outbox.outcome(asked, ledger.OVER)
        return reply

    async def heard(self) -> None:
        """Wait until the running turns have what was said to them.

        Writes are in order, so the queue's look is a few steps of the loop after one of them, and each takes several.
        """
        for _ in range(20):
            await self.gateway.database.run(lambda _: None)

    async def settled(self) -> None:
        """Wait until every message is over."""
        states = "SELECT COUNT(*) FROM inbox WHERE state NOT IN ('done', 'failed')"
        async with asyncio.timeout(PATIENCE):
            while await self.gateway.database.run(lambda db: db.execute(states).fetchone()[0]):
                pass

    async def replies(self, count: int, chat: str = "ann", channel: str = "http") -> list[OutboxRow]:
        """The first so many messages that went to a chat."""
        found: Sequence[OutboxRow] = []
        async with asyncio.timeout(PATIENCE):
            while len(found) < count:
                found = await self.gateway.outbox.replies(channel, chat, after=0, most=count, wait=0.01)
        return [*found]

    async def sent(self) -> list[str]:
        """All that went to the first chat until now."""
        found = await self.gateway.outbox.replies("http", "ann", after=0, most=100, wait=0)
        return [each.message.content for each in found]

    async def contents(self, count: int, chat: str = "ann", channel: str = "http") -> list[str]:
        return [reply.message.content for reply in await self.replies(count, chat, channel)]


class SimulatedClock:
    """Stands still until it is told to advance; then it stops whenever somebody wakes."""

    def __init__(self, now: datetime) -> None:
        self._began = now
        self._passed = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._began + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        return self._passed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._passed + seconds, woken))
        await woken

    @property
    def sleepers(self) -> list[tuple[float, asyncio.Future[None]]]:
        """Who sleeps until when."""
        self._sleepers = [each for each in self._sleepers if not each[1].done()]
        return self._sleepers

    def wake(self, time: timedelta) -> None:
        """Let time pass at once, and wake all who sleep."""
        self._passed += time.total_seconds()
        for _, woken in self.sleepers:
            woken.set_result(None)

    def suspend(self, time: timedelta) -> None:
        """Let time pass in which the machine sleeps: timers stand still."""
        self._began += time

    async def advance(self, time: timedelta, scene: Scene, sleepers: int = 1) -> None:
        """Let time pass; wherever somebody wakes, wait until so many, and the pruning, sleep again.

        Then every message is over.
        """
        end = self._passed + time.total_seconds()
        while True:
            async with asyncio.timeout(PATIENCE):
                while True:
                    await scene.settled()
                    if len(self.sleepers) == sleepers + 1:
                        break
            at, woken = min(self.sleepers, key=lambda each: each[0])
            if at > end:
                break
            self._passed = at
            woken.set_result(None)
            await asyncio.sleep(0)
        self._passed = end


@tool(traits=Traits.SENDS)
def post(text: str) -> str:
    """Post it on the board."""
    return f"posted {text}"


@tool(traits=Traits.READS)
def look() -> str:
    """Look at the board."""
    return "it is empty"


@tool(traits=Traits.READS | Traits.UNTRUSTED)
def overhear() -> str:
    """Listen to others."""
    return "they talk"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def serve(home: Path) -> Serve:
    """`async with serve("a reply", …, owner="http:boss") as scene`: a gateway with these settings, in one home.

    With a `workspace` it has the tools of its profile; `config` are settings of other tables. `asked` is a model
    in place of the scripted one, `store` keeps the sessions. `allow` are the settings of all channels, and
    `path` is where it finds programs, such as those of the sandbox.
    """

    @asynccontextmanager
    async def served(
        *script: Line,
        channels: Sequence[Channel] = (),
        clock: Clock | None = None,
        timezone: str = "",
        workspace: Path | None = None,
        config: Mapping[str, Any] | None = None,
        asked: Model | None = None,
        store: SessionStore | None = None,
        allow: ChannelSettings = ALLOWED,
        path: str = os.environ["PATH"],
        **settings: Any,
    ) -> AsyncGenerator[Scene]:
        table = {"grace": 0.0, "heartbeat": {"enabled": False}, **settings}
        own = {"agent": {"timezone": timezone}, "gateway": table}
        loaded = load_config(home=home, environ={}, cwd=home, workspace=workspace, overrides={**own, **(config or {})})
        loaded = msgspec.structs.replace(loaded, channels={each.name: allow for each in channels})
        model, clock, stop = ScriptedModel(script), clock or SystemClock(), asyncio.Event()
        database = Database(SqliteFile(home / "gateway.db"), clock)
        try:
            outbox = Outbox(database, {channel.name: channel for channel in channels}, clock=clock)
            table = loaded.section("gateway", GatewaySettings).cron
            cron = Cron(database, clock=clock, zone=user_zone(loaded), settings=table)
            lent = [post, look, overhear, message_tool(outbox), cron_tool(cron), spawn_tool(database), subagent]
            tools = None if workspace else lent
            async with Agent(
                loaded,
                profile="gateway",
                model=asked or model,
                tools=tools,
                store=store,
                clock=clock,
                environ={"PATH": path},
            ) as agent:
                gateway = Gateway(agent, outbox, cron)
                await gateway.prepare()
                running = asyncio.create_task(gateway.run(stop))
                try:
                    yield Scene(gateway, model)
                finally:
                    stop.set()
                    await running
        finally:
            database.close()

    return served


OpenDatabase = Callable[[], Database]


@pytest.fixture(params=["file", "server"])
def open_database(home: Path, request: pytest.FixtureRequest) -> OpenDatabase:
    """Opens the ledger of the test, in a file or on PostgreSQL."""
    if request.param == "file":
        return lambda: Database(SqliteFile(home / "gateway.db"), SystemClock())
    url: str = request.getfixturevalue("postgres_url")
    return lambda: Database(PostgresLedger(url, timing=QUICK), SystemClock())


@pytest.fixture
def database(open_database: OpenDatabase) -> Iterator[Database]:
    opened = open_database()
    yield opened
    opened.close()


def said(model: ScriptedModel, call: int = -1) -> str:
    """All that the model saw in a call, as text."""
    return msgspec.json.encode(model.requests[call].messages).decode()
