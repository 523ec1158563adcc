"""The JSONL store is a session store, synced and not; so are those in memory and in PostgreSQL."""

from collections.abc import Callable
from pathlib import Path

import pytest

from denizen.clock import SystemClock
from denizen.ports import SessionStore
from denizen.sessions import JsonlStore, MemoryStore
from denizen.sessions.postgres import PostgresStore
from denizen.sessions.tables import SharedTables
from denizen.testing.conformance_store import SessionStoreConformance


class TestJsonlStore(SessionStoreConformance):
    @pytest.fixture
    def new_store(self, tmp_path: Path) -> Callable[[], SessionStore]:
        return lambda: JsonlStore(tmp_path / "sessions", clock=SystemClock())


class TestUnsyncedJsonlStore(SessionStoreConformance):
    @pytest.fixture
    def new_store(self, tmp_path: Path) -> Callable[[], SessionStore]:
        return lambda: JsonlStore(tmp_path / "sessions", clock=SystemClock(), sync=False)


class TestMemoryStore(SessionStoreConformance):
    @pytest.fixture
    def new_store(self) -> Callable[[], SessionStore]:
        store = MemoryStore(clock=SystemClock())
        return lambda: store


class TestPostgresStore(SessionStoreConformance):
    @pytest.fixture
    def new_store(self, shared_tables: Callable[[], SharedTables]) -> Callable[[], SessionStore]:
        return lambda: PostgresStore(shared_tables(), clock=SystemClock())
