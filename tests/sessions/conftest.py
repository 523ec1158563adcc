"""Empty stores, and a way to give one a session whose bytes a test chose."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore
from denizen.sessions.tables import SharedTables


@pytest.fixture
def store(tmp_path: Path) -> JsonlStore:
    return JsonlStore(tmp_path / "sessions", clock=SystemClock())


@pytest.fixture
def put(store: JsonlStore) -> Callable[[bytes], Path]:
    """`put(data)`: the session `work` is a file with these bytes."""

    def write(data: bytes, name: str = "work") -> Path:
        path = store.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def shared_tables(postgres_url: str) -> Iterator[Callable[[], SharedTables]]:
    """`shared_tables()`: the tables of one empty database, as another process opens them."""
    made: list[SharedTables] = []

    def make() -> SharedTables:
        made.append(SharedTables(postgres_url))
        return made[-1]

    yield make
    for tables in made:
        tables.close()
