"""A store that can't be written now: what can't be kept is refused, and what was accepted waits."""

from pathlib import Path

import psycopg
from tests.full_disk import file_size_limit
from tests.worlds.chat.conftest import Held, Scene, Serve, key_of
from tests.worlds.chat.http.test_http import reached
from tests.worlds.chat.test_gateway import HeardClock

from denizen.messages import AssistantMessage, Text, Thinking
from denizen.sessions import JsonlStore
from denizen.sessions.postgres import PostgresStore
from denizen.sessions.tables import SharedTables

MEGABYTE = 1_000_000


def size_of(home: Path) -> int:
    return (home / "gateway.db-wal").stat().st_size


async def test_message_is_refused_while_the_disk_is_full_and_accepted_once_there_is_room(
    serve: Serve, home: Path
) -> None:
    async with serve("first", "second") as scene, reached(scene, home) as client:
        await client.post(id="1")
        assert await scene.contents(1) == ["first"]
        with file_size_limit(size_of(home)):
            status, answer = await client.post(id="2")
        assert status == 503
        assert "Free some space" in answer["error"]["message"]
        status, answer = await client.post(id="2")
        assert (status, answer["accepted"]) == (202, True)
        assert await scene.contents(2) == ["first", "second"]


async def test_accepted_message_is_answered_once_there_is_room(serve: Serve, home: Path) -> None:
    clock, held = HeardClock(), Held("after all")
    store = JsonlStore(home / "sessions", clock=clock, retry_s=1.0)
    async with (
        serve(held, clock=clock, attempts=1, store=store) as scene,
        reached(scene, home) as client,
    ):
        await client.post(id="1")
        await held.begun.wait()
        with file_size_limit(size_of(home)):
            held.go.set()
            for _ in range(5):
                await clock.waits.get()
        replies = await scene.replies(1)
        assert [(reply.message.in_reply_to, reply.state) for reply in replies] == [("1", "sent")]
        status, answer = await client.post(id="1")
        assert (status, answer["accepted"]) == (202, False)


async def is_answered_after_waits(scene: Scene, clock: HeardClock) -> None:
    """The store refuses the reply for a while; it is neither given up nor asked of the model again."""
    for _ in range(5):
        await clock.waits.get()
    assert len(scene.model.requests) == 2


async def test_reply_waits_for_a_session_that_cannot_be_written(serve: Serve, home: Path) -> None:
    clock, held = HeardClock(), Held("second")
    long = AssistantMessage([Thinking("hm " * MEGABYTE), Text("first")])
    store = JsonlStore(home / "sessions", clock=clock, retry_s=1.0)
    async with serve(long, held, clock=clock, attempts=1, store=store) as scene:
        await scene.say("1")
        await scene.replies(1)
        await scene.say("2")
        await held.begun.wait()
        with file_size_limit(size_of(home) + MEGABYTE):  # the ledger has room
            held.go.set()
            await is_answered_after_waits(scene, clock)
        assert await scene.contents(2) == ["first", "second"]
        assert len(scene.model.requests) == 2


async def test_message_waits_for_a_session_that_cannot_be_opened(serve: Serve, home: Path) -> None:
    clock = HeardClock()
    store = JsonlStore(home / "sessions", clock=clock, retry_s=1.0)
    path = store.path(key_of("ann"))
    path.mkdir(parents=True)
    async with serve("at last", clock=clock, attempts=1, store=store) as scene:
        await scene.say("1")
        for _ in range(5):
            await clock.waits.get()
        path.rmdir()
        assert await scene.contents(1) == ["at last"]


async def test_reply_waits_for_a_table_that_is_refused(serve: Serve, postgres_url: str) -> None:
    clock, held = HeardClock(), Held("second")
    tables = SharedTables(postgres_url)
    store = PostgresStore(tables, clock=clock, retry_s=1.0)
    async with serve("first", held, clock=clock, attempts=1, store=store) as scene:
        await scene.say("1")
        await scene.replies(1)
        await scene.say("2")
        await held.begun.wait()
        with psycopg.connect(postgres_url, autocommit=True) as owner:
            owner.execute("ALTER TABLE entries RENAME TO elsewhere")
            held.go.set()
            await is_answered_after_waits(scene, clock)
            owner.execute("ALTER TABLE elsewhere RENAME TO entries")
        assert await scene.contents(2) == ["first", "second"]
    tables.close()
