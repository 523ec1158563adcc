"""What `extending.md` shows passes the suites that we ship."""

from collections.abc import Callable
from typing import Any

import pytest
from docs.examples.driver import Careful
from docs.examples.tool import order, stock

from denizen.ports import Driver, Tool
from denizen.testing import DriverConformance, ToolConformance


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
