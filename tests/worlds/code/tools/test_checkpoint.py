"""`checkpoint` and `rollback` as the model sees them."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from denizen.checkpoints import shadow_of
from denizen.errors import DenizenError, ToolRefused
from denizen.messages import ToolResult
from denizen.ports import Tool, Traits
from denizen.testing import FakeClock
from denizen.worlds.code.tools.checkpoint import checkpoint_tools

Call = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def tools(tmp_path: Path, workspace: Path) -> list[Tool]:
    return checkpoint_tools(shadow_of(workspace, tmp_path / "home", clock=FakeClock(), environ=os.environ))


async def test_unknown_label_is_refused(tools: list[Tool], call: Call) -> None:
    with pytest.raises(ToolRefused, match="no checkpoint 'red'"):
        await call(tools[1], label="red")


@pytest.mark.parametrize("which", [0, 1])
async def test_an_empty_label_is_refused(tools: list[Tool], call: Call, which: int) -> None:
    with pytest.raises(ToolRefused, match="the label is empty"):
        await call(tools[which], label=" ")


async def test_failure_says_why(tools: list[Tool], call: Call, workspace: Path) -> None:
    workspace.rmdir()
    with pytest.raises(DenizenError, match="isn't there any more"):
        await call(tools[0], label="green")


def test_what_they_do_to_the_world(tools: list[Tool]) -> None:
    assert [(tool.name, tool.traits) for tool in tools] == [("checkpoint", Traits.WRITES), ("rollback", Traits.WRITES)]
