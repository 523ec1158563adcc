"""What nobody uses for longer than `[retention]` keeps it is deleted, and nothing else."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from denizen.config.settings import RetentionSettings
from denizen.entries import ParkedEntry, UserEntry
from denizen.messages import Text, UserMessage
from denizen.ports import SessionStore
from denizen.sessions import JsonlStore
from denizen.sessions.home_database import HomeDatabase
from denizen.sessions.postgres import PostgresStore
from denizen.sessions.retention import prune
from denizen.sessions.spend_file import SpendFile
from denizen.sessions.spend_table import SpendTable
from denizen.sessions.tables import SharedTables
from denizen.testing import FakeClock

DAY_S = 86_400.0
KEEP_ALL = RetentionSettings(empty_session_days=0, spend_days=0)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["files", "database"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> SessionStore:
    if request.param == "files":
        return JsonlStore(tmp_path / "sessions", clock=clock)
    return PostgresStore(request.getfixturevalue("shared_tables")(), clock=clock)


async def keys(store: SessionStore) -> list[str]:
    return sorted(info.key.rpartition(":")[2] for info in await store.list())


async def begin(store: SessionStore, name: str, text: str = "", question: str = "") -> None:
    session = await store.open(name)
    if text:
        await session.append(UserEntry(message=UserMessage([Text(text)])))
    if question:
        await session.append(ParkedEntry(call_id="c1", question=question))
    await session.close()


async def test_nothing_that_was_said_is_deleted_by_default(store: SessionStore, clock: FakeClock) -> None:
    await begin(store, "said", "hi")
    await begin(store, "empty")
    await clock.sleep(29 * DAY_S)
    await begin(store, "fresh")
    assert (await prune(store, None, RetentionSettings(), clock)).sessions == 0
    await clock.sleep(2 * DAY_S)
    assert (await prune(store, None, RetentionSettings(), clock)).sessions == 1
    assert await keys(store) == ["fresh", "said"]
    await clock.sleep(10_000 * DAY_S)
    await prune(store, None, KEEP_ALL, clock)
    assert await keys(store) == ["fresh", "said"]


async def test_sessions_that_nobody_used_for_so_long_are_deleted(store: SessionStore, clock: FakeClock) -> None:
    for number in range(120):
        await begin(store, f"old{number}", "hi")
    await begin(store, "waits", "hi", question="May I?")
    await begin(store, "continued", "hi")
    held = await store.open("held")
    await clock.sleep(100 * DAY_S)
    await begin(store, "continued", "again")
    settings = RetentionSettings(session_days=90)
    assert (await prune(store, None, settings, clock)).sessions == 120
    assert await keys(store) == ["continued", "held", "waits"]
    await held.close()


async def test_lock_file_goes_with_its_session(tmp_path: Path, clock: FakeClock) -> None:
    store = JsonlStore(tmp_path / "sessions", clock=clock)
    await begin(store, "old", "hi")
    await clock.sleep(2 * DAY_S)
    await prune(store, None, RetentionSettings(session_days=1), clock)
    assert [*store.path("old").parent.iterdir()] == []


@pytest.fixture
def admin(postgres_url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


async def test_sums_of_the_database_to_which_nothing_was_added_are_forgotten(
    shared_tables: Callable[[], SharedTables],
    admin: psycopg.Connection[tuple[object, ...]],
    tmp_path: Path,
    clock: FakeClock,
) -> None:
    store, sums = JsonlStore(tmp_path / "sessions", clock=clock), SpendTable(shared_tables())
    sums.add({f"old{number}": 1.0 for number in range(120)} | {"fresh": 1.0})
    admin.execute("UPDATE spend SET at = now() - interval '401 days'")
    sums.add({"fresh": 0.5})
    assert (await prune(store, sums, KEEP_ALL, clock)).sums == 0
    assert (await prune(store, sums, RetentionSettings(), clock)).sums == 120
    assert sums.read(["old1", "fresh"]) == {"old1": 0.0, "fresh": 1.5}


async def test_sums_of_the_home_to_which_nothing_was_added_are_forgotten(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "spend.db"
    store, sums, other = JsonlStore(tmp_path / "sessions", clock=clock), SpendFile(path), HomeDatabase(path, "")
    other.execute("CREATE TABLE spend (name TEXT PRIMARY KEY, usd REAL) WITHOUT ROWID")
    other.execute("INSERT INTO spend VALUES ('of an earlier version', 1)")
    sums.add({f"old{number}": 1.0 for number in range(120)} | {"fresh": 1.0})
    other.execute("UPDATE spend_days SET day = day - 401")
    sums.add({"fresh": 0.5})
    assert (await prune(store, sums, KEEP_ALL, clock)).sums == 0
    assert (await prune(store, sums, RetentionSettings(), clock)).sums == 120
    names = ["old1", "fresh", "of an earlier version"]
    assert sums.read(names) == {"fresh": 1.5, "of an earlier version": 1.0}
    other.close()
