"""What happens in the turns of workers reaches whoever listens to the gateway, while it happens."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import openai
import psycopg
import pytest
from tests.engine.scene import call
from tests.worlds.chat.conftest import (
    PATIENCE,
    PLUMS,
    QUICK,
    Halting,
    Held,
    Scene,
    SimulatedClock,
    key_of,
    look,
    message,
)
from tests.worlds.chat.http.test_completions import chat, sdk, streamed, user
from tests.worlds.chat.http.test_events import socket, until_done
from tests.worlds.chat.http.test_http import reached

from denizen import Agent, load_config
from denizen.config.redact import Redactor
from denizen.events import LlmStream, Notice, RunEvent, TextDelta
from denizen.runtime.clock import SystemClock
from denizen.testing.scripted import Line
from denizen.worlds.chat.backends import open_backends
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.events.metrics import Metrics
from denizen.worlds.chat.events.relay import Audience, Reporter, SideChannel, TurnEvent
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.ledger.database import DEFAULT_TIMING, Database
from denizen.worlds.chat.ledger.sqlite_file import SqliteFile
from denizen.worlds.chat.settings import CronSettings
from denizen.worlds.chat.timers.cron import Cron

Lose = Callable[[int], bool]
Start = Callable[..., AbstractAsyncContextManager[Scene]]


@pytest.fixture
def start(home: Path, postgres_url: str) -> Start:
    """`async with start("worker", "a reply", …)`: a process of the gateway's, but within this one.

    `lose` says of each notification that it sends whether it is lost.
    """

    @asynccontextmanager
    async def started(
        role: Literal["gateway", "worker"], *script: Line, lose: Lose = lambda _: False, **settings: Any
    ) -> AsyncGenerator[Scene]:
        table = {"database": postgres_url, "grace": 0.0, "heartbeat": {"enabled": False}, **settings}
        loaded = load_config(home=home, environ={}, cwd=home, overrides={"gateway": table})
        model, clock, stop, sent = Halting(script), SystemClock(), asyncio.Event(), 0
        async with open_backends(loaded, clock, Redactor(), is_gateway=role == "gateway", timing=QUICK) as shared:
            assert shared.side
            notify = shared.side.send

            async def tell(subject: str, words: Sequence[str]) -> None:
                nonlocal sent
                sent += 1
                if not lose(sent):
                    await notify(subject, words)

            outbox = Outbox(shared.ledger, {}, clock=clock)
            cron = Cron(shared.ledger, clock=clock, zone=None, settings=CronSettings())
            async with Agent(
                loaded, profile="gateway", model=model, tools=[look], store=shared.sessions, environ={}
            ) as agent:
                serving = Gateway(agent, outbox, cron, SideChannel(tell, QUICK))
                listens = asyncio.Event()
                shared.ledger.news["anything"] = lambda _: listens.set()
                running = asyncio.create_task((serving.run if role == "gateway" else serving.work)(stop))
                try:
                    await listens.wait()
                    yield Scene(serving, model)
                finally:
                    stop.set()
                    await running

    return started


@pytest.fixture
async def busy(start: Start) -> AsyncGenerator[Scene]:
    """A gateway that has its hands full, so that workers take the turns."""
    held = Held("at last")
    async with start("gateway", held, turns=1) as scene:
        await scene.say("hi", "somebody")
        await held.begun.wait()
        yield scene
        held.go.set()


def halting(scene: Scene) -> Halting:
    assert isinstance(scene.model, Halting)
    return scene.model


async def test_answer_of_a_workers_turn_streams(busy: Scene, start: Start, home: Path) -> None:
    async with start("worker", PLUMS) as worker, sdk(busy, home, "ann") as client:
        pieces = streamed(client)
        first = await anext(pieces)
        halting(worker).go.set()
        assert first + "".join([piece async for piece in pieces]) == PLUMS


async def test_all_that_is_said_in_a_workers_turn_reaches_the_caller(busy: Scene, start: Start, home: Path) -> None:
    script = [call(("look", {}), text="Let me look."), "nothing"]
    async with start("worker", *script) as worker, sdk(busy, home, "ann") as client:
        halting(worker).go.set()
        answer = await chat(client, user("?"))
        assert answer.choices[0].message.content == "Let me look.\n\nnothing"


@pytest.mark.parametrize("lost", [{1}, {2}, {2, 3}, {*range(1, 99)}], ids=str)
async def test_answer_whose_events_are_lost_ends_whole(busy: Scene, start: Start, home: Path, lost: set[int]) -> None:
    script = [call(("look", {}), text="Let me look."), call(("look", {}), text="And there."), "nothing"]
    async with start("worker", *script, lose=lost.__contains__) as worker, sdk(busy, home, "ann") as client:
        halting(worker).go.set()
        assert "".join([piece async for piece in streamed(client)]) == "Let me look.\n\nAnd there.\n\nnothing"


async def test_answer_ends_whole_where_the_gateways_connection_is_cut(
    busy: Scene, start: Start, home: Path, postgres_url: str
) -> None:
    async with start("worker", PLUMS) as worker, sdk(busy, home, "ann") as client:
        pieces = streamed(client)
        first = await anext(pieces)
        with psycopg.connect(postgres_url) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid() AND query ~ '^(LISTEN|SELECT 1)'"
            )
        halting(worker).go.set()
        assert first + "".join([piece async for piece in pieces]) == PLUMS


async def taken_over(start: Start, client: openai.AsyncOpenAI, then: str) -> list[str]:
    """The pieces of an answer that one worker begins, and that another one gives."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(start("worker", PLUMS))
        pieces = streamed(client)
        first = await anext(pieces)
        async with start("worker", then) as other:
            while not other.gateway.listeners.has_listener(message("?")):
                await other.gateway.database.run(lambda _: None)
            await stack.aclose()
            halting(other).go.set()
            return [first, *[piece async for piece in pieces]]


