"""A real process that has a session in PostgreSQL dies, or is stopped, at any step; the next one goes on."""

import asyncio
import itertools
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
from tests.conftest import Drive

from denizen.runtime.clock import SystemClock
from denizen.sessions.postgres import PostgresStore
from denizen.sessions.tables import SharedTables
from denizen.testing.conformance_store import content, opened, said

HERE = Path(__file__).parent


def end_leases(url: str) -> None:
    """As if nobody had renewed them for 15 s."""
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE sessions SET held_until = now() - interval '1 second' WHERE held_until IS NOT NULL")


async def test_every_statement_can_be_the_last_and_the_session_is_whole(
    drive: Drive, shared_tables: Callable[[], SharedTables], postgres_url: str
) -> None:
    store = PostgresStore(shared_tables(), clock=SystemClock())
    await store.list()  # makes the tables
    for step in itertools.count(1):
        ran = await asyncio.to_thread(drive, HERE / "kill_driver.py", postgres_url, step)
        end_leases(postgres_url)
        async with opened(store) as session:
            kept = content(session.entries)
            assert not session.warnings
            await session.append(said("and on"))
        assert kept == [said(str(number)) for number in range(len(kept))]
        assert len(ran.stdout.split()) <= len(kept) <= len(ran.stdout.split()) + 1
        assert content(await store.read("work")) == [*kept, said("and on")]
        if ran.returncode == 0:
            break
        assert ran.returncode == -signal.SIGKILL, ran.stderr
        for info in await store.list():
            await store.remove(info.key)
    assert step > 14
    assert content(await store.read("other")) == [said("0"), said("1"), said("2")]


async def test_stopped_process_that_goes_on_after_its_lease_writes_nothing_more(
    shared_tables: Callable[[], SharedTables], postgres_url: str
) -> None:
    store = PostgresStore(shared_tables(), clock=SystemClock())
    command = [sys.executable, str(HERE / "holder.py"), postgres_url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        seen = [holder.stdout.readline() for _ in range(20)]
        holder.send_signal(signal.SIGSTOP)
        end_leases(postgres_url)
        async with opened(store) as session:
            await session.append(said("and on"))
            taken = [*session.entries]
            holder.send_signal(signal.SIGCONT)
            rest, errors = await asyncio.to_thread(holder.communicate)
            await session.append(said("and on"))
    assert "taken over by another worker" in errors
    assert "open" in seen[0]
    acknowledged = len(seen) - 1 + len(rest.split())
    assert acknowledged <= len(content(taken)) - 1 <= acknowledged + 1
    assert content(await store.read("work")) == [*content(taken), said("and on")]
