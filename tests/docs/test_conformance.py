"""What `extending.md` shows passes the suites that we ship."""

from collections.abc import Callable
from typing import Any

import pytest
from docs.examples.action_format import Fenced
from docs.examples.driver import Careful
from docs.examples.tool import order, stock

from denizen.messages import AssistantMessage, Text
from denizen.ports import ActionFormat, Driver, Tool
from denizen.testing import ActionFormatConformance, DriverConformance, ToolConformance


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


class TestFenced(ActionFormatConformance):
    @pytest.fixture
    def actions(self) -> ActionFormat:
        return Fenced()

    @pytest.fixture
    def acting(self) -> AssistantMessage:
        calls = [f'~~~call stock\n{{"article": "{article}"}}\n~~~' for article in ("lamp", "sofa")]
        return AssistantMessage([Text("\n".join(["I look.", *calls]))])