@pytest.mark.parametrize("then", [PLUMS, f"{PLUMS}, too"])
async def test_turn_that_another_worker_takes_over_says_nothing_twice(
    busy: Scene, start: Start, home: Path, then: str
) -> None:
    async with sdk(busy, home, "ann") as client:
        assert "".join(await taken_over(start, client, then)) == then


async def test_stream_ends_with_an_error_where_the_other_worker_says_something_else(
    busy: Scene, start: Start, home: Path
) -> None:
    async with sdk(busy, home, "ann") as client:
        with pytest.raises(openai.APIError, match="started it again"):
            await taken_over(start, client, "No.")


async def test_events_of_workers_turns_come_over_the_websocket(busy: Scene, start: Start, home: Path) -> None:
    script = [call(("look", {}), text="ä" * 9_000), "nothing"]
    async with start("worker", *script) as worker, reached(busy, home) as client, socket(client, home) as opened:
        halting(worker).go.set()
        await busy.say("hi")
        got = [each for each in await until_done(opened) if each["session_key"] == key_of("ann")]
        numbers = [each["seq"] for each in got]
        assert numbers == [*range(numbers[0], numbers[0] + len(numbers))]
        assert [
            each["event"]["type"] for each in got if each["event"]["type"] not in {"llm_stream", "notice", "changed"}
        ] == [
            "llm_start",
            "llm_end",
            "tool_start",
            "tool_end",
            "llm_start",
            "llm_end",
            "done",
        ]
        deltas = [each["event"]["event"] for each in got if each["event"]["type"] == "llm_stream"]
        assert "".join(each["delta"] for each in deltas if each["type"] == "text_delta") == "ä" * 9_000 + "nothing"


