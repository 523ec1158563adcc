"""What a turn lends to the tools under test."""

from pathlib import Path

import pytest

from denizen.ports import Answer, ToolContext
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
