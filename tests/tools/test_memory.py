"""`remember` and `recall` as the model sees them."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from denizen.errors import ToolRefused
from denizen.memory import Notes
from denizen.messages import ToolResult
from denizen.ports import Tool, Traits
from denizen.testing import FakeClock
from denizen.tools.memory import memory_tools

Call = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def tools(tmp_path: Path) -> list[Tool]:
    return memory_tools(Notes(tmp_path / "home", FakeClock()))


async def test_what_is_remembered_is_recalled(tools: list[Tool], call: Call) -> None:
    remember, recall = tools
    assert (await call(recall)).text == "Nothing was remembered that fits."
    assert (await call(remember, text="Ada likes tea")).text == "Remembered in MEMORY.md."
    await call(remember, text="Bob likes coffee")
    assert (await call(recall, query="tea")).text == "- 2026-01-01: Ada likes tea"
    assert (await call(recall, limit=1)).text == "- 2026-01-01: Bob likes coffee"


async def test_an_empty_fact_is_refused(tools: list[Tool], call: Call) -> None:
    with pytest.raises(ToolRefused, match="the text is empty"):
        await call(tools[0], text=" ")


def test_what_they_do_to_the_world(tools: list[Tool]) -> None:
    assert [(tool.name, tool.traits) for tool in tools] == [
        ("remember", Traits.WRITES),
        ("recall", Traits.READS | Traits.PRIVATE | Traits.REPEATABLE),
    ]
    assert tools[0].shell_names == ("store", "memorize")
