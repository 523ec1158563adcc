"""What `extending.md` shows passes the suites that we ship."""

from collections.abc import Callable

import pytest
from docs.examples.session_store import Kept, MemoryStore

from denizen.ports import SessionStore
from denizen.testing.conformance_store import SessionStoreConformance


class TestMemoryStore(SessionStoreConformance):
    @pytest.fixture
    def new_store(self) -> Callable[[], SessionStore]:
        sessions: dict[str, Kept] = {}
        return lambda: MemoryStore(sessions)
