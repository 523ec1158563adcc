"""An empty store, and a way to give it a session whose bytes a test chose."""

from collections.abc import Callable
from pathlib import Path

import pytest

from denizen.clock import SystemClock
from denizen.sessions import JsonlStore


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
