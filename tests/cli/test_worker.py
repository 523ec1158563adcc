"""`denizen worker`: several processes share the turns of a gateway through PostgreSQL."""

import asyncio
import itertools
import re
import secrets
import signal
import threading
import urllib.request
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import aiohttp
import msgspec
import psycopg
import pytest
from tests import postgres, soak
from tests.cli.conftest import Run
from tests.cli.gateway import PATIENCE, GatewayProgram, WorkerProgram, key_of, share
from tests.cli.model import USAGE, Model
from tests.postgres import OwnServer

from denizen.entries import AssistantEntry, UserEntry
from denizen.messages import AssistantMessage, Text, ToolCall, Usage
from denizen.ports import InboundMessage
from denizen.runtime.clock import SystemClock
from denizen.sessions.postgres import PostgresStore
from denizen.sessions.tables import SharedTables
from denizen.testing import LoopbackOpenAI, LoopbackRequest, Step
from denizen.worlds.chat.ledger import ledger, outbound
from denizen.worlds.chat.ledger.database import Database
from denizen.worlds.chat.ledger.postgres_ledger import PostgresLedger
from denizen.worlds.chat.timers.cron import CronJob

PAUSE_S = 4.0
"""Longer than a worker without a heartbeat lives: twice `QUICK.stalled` of quick.py."""
CHATS = ("ann", "ben", "cleo", "dan")
MESSAGES = [f"message-{number}" for number in range(soak.share(60))]


def answer_of(request: LoopbackRequest) -> str:
    """A reply that names the last message."""
    words = [message["content"] for message in request.json["messages"] if message["role"] == "user"]
    return f"reply to {re.findall(r'[a-z]+/message-[0-9]+', str(words[-1]))[-1]}"


@asynccontextmanager
async def kept_running(*programs: WorkerProgram) -> AsyncGenerator[None]:
    """The programs run, and begin again whenever they are killed, until the block ends."""
    over = False

    async def keep(program: WorkerProgram) -> None:
        while not over:
            await program.begin()
            assert await program.process.wait() == -signal.SIGKILL, program.log

    async with asyncio.TaskGroup() as tasks:
        kept = [tasks.create_task(keep(program)) for program in programs]
        yield
        over = True
        while not all(task.done() for task in kept):
            for program in programs:
                if program.is_running:
                    program.kill()
            await asyncio.wait(kept, timeout=0.2)


