"""What `extending.md` shows passes the suites that we ship."""

from collections.abc import Callable
from typing import Any

import pytest
from docs.examples.driver import Careful
from docs.examples.session_store import MemoryStore, SharedTree
from docs.examples.tool import order, stock

from denizen.ports import Driver, SessionStore, Tool
from denizen.testing import DriverConformance, SessionStoreConformance, ToolConformance


class TestMemoryStore(SessionStoreConformance):
    @pytest.fixture
    def new_store(self) -> Callable[[], SessionStore]:
        sessions: dict[str, SharedTree] = {}
        return lambda: MemoryStore(sessions)


class TestStock(ToolConformance):
    @pytest.fixture
    def tool(self) -> Tool:
        return stock

    @pytest.fixture
    def args(self) -> dict[str, Any]:
        return {"article": "lamp"}


class TestOrder(TestStock):
    @pytest.fixture
    def tool(self) -> Tool:
        return order


class TestCareful(DriverConformance):
    @pytest.fixture
    def new_driver(self) -> Callable[[], Driver]:
        return Careful
