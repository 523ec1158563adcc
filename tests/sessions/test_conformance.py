"""The JSONL store is a session store, synced and not; so are those in memory and in PostgreSQL."""

from collections.abc import Callable
from pathlib import Path

import pytest

from denizen.ports import SessionStore
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore, MemoryStore
from denizen.sessions.postgres import PostgresStore
from denizen.sessions.tables import SharedTables
from denizen.testing.conformance_store import SessionStoreConformance, content, opened, said, saved


class KeptInMemory(SessionStoreConformance):
    """A store that keeps closed sessions in memory, where nobody else writes them."""

    async def test_session_that_nobody_touched_is_not_read_again(self, new_store: Callable[[], SessionStore]) -> None:
        store = new_store()
        async with opened(store) as session:
            await session.append(said("1"))
            entries = session.entries
        async with opened(store) as session:
            assert session.entries is entries
            await session.append(said("2"))
        await saved(new_store(), "3")
        async with opened(store) as session:
            assert content(session.entries) == [said("1"), said("2"), said("3")]


class TestJsonlStore(KeptInMemory):
    @pytest.fixture
    def new_store(self, tmp_path: Path) -> Callable[[], SessionStore]:
        return lambda: JsonlStore(tmp_path / "sessions", clock=SystemClock())


class TestUnsyncedJsonlStore(KeptInMemory):
    @pytest.fixture
    def new_store(self, tmp_path: Path) -> Callable[[], SessionStore]:
        return lambda: JsonlStore(tmp_path / "sessions", clock=SystemClock(), sync=False)


class TestMemoryStore(SessionStoreConformance):
    @pytest.fixture
    def new_store(self) -> Callable[[], SessionStore]:
        store = MemoryStore(clock=SystemClock())
        return lambda: store


class TestPostgresStore(KeptInMemory):
    @pytest.fixture
    def new_store(self, shared_tables: Callable[[], SharedTables]) -> Callable[[], SessionStore]:
        return lambda: PostgresStore(shared_tables(), clock=SystemClock())