async def test_workers_turns_are_counted_once(busy: Scene, start: Start, home: Path) -> None:
    wanted = [
        'denizen_turns_total{stop_reason="answered"} 1',
        "denizen_turn_seconds_count 1",
        'denizen_messages_total{state="done"} 1',
        'denizen_tool_calls_total{failed="false"} 1',
        "denizen_model_calls_total 2",
    ]
    async with reached(busy, home) as client:
        async with start("worker", call(("look", {})), "nothing") as worker:
            while worker.gateway.listeners.has_listener(message("hi")):  # a new worker assumes that somebody listens
                await worker.gateway.database.run(lambda _: None)
            halting(worker).go.set()
            await busy.say("hi")
            await busy.contents(1)
            assert not any(request.stream for request in worker.model.requests), "nobody listens"
        async with asyncio.timeout(PATIENCE):
            lines = []
            while not set(wanted) <= {*lines}:
                lines = [line.removesuffix(".0") for line in (await client.text("/metrics")).splitlines()]


class Wire:
    """A reporter and who hears it, with what goes from one to the other."""

    def __init__(self, home: Path) -> None:
        self.clock = SimulatedClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.database = Database(SqliteFile(home / "gateway.db"), self.clock)
        self.sent: list[str] = []
        self.heard: list[RunEvent] = []
        side, metrics = SideChannel(self._tell, DEFAULT_TIMING), Metrics(self.clock)
        self.reporter = Reporter(side, self.database, metrics, self.clock)
        Audience(side, self.database, lambda told: self.heard.append(told.event), metrics, self.clock)
        self._events = 0

    async def _tell(self, subject: str, words: Sequence[str]) -> None:
        self.sent += [f"{subject} {each}" for each in words]

    async def report(self, *events: RunEvent) -> None:
        for event in events:
            self._events += 1
            self.reporter.add(TurnEvent("s", "m", 1, self._events, self._events, event))
        await self.reporter.flush()

    def deliver(self, *, lose: int = 0) -> None:
        """All that was sent, but for the first so many."""
        for said in self.sent[lose:]:
            assert len(said.encode()) < 8000, "a server's limit"
            self.database.hear(said)
            self.database.hear("")  # as whenever something may have been missed
        self.sent.clear()


@pytest.fixture
def wire(home: Path) -> Iterator[Wire]:
    made = Wire(home)
    yield made
    made.database.close()


async def test_nothing_is_reported_while_nobody_listens(wire: Wire) -> None:
    wire.clock.wake(timedelta(seconds=15))
    await wire.report(Notice("before"))
    wire.database.hear("listening 15")
    await wire.report(Notice("now"))
    wire.clock.wake(timedelta(seconds=15))
    await wire.report(Notice("after"))
    wire.deliver()
    assert wire.heard == [Notice("now")]


async def test_new_worker_reports_before_it_knows_whether_somebody_listens(wire: Wire) -> None:
    wire.clock.wake(timedelta(seconds=14))
    await wire.report(Notice("first"))
    wire.deliver()
    assert wire.heard == [Notice("first")]


async def test_report_of_any_size_arrives_whole_or_not_at_all(wire: Wire) -> None:
    wire.database.hear("listening 15")
    long = Notice("aä€😀" * 5000)
    await wire.report(long, Notice("too"))
    wire.deliver()
    assert wire.heard == [long, Notice("too")]
    await wire.report(long)
    wire.deliver(lose=1)
    await wire.report(Notice("later"))
    wire.deliver()
    assert wire.heard[2:] == [Notice("later")]


async def test_pieces_of_a_text_are_reported_together(wire: Wire) -> None:
    wire.database.hear("listening 15")
    await wire.report(*(LlmStream(TextDelta(letter)) for letter in "plum"), Notice("!"), LlmStream(TextDelta("s")))
    wire.deliver()
    assert wire.heard == [LlmStream(TextDelta("plum")), Notice("!"), LlmStream(TextDelta("s"))]


async def test_event_that_json_cannot_express_is_left_out(wire: Wire) -> None:
    wire.database.hear("listening 15")
    await wire.report(Notice("half \ud800"), Notice("whole"))
    wire.deliver()
    assert wire.heard == [Notice("whole")]
