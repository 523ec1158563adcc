"""`remember`, `recall` and `forget` as the model sees them."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from denizen.config import Config
from denizen.errors import ToolRefused
from denizen.memory import open_memory
from denizen.messages import ToolResult
from denizen.ports import Tool, Traits
from denizen.testing import FakeClock
from denizen.tools.memory import memory_tools

Call = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def tools(tmp_path: Path) -> list[Tool]:
    (tmp_path / "project").mkdir()
    config = Config(home=tmp_path / "home", workspace=tmp_path / "project")
    return memory_tools(open_memory(config, clock=FakeClock()))


async def test_what_is_remembered_is_recalled_and_forgotten(tools: list[Tool], call: Call) -> None:
    remember, recall, forget = tools
    assert (await call(recall)).text == "Nothing is remembered that matches."
    told = await call(remember, text="The auth module uses JWT", context="architecture", weight=0.8)
    assert told.text == "Remembered for this project."
    assert (await call(remember, text="Ada likes tea", scope="user")).text == "Remembered for the user."
    assert (await call(recall, query="tea")).text == "- 2026-01-01: Ada likes tea (u1)"
    assert (await call(recall, query="jwt")).text == "- 2026-01-01: The auth module uses JWT (architecture, p1)"
    assert (await call(forget, what="p1")).text == "Forgotten: The auth module uses JWT"
    assert (await call(recall, query="jwt")).text == "Nothing is remembered that matches."


async def test_a_fact_says_which_session_it_is_from(tmp_path: Path, call: Call) -> None:
    memory = open_memory(Config(home=tmp_path / "home", workspace=tmp_path), clock=FakeClock())
    result = await call(memory_tools(memory)[0], text="Ada likes tea")
    assert not result.is_error
    assert [fact.source for fact in memory.facts()] == ["session"]


async def test_an_empty_fact_is_refused(tools: list[Tool], call: Call) -> None:
    with pytest.raises(ToolRefused, match="the text is empty"):
        await call(tools[0], text=" ")


@pytest.mark.parametrize("wrong", [{"weight": 2}, {"scope": "world"}])
async def test_invalid_weight_or_scope_is_refused(tools: list[Tool], call: Call, wrong: dict[str, object]) -> None:
    with pytest.raises(ToolRefused, match=f"`{next(iter(wrong))}` must be"):
        await call(tools[0], text="Ada likes tea", **wrong)


def test_what_they_do_to_the_world(tools: list[Tool]) -> None:
    assert [(tool.name, tool.traits) for tool in tools] == [
        ("remember", Traits.WRITES),
        ("recall", Traits.READS | Traits.PRIVATE | Traits.REPEATABLE),
        ("forget", Traits.WRITES),
    ]
    assert tools[0].shell_names == ("store", "memorize")
