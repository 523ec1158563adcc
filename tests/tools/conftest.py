"""What a turn lends to the tools under test."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from denizen.messages import ToolResult
from denizen.ports import Answer, Tool, ToolContext
from denizen.testing import FakeClock


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def shown() -> list[str]:
    """What the tool showed while it ran."""
    return []


@pytest.fixture
def turn(workspace: Path, shown: list[str]) -> ToolContext:
    async def nobody(question: str) -> Answer:
        return Answer("call-1", allow=False)

    return ToolContext("session", "call-1", workspace, FakeClock(), shown.append, nobody)


@pytest.fixture
def call(turn: ToolContext) -> Callable[..., Awaitable[ToolResult]]:
    """Run a tool in the turn: `await call(read, path="notes.txt")`."""

    async def run(tool: Tool, **args: Any) -> ToolResult:
        return await tool.run(args, turn)

    return run
