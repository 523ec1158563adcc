"""Sessions in PostgreSQL: one writer over all machines, whatever becomes of it, of the server, and of the network."""

import asyncio
from collections.abc import Callable, Iterator
from typing import LiteralString

import psycopg
import pytest
from tests.postgres import OwnServer
from tests.sessions.cut_line import line_to

from denizen.config.redact import Redactor
from denizen.entries import NoteEntry
from denizen.errors import ConfigError, SessionError
from denizen.runtime.clock import SystemClock
from denizen.sessions.postgres import PostgresStore
from denizen.sessions.tables import SharedTables
from denizen.testing.conformance_store import content, opened, said, saved

Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture
def new_store(shared_tables: Callable[[], SharedTables]) -> Callable[[], PostgresStore]:
    return lambda: PostgresStore(shared_tables(), clock=SystemClock())


@pytest.fixture
def admin(postgres_url: str) -> Iterator[Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def end_leases(admin: Connection) -> None:
    """As if nobody had renewed them for 15 s."""
    admin.execute("UPDATE sessions SET held_until = now() - interval '1 second' WHERE held_until IS NOT NULL")


async def until(url: str, condition: LiteralString) -> None:
    """Wait until the database has a row for which the condition holds."""
    with psycopg.connect(url, autocommit=True) as connection:
        while not connection.execute(f"SELECT 1 FROM {condition}").fetchall():  # noqa: ASYNC110
            await asyncio.sleep(0)


BLOCKED = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
"""A statement waits for another one."""
TWO_BLOCKED = f"(SELECT count(*) FROM {BLOCKED}) AS waiting WHERE count = 2"


# One writer


async def test_holder_that_was_paused_beyond_its_lease_writes_nothing_more(
    new_store: Callable[[], PostgresStore], admin: Connection
) -> None:
    paused, other = new_store(), new_store()
    async with opened(paused) as first:
        await first.append(said("1"))
        end_leases(admin)
        async with opened(other) as second:
            await second.append(said("2"))
            for attempt in (first.append(said("late")), first.append(NoteEntry(text="late")), first.move_head("1")):
                with pytest.raises(SessionError, match=r"work was taken over by .*\. Open the session again"):
                    await attempt
            await first.close()
            with pytest.raises(SessionError, match=r"work is held by process \d+ on "):
                await paused.open("work")
            await second.append(said("3"))
    assert content(await other.read("work")) == [said("1"), said("2"), said("3")]
    async with opened(paused) as session:
        assert content(session.entries) == [said("1"), said("2"), said("3")]


async def test_session_that_another_took_over_is_lost_and_the_others_are_not(
    shared_tables: Callable[[], SharedTables], admin: Connection
) -> None:
    store = PostgresStore(shared_tables(), clock=SystemClock(), lease=0.1)
    async with opened(store) as first, opened(store, "other") as second:
        admin.execute("UPDATE sessions SET holder = 'another', fence = fence + 1 WHERE key LIKE '%work'")
        await first.lost()
        await second.append(said("still ours"))
        with pytest.raises(SessionError, match="taken over"):
            await first.append(said("late"))


async def test_session_is_lost_once_its_lease_is_over_and_the_server_out_of_reach(own_postgres: OwnServer) -> None:
    store = PostgresStore(tables := SharedTables(f"{own_postgres.url}/postgres"), clock=SystemClock(), lease=0.3)
    session = await store.open("work")
    own_postgres.stop()
    await session.lost()
    own_postgres.start()
    with pytest.raises(SessionError, match="taken over"):
        await session.append(said("late"))
    await session.close()
    async with opened(store) as session:
        await session.append(said("again"))
    tables.close()


async def test_append_under_way_counts_for_nothing_once_the_session_is_taken_over(
    new_store: Callable[[], PostgresStore], admin: Connection, postgres_url: str
) -> None:
    async with opened(new_store()) as session:
        with admin.transaction():
            admin.execute("UPDATE sessions SET fence = fence + 1")
            late = asyncio.create_task(session.append(said("late")))
            await until(postgres_url, BLOCKED)
        with pytest.raises(SessionError, match="taken over"):
            await late
        assert len(session.entries) == 1
        assert len(await new_store().read("work")) == 1


async def test_append_that_was_faster_than_the_takeover_is_there_for_the_new_holder(
    new_store: Callable[[], PostgresStore], admin: Connection, postgres_url: str
) -> None:
    async with opened(new_store()) as first:
        end_leases(admin)
        with admin.transaction(force_rollback=True):
            admin.execute("INSERT INTO entries SELECT id, entries + 1, '' FROM sessions")
            append = asyncio.create_task(first.append(said("1")))
            await until(postgres_url, BLOCKED)
            opening = asyncio.create_task(new_store().open("work"))
            await until(postgres_url, TWO_BLOCKED)
        await append
        second = await opening
        assert content(second.entries) == [said("1")]
        await second.close()


async def test_entries_of_others_are_read_from_where_it_was_closed(
    new_store: Callable[[], PostgresStore], admin: Connection
) -> None:
    store = new_store()
    async with opened(store) as session:
        await session.append(said("1"))
    async with opened(new_store()) as session:
        await session.append(said("2"))
    admin.execute("UPDATE entries SET line = 'damaged' WHERE seq = 1")
    async with opened(store) as session:
        assert content(session.entries) == [said("1"), said("2")]
        assert not session.warnings
    admin.execute("UPDATE entries SET line = 'changed' WHERE seq = 3")
    async with opened(store) as session:
        assert session.warnings


async def test_entries_of_a_removed_session_are_gone(new_store: Callable[[], PostgresStore], admin: Connection) -> None:
    store = new_store()
    async with opened(store) as session:
        await session.append(said("1"))
    await store.remove("work")
    assert admin.execute("SELECT FROM entries").fetchall() == []


async def test_session_that_was_removed_and_made_anew_is_another(
    new_store: Callable[[], PostgresStore], admin: Connection
) -> None:
    async with opened(new_store()) as first:
        end_leases(admin)
        await new_store().remove("work")
        async with opened(new_store()):
            with pytest.raises(SessionError, match="or removed"):
                await first.append(said("late"))


async def test_open_sessions_are_renewed_until_the_last_is_closed(
    shared_tables: Callable[[], SharedTables], admin: Connection, postgres_url: str
) -> None:
    store, tasks = PostgresStore(shared_tables(), clock=SystemClock(), lease=0.1), asyncio.all_tasks()
    async with opened(store), opened(store, "other"):
        end_leases(admin)
        await until(
            postgres_url, "(SELECT min(held_until) FROM sessions) AS first WHERE min > now() - interval '0.5 s'"
        )
    assert not admin.execute("SELECT 1 FROM sessions WHERE held_until IS NOT NULL").fetchall()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == tasks


async def test_session_that_is_opened_right_after_the_last_was_released_is_renewed(
    shared_tables: Callable[[], SharedTables], admin: Connection, postgres_url: str
) -> None:
    store = PostgresStore(shared_tables(), clock=SystemClock(), lease=0.1)
    released = await store.open("work")
    await store.release(released.key)
    async with opened(store, "other"):
        end_leases(admin)
        await until(postgres_url, "sessions WHERE held_until > now()")


async def test_cancelled_append_is_written_and_the_session_goes_on(
    new_store: Callable[[], PostgresStore], admin: Connection, postgres_url: str
) -> None:
    async with opened(new_store()) as session:
        with admin.transaction():
            admin.execute("SELECT * FROM sessions FOR UPDATE")
            turn = asyncio.create_task(session.append(said("1")))
            await until(postgres_url, BLOCKED)
            turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        await session.append(said("2"))
        assert content(session.entries) == [said("1"), said("2")]
    assert content(await new_store().read("work")) == [said("1"), said("2")]


async def test_cancelled_opening_leaves_the_session_free(
    new_store: Callable[[], PostgresStore], admin: Connection, postgres_url: str
) -> None:
    await saved(new_store(), "1")
    with admin.transaction():
        admin.execute("SELECT * FROM sessions FOR UPDATE")
        opening = asyncio.create_task(new_store().open("work"))
        await until(postgres_url, BLOCKED)
        opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await saved(new_store(), "2")


# Opening again


async def test_an_append_asks_the_same_of_the_database_however_long_the_session_is(postgres_url: str) -> None:
    async with line_to(postgres_url) as (url, line):
        store = PostgresStore(tables := SharedTables(url), clock=SystemClock())
        costs = list[int]()
        async with opened(store) as session:
            for _ in range(600):
                before = line.sent
                await session.append(NoteEntry(text="x" * 1000))
                costs.append(line.sent - before)
        tables.close()
    assert max(costs[500:]) < max(costs[50:100]) + 20  # numbers have more digits


async def test_page_asks_the_same_of_the_database_however_many_sessions_there_are(
    new_store: Callable[[], PostgresStore], admin: Connection, postgres_url: str
) -> None:
    await saved(new_store(), "1")
    admin.execute(
        "INSERT INTO sessions (key, holder, entries, info, used) "
        "SELECT format('key-%s', n), '', 1, format('{\"key\": \"%s\"}', n)::json, n FROM generate_series(1, 10000) AS n"
    )
    admin.execute("ANALYZE sessions")
    read = "SELECT seq_scan, idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'sessions'"
    async with line_to(postgres_url) as (url, line):
        store = PostgresStore(tables := SharedTables(url), clock=SystemClock())
        await store.page(50)
        admin.execute("SELECT pg_stat_force_next_flush()")
        [(scans, _)] = admin.execute(read).fetchall()
        before = line.sent
        page = await store.page(50, 5000.0)
        assert line.sent - before < 1000  # one statement
        tables.close()
    assert [info.key for info in page] == [str(number) for number in range(4999, 4949, -1)]
    await until(postgres_url, "pg_stat_user_tables WHERE relname = 'sessions' AND idx_tup_fetch >= 100")
    [(after, rows)] = admin.execute(read).fetchall()
    assert after == scans
    assert isinstance(rows, int)
    assert rows < 150


# The server and the network


async def test_session_goes_on_after_the_server_was_started_again(own_postgres: OwnServer) -> None:
    store = PostgresStore(tables := SharedTables(f"{own_postgres.url}/postgres"), clock=SystemClock())
    async with opened(store) as session:
        await session.append(said("1"))
        own_postgres.stop()
        own_postgres.start()
        await session.append(said("2"))
        own_postgres.stop()
        with pytest.raises(SessionError, match=r"The database at 127.0.0.1:\d+/postgres: .*Check that it is running"):
            await session.append(said("3"))
        with pytest.raises(SessionError, match="The database at"):
            await store.read("work")
        own_postgres.start()
        await session.append(said("4"))
        assert content(session.entries) == [said("1"), said("2"), said("4")]
    assert content(await store.read("work")) == [said("1"), said("2"), said("4")]
    tables.close()


async def test_what_a_server_that_lost_power_had_not_synced_is_missed(own_postgres: OwnServer) -> None:
    with psycopg.connect(f"{own_postgres.url}/postgres", autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
    own_postgres.stop()
    own_postgres.start()
    store = PostgresStore(tables := SharedTables(f"{own_postgres.url}/postgres"), clock=SystemClock())
    async with opened(store) as session:
        await session.append(NoteEntry(text="synced"))
        await session.sync()
        own_postgres.stop()
        own_postgres.start()
        await session.append(said("synced, too"))
        await session.append(NoteEntry(text="written"))
        own_postgres.stop()
        own_postgres.start()
        with pytest.raises(SessionError, match="the database has lost its end"):
            await session.append(said("after"))
    async with opened(store) as session:
        assert content(session.entries) == [NoteEntry(text="synced"), said("synced, too")]
        assert not session.warnings
    tables.close()


async def test_entry_whose_answer_was_lost_is_there_once(postgres_url: str) -> None:
    async with line_to(postgres_url) as (url, line):
        store = PostgresStore(tables := SharedTables(url), clock=SystemClock())
        async with opened(store) as session:
            await session.append(said("1"))
            line.lost = 1
            await session.append(said("2"))
            await session.append(said("3"))
        assert content(await store.read("work")) == [said("1"), said("2"), said("3")]
        tables.close()


async def test_entry_that_was_written_unknown_to_its_writer_ends_the_turn(postgres_url: str) -> None:
    async with line_to(postgres_url) as (url, line):
        store = PostgresStore(tables := SharedTables(url), clock=SystemClock())
        async with opened(store) as session:
            await session.append(said("1"))
            line.lost = 2
            with pytest.raises(SessionError, match="Check that it is running"):
                await session.append(said("2"))
            with pytest.raises(SessionError, match="nothing more of this turn is recorded"):
                await session.append(said("other"))
        async with opened(store) as session:
            await session.append(said("3"))
            assert content(session.entries) == [said("1"), said("2"), said("3")]
        tables.close()


async def test_session_whose_holder_lost_the_server_is_free_for_the_same_process(own_postgres: OwnServer) -> None:
    store = PostgresStore(tables := SharedTables(f"{own_postgres.url}/postgres"), clock=SystemClock())
    session = await store.open("work")
    await session.append(said("1"))
    own_postgres.stop()
    await session.close()
    own_postgres.start()
    await saved(store, "2")
    tables.close()


async def test_tables_of_a_newer_denizen_are_left_alone(
    new_store: Callable[[], PostgresStore], admin: Connection, postgres_url: str
) -> None:
    await saved(new_store(), "1")
    admin.execute("UPDATE denizen_versions SET version = 99")
    with pytest.raises(ConfigError, match="Update Denizen"):
        await new_store().open("work")


# Texts


async def test_secrets_stay_out_of_the_database(shared_tables: Callable[[], SharedTables], admin: Connection) -> None:
    store = PostgresStore(shared_tables(), clock=SystemClock(), redactor=Redactor({"password": "s3cret-pass"}))
    await saved(store, "My password is s3cret-pass.")
    await store.fork("work", "other")
    kept = admin.execute("SELECT convert_from(line, 'UTF8'), info::text FROM entries, sessions").fetchall()
    assert kept
    assert "s3cret" not in str(kept)


async def test_index_shows_texts_that_postgresql_refuses(new_store: Callable[[], PostgresStore]) -> None:
    store = new_store()
    session = await store.open("work", workspace="/a\0b\udcff")
    await session.append(NoteEntry(text="\0"))
    await session.append(said("a\0\udcffb ✓"))
    await session.close()
    [info] = await store.list()
    assert (info.title[0], info.title[-3:], info.workspace[:4]) == ("a", "b ✓", "/a\0b")