async def insist(request: Callable[[], Awaitable[Any]]) -> Any:
    """As a client that waits for a gateway that begins again, and for a database that is away."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                status, answer = await request()
                if status < 500:
                    return answer
            except (aiohttp.ClientError, FileNotFoundError, ConnectionError):
                pass
            await asyncio.sleep(0.02)


async def talk(gateway: GatewayProgram, chat: str) -> list[dict[str, str]]:
    """Post the messages of a chat, one after the other, each until it is accepted; its replies, once all are there."""
    for content in MESSAGES:
        await insist(lambda content=content: gateway.post(chat, f"{chat}/{content}", id=f"{chat}-{content}"))
    replies: list[dict[str, str]] = []
    while len(replies) < len(MESSAGES):
        path = f"/api/replies?chat={chat}&after=0&wait=0"
        replies = (await insist(lambda path=path: gateway.request("GET", path)))["replies"]
        await asyncio.sleep(0.02)
    return replies


async def all_answered_once_in_order(gateway: GatewayProgram) -> None:
    for chat, replies in zip(CHATS, await asyncio.gather(*(talk(gateway, chat) for chat in CHATS)), strict=True):
        assert [reply["in_reply_to"] for reply in replies] == [f"{chat}-{content}" for content in MESSAGES]
        assert [reply["content"] for reply in replies] == [f"reply to {chat}/{content}" for content in MESSAGES]
        assert {reply["state"] for reply in replies} == {"sent"}


@pytest.mark.parametrize("count", [2, 4])
async def test_every_message_is_answered_once_in_order_however_processes_die(
    shared: str, model: Model, gateway: GatewayProgram, workers: list[WorkerProgram], count: int
) -> None:
    programs = [*workers[:count], gateway]
    victims, calls = itertools.cycle(programs), 0

    def answer(request: LoopbackRequest) -> str:
        nonlocal calls
        calls += 1
        if calls % 4 == 0 and calls < soak.share(300):
            victim = next(victims)
            if victim.is_running:
                victim.kill()
        return answer_of(request)

    model.server.otherwise = answer
    async with kept_running(*programs):
        await all_answered_once_in_order(gateway)
    assert calls >= len(CHATS) * len(MESSAGES)


async def test_eight_workers_answer_once_in_order_however_they_are_killed_and_paused(
    shared: str, model: Model, gateway: GatewayProgram, workers: list[WorkerProgram]
) -> None:
    programs = [*(workers if soak.IS_WHOLE else workers[:3]), gateway]
    victims, calls = itertools.cycle(programs), 0

    def go_on(process: asyncio.subprocess.Process) -> None:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)

    def answer(request: LoopbackRequest) -> str:
        nonlocal calls
        calls += 1
        victim = next(victims)
        if victim.is_running and calls < soak.share(300):
            if calls % 5 == 0:
                victim.kill()
            elif calls % 5 == 3:
                victim.process.send_signal(signal.SIGSTOP)
                threading.Timer(PAUSE_S, go_on, [victim.process]).start()
        return answer_of(request)

    model.server.otherwise = answer
    async with kept_running(*programs):
        await all_answered_once_in_order(gateway)


def status_of(url: str) -> int:
    try:
        with urllib.request.urlopen(url) as response:
            return response.status
    except HTTPError as error:
        return error.code


async def test_database_that_goes_away_and_comes_back_loses_nothing(
    home: Path, model: Model, own_postgres: OwnServer, gateway: GatewayProgram, workers: list[WorkerProgram]
) -> None:
    share(home, f"{own_postgres.url}/postgres")
    calls, away = 0, threading.Event()

    def answer(request: LoopbackRequest) -> str:
        nonlocal calls
        calls += 1
        if calls in {5, 12}:
            assert status_of(f"{gateway.url}/readyz") == 200
            own_postgres.stop()
            assert [status_of(f"{gateway.url}/{path}") for path in ("readyz", "healthz")] == [503, 200]
            own_postgres.start()
            away.set()
        return answer_of(request)

    model.server.otherwise = answer
    async with kept_running(gateway, workers[0]):
        await all_answered_once_in_order(gateway)
    assert away.is_set()


async def test_second_gateway_of_a_database_is_refused_and_names_the_first(
    home: Path, tmp_path: Path, denizen: Run, shared: str, gateway: GatewayProgram
) -> None:
    elsewhere = postgres.new_database(shared.rpartition("/")[0])
    of_another_database = PostgresLedger(elsewhere, sole=True)
    await gateway.start()
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    (other / "denizen.toml").write_text((home / "denizen.toml").read_text())
    ran = await asyncio.to_thread(denizen, "gateway", "--port", "0", DENIZEN_HOME=str(other))
    assert ran.status == 2
    assert re.search(rf"has a gateway already \(denizen gateway \w+, process {gateway.pid} on ", ran.err)
    assert "denizen worker" in ran.err
    of_another_database.close()
    postgres.drop_database(elsewhere)


def test_worker_without_a_database_says_what_to_set(denizen: Run) -> None:
    ran = denizen("worker")
    assert ran.status == 2
    assert '`[gateway] database = "postgresql://' in ran.err


async def test_worker_refuses_tables_of_a_newer_denizen(
    shared: str, denizen: Run, workers: list[WorkerProgram]
) -> None:
    await workers[0].start()
    await workers[0].end()
    for part in ("ledger", "procrastinate", "sessions", "memory"):
        with psycopg.connect(shared, autocommit=True) as connection:
            connection.execute("UPDATE denizen_versions SET version = version + 98 WHERE part = %s", [part])
            ran = await asyncio.to_thread(denizen, "worker")
            connection.execute("UPDATE denizen_versions SET version = version - 98 WHERE part = %s", [part])
        assert ran.status == 2
        assert re.search(rf"newer Denizen \({part}, version \d\d+;", ran.err), ran.err


def test_database_that_is_not_there_is_named_without_its_password(denizen: Run, home: Path) -> None:
    share(home, "postgresql://ann:hunter2secret@127.0.0.1:1/den")
    ran = denizen("worker")
    assert ran.status == 2
    assert "127.0.0.1:1/den" in ran.err
    assert "hunter2secret" not in ran.err


def message_of(content: str, chat: str = "ann") -> InboundMessage:
    return InboundMessage("http", chat, chat, content, key_of(chat), id=content)


async def put(url: str, content: str, chat: str = "ann") -> Database:
    """Put a message into the inbox without a gateway: the ledger."""
    database = Database(PostgresLedger(url), SystemClock())
    assert await database.run(partial(ledger.put, message=message_of(content, chat)))
    return database


async def outcome(database: Database, content: str, state: str = "done", chat: str = "ann") -> str:
    """The reply to a message, once it is in that state."""
    found, reply = "", ""
    async with asyncio.timeout(PATIENCE):
        while found != state:
            found, reply = await database.run(partial(outbound.outcome, message=message_of(content, chat)))
            await asyncio.sleep(0.02)
    return reply


FIRST = AssistantMessage([Text("first")])


class Held:
    """A model whose first call is held until the test lets it go on; the others it answers as told."""

    def __init__(
        self,
        model: Model,
        then: Callable[[LoopbackRequest], AssistantMessage | str] = lambda _: "again",
        first: AssistantMessage = FIRST,
    ) -> None:
        self._server = model.server
        self._server.send(Step.HOLD, *self._server.wire.streamed(first))
        self._server.otherwise = then

    async def wait(self, calls: int = 1) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.calls < calls:  # noqa: ASYNC110 (the server tells nobody)
                await asyncio.sleep(0.02)

    @property
    def calls(self) -> int:
        return len(self._server.requests)

    def go_on(self) -> None:
        self._server.release()


async def test_worker_ends_its_turn_before_it_stops(shared: str, model: Model, workers: list[WorkerProgram]) -> None:
    worker = workers[0]
    await worker.start()
    held, database = Held(model), await put(shared, "hi")
    await held.wait()
    ended = asyncio.create_task(worker.end())
    held.go_on()
    assert await ended == 0, worker.log
    [reply] = await database.run(lambda db: outbound.replies(db, "http", "ann", 0, 9))
    assert (reply.message.content, held.calls) == ("first", 1)
    database.close()


async def test_turn_that_does_not_end_in_the_grace_time_goes_on_with_another_worker(
    home: Path, postgres_url: str, model: Model, workers: list[WorkerProgram]
) -> None:
    share(home, postgres_url, "grace = 0.1\n")
    await workers[0].start()
    held, database = Held(model), await put(postgres_url, "hi")
    await held.wait()
    assert await workers[0].end() == 0, workers[0].log
    await workers[1].start()
    assert await outcome(database, "hi") == "again"
    [sent] = await database.run(lambda db: outbound.replies(db, "http", "ann", 0, 9))
    assert (sent.message.content, held.calls) == ("again", 2)
    database.close()


async def test_each_run_of_a_job_happens_once_however_processes_die(
    shared: str, model: Model, gateway: GatewayProgram, workers: list[WorkerProgram]
) -> None:
    now, database = SystemClock().now(), Database(PostgresLedger(shared), SystemClock())
    for number in range(8):
        said = {"name": "", "text": "Water it", "when": now.isoformat()}
        job = CronJob(id=f"job-{number}", kind="at", channel="http", chat="ann", home=key_of("ann"), since=now, **said)
        text = msgspec.json.encode(job).decode()
        await database.run(partial(ledger.add_job, job_id=job.id, job=text, due=now.timestamp()))
    database.close()
    programs, calls = [gateway, *workers[:2]], 0

    def answer(_: LoopbackRequest) -> str:
        nonlocal calls
        calls += 1
        if calls in {2, 4, 6}:
            programs[calls % 3].kill()
        return "Done."

    model.server.otherwise = answer
    async with kept_running(*programs):
        replies: list[dict[str, str]] = []
        while len(replies) < 8:
            replies = (await insist(lambda: gateway.request("GET", "/api/replies?chat=ann&after=0")))["replies"]
        answered = [re.findall("job-[0-9]", reply["in_reply_to"]) for reply in replies]
        assert sorted(answered) == [[f"job-{number}"] for number in range(8)]
    with psycopg.connect(shared) as connection:
        assert connection.execute("SELECT count(*) FROM cron").fetchall() == [(0,)]


async def test_fact_that_one_worker_keeps_is_recalled_by_another_that_runs(
    home: Path, postgres_url: str, model: Model, workers: list[WorkerProgram]
) -> None:
    share(home, postgres_url, "turns = 1\n")
    await workers[0].start()
    recall = AssistantMessage([ToolCall("", "recall", {"query": "cat"})], stop_reason="tool_calls")
    held = Held(model, first=recall)
    database = await put(postgres_url, "Which cat?")
    await held.wait()
    await workers[1].start()
    remember = ToolCall("", "remember", {"text": "The cat is called Miau"})
    model.plays(AssistantMessage([remember], usage=USAGE, stop_reason="tool_calls"), "Kept.")
    other = await put(postgres_url, "Remember the cat", chat="ben")
    await outcome(other, "Remember the cat", chat="ben")
    held.go_on()
    assert await outcome(database, "Which cat?") == "again"
    assert "The cat is called Miau" in model.told()
    for each in (database, other):
        each.close()


async def test_budget_that_one_worker_spends_stops_another(
    home: Path, postgres_url: str, loopback_openai: LoopbackOpenAI, workers: list[WorkerProgram]
) -> None:
    (home / "denizen.toml").write_text(
        f"""model = "openai:scripted"
        [providers.openai]
        base_url = "{loopback_openai.base_url}"
        auth_profiles = [{{ id = "one", api_key = "key" }}]
        [models."openai:scripted"]
        prices = {{ input = 10.0 }}
        [budget]
        day_usd = 0.5
        """
    )
    share(home, postgres_url, "turns = 1\n")
    model = Model(loopback_openai)
    await workers[0].start()
    held = Held(model, first=AssistantMessage([ToolCall("", "recall", {"query": "cat"})], stop_reason="tool_calls"))
    database = await put(postgres_url, "Go on")
    await held.wait()
    await workers[1].start()
    model.server.say(AssistantMessage([Text("That was dear.")], usage=Usage(100_000, 1)))
    other = await put(postgres_url, "Spend it", chat="ben")
    assert await outcome(other, "Spend it", chat="ben") == "That was dear."
    held.go_on()
    assert "The budget of today is spent: $1.0000 of $0.5" in await outcome(database, "Go on")
    for each in (database, other):
        each.close()


@pytest.mark.parametrize("kind", ["stop", "interrupt", "steer", "follow_up"])
async def test_control_reaches_a_turn_that_runs_on_a_worker(
    shared: str, model: Model, workers: list[WorkerProgram], gateway: GatewayProgram, kind: str
) -> None:
    control = {"type": kind} if kind == "stop" else {"type": kind, "content": "to the left"}
    await workers[0].start()
    held, database = Held(model, lambda request: str(request.json["messages"][-1]["content"])), await put(shared, "hi")
    await held.wait()
    await gateway.start()
    assert (await gateway.control("ann", **control))[0] == 202
    await gateway.end()
    (await put(shared, "later", chat="ben")).close()
    await held.wait(calls=2)  # the worker looks for what came in order: it has heard the control
    held.go_on()
    assert control.get("content", "Stopped.") in await outcome(database, "hi")
    database.close()


async def test_turn_of_a_worker_that_was_paused_is_taken_over_and_what_it_writes_later_is_refused(
    home: Path, environ: dict[str, str], shared: str, model: Model, workers: list[WorkerProgram]
) -> None:
    paused, other = WorkerProgram(home, environ, quick=True), workers[0]
    workers.append(paused)
    await paused.start()
    held, database = Held(model), await put(shared, "hi")
    await held.wait()
    paused.process.send_signal(signal.SIGSTOP)
    await other.start()
    assert await outcome(database, "hi") == "again"
    held.go_on()
    paused.process.send_signal(signal.SIGCONT)
    assert await paused.end() == 0, paused.log
    [sent] = await database.run(lambda db: outbound.replies(db, "http", "ann", 0, 9))
    assert sent.message.content == "again"
    tables = SharedTables(shared)
    entries = await PostgresStore(tables, clock=SystemClock()).read(key_of("ann"))
    tables.close()
    assert [entry.message.id for entry in entries if isinstance(entry, UserEntry)] == ["hi"]
    assert [entry.message.text for entry in entries if isinstance(entry, AssistantEntry)] == ["again"]
    database.close()


async def test_approval_is_parked_and_answered_over_other_processes(
    shared: str, model: Model, workers: list[WorkerProgram], gateway: GatewayProgram
) -> None:
    sends = ToolCall("", "message", {"text": "hello", "channel": "http", "chat": "ben"})
    model.plays(AssistantMessage([sends], usage=USAGE, stop_reason="tool_calls"), "It is done.")
    await workers[0].start()
    database = await put(shared, "Do it")
    await outcome(database, "Do it", "parked")
    database.close()
    workers[0].kill()
    await gateway.start()
    await workers[1].start()
    [question] = await gateway.replies("ann", 1)
    assert 'chat="ben"' in question["content"]
    await gateway.post("ann", "/approve", id="yes")
    [_, reply] = await gateway.replies("ann", 2)
    assert reply["content"] == "It is done."
    assert [each["content"] for each in await gateway.replies("ben", 1)] == ["hello"]


def running(command: str) -> bool:
    """Whether a process runs with these words."""
    words = command.encode().replace(b" ", b"\0")
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes().startswith(words):
                return True
    return False


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 (no process tells another)
            await asyncio.sleep(0.02)


async def begin_sleeping(home: Path, url: str, model: Model, worker: WorkerProgram) -> str:
    """A worker whose turn runs a command that lasts: the command."""
    share(home, url)
    with (home / "denizen.toml").open("a") as file:
        file.write('[policy]\nrules = [{ tool = "bash", decide = "allow" }]\n')
    command = f"sleep {secrets.randbelow(10**6) + 10**6}"
    await worker.start()
    model.plays(AssistantMessage([ToolCall("", "bash", {"command": command})], stop_reason="tool_calls"))
    database = await put(url, "Sleep")
    await until(lambda: running(command))
    database.close()
    return command


async def test_command_of_a_turn_that_another_worker_has_taken_over_is_stopped(
    home: Path, model: Model, postgres_url: str, workers: list[WorkerProgram]
) -> None:
    command = await begin_sleeping(home, postgres_url, model, workers[0])
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE sessions SET holder = 'another', fence = fence + 1")
    await until(lambda: not running(command))
    assert workers[0].is_running


async def test_command_of_a_worker_that_lost_the_database_is_stopped_and_the_turn_goes_on_later(
    home: Path, model: Model, own_postgres: OwnServer, workers: list[WorkerProgram]
) -> None:
    url = f"{own_postgres.url}/postgres"
    command = await begin_sleeping(home, url, model, workers[0])
    own_postgres.stop()
    await until(lambda: not running(command))
    assert workers[0].is_running
    own_postgres.start()
    model.plays("It was interrupted.")
    database = Database(PostgresLedger(url), SystemClock())
    assert await outcome(database, "Sleep") == "It was interrupted."
    database.close()
