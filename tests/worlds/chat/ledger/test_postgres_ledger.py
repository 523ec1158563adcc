"""One gateway on a PostgreSQL database, whatever becomes of its connection."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from denizen.errors import ConfigError
from denizen.runtime.clock import SystemClock
from denizen.worlds.chat.ledger.database import Database, LedgerError, LedgerTaken
from denizen.worlds.chat.ledger.postgres_ledger import PostgresLedger

OLD = Path(__file__).parents[3] / "data" / "databases" / "0.1.0.sql"
LOCKS = """
SELECT pid, (classid::bigint << 32) + objid::bigint FROM pg_locks
WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

Open = Callable[[str], Database]


@pytest.fixture
def open_gateway() -> Iterator[Open]:
    opened: list[Database] = []

    def begin(url: str) -> Database:
        opened.append(Database(PostgresLedger(url, sole=True), SystemClock()))
        return opened[-1]

    yield begin
    for each in opened:
        each.close()


def take(other: psycopg.Connection[Any]) -> None:
    """End the gateway's connection, and have its lock."""
    [(process, lock)] = other.execute(LOCKS).fetchall()
    other.execute("SELECT pg_terminate_backend(%s, 60000)", [process])
    other.execute("SELECT pg_advisory_lock(%s)", [lock])


async def test_gateway_tells_another_of_the_same_host_and_process_number_from_itself(
    postgres_url: str, open_gateway: Open
) -> None:
    first = open_gateway(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as other:
        take(other)
        other.execute("SELECT pg_advisory_unlock_all()")
        open_gateway(postgres_url)
    with pytest.raises(LedgerTaken, match="has another gateway"):
        await first.run(lambda _: None)


async def test_gateway_whose_rival_is_not_to_be_found_tries_again(postgres_url: str, open_gateway: Open) -> None:
    gateway = open_gateway(f"{postgres_url}?options=-csearch_path%3Dpublic,pg_catalog")
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("CREATE VIEW pg_stat_activity AS SELECT * FROM pg_catalog.pg_stat_activity WHERE false")
        take(other)
        with pytest.raises(LedgerError) as refused:
            await gateway.run(lambda _: None)
        assert not isinstance(refused.value, LedgerTaken)
        other.execute("SELECT pg_advisory_unlock_all()")
    await gateway.run(lambda _: None)


async def test_tables_stay_as_they_are_while_a_process_of_an_earlier_version_runs(
    postgres_url: str, open_gateway: Open
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as old:
        old.execute(OLD.read_bytes())
        old.execute("SET search_path TO public")
        old.execute("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now())")
        versions = "SELECT version FROM denizen_versions WHERE part IN ('ledger', 'procrastinate')"
        with pytest.raises(ConfigError, match=r"1 process of an earlier version .* Stop its gateway and its workers"):
            open_gateway(postgres_url)
        assert old.execute(versions).fetchall() == [(1,), (1,)]
        old.execute("DELETE FROM procrastinate_workers")
        open_gateway(postgres_url)
        assert old.execute(versions).fetchall() == [(5,), (2,)]
        old.execute("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now())")
        PostgresLedger(postgres_url).close()
