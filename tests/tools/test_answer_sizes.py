"""How long the answers of the code tools are on a real repository: a hundred files of this very program."""

import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import denizen
from denizen.messages import ToolResult
from denizen.tools.grep import grep_tool
from denizen.worlds.code.tools.edit_symbol import edit_symbol
from denizen.worlds.code.tools.view import view_tool

Call = Callable[..., Awaitable[ToolResult]]
DETAILS = 600
"""Bytes of a result's details, which the transcript keeps."""


@pytest.fixture
def repository(workspace: Path) -> Path:
    source = Path(denizen.__file__).parent
    for path in sorted(source.rglob("*.py"))[:100]:
        copy = workspace / "src/denizen" / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    return workspace


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("args", "most"),
    [
        ({}, 1500),
        ({"path": "src/denizen"}, 3500),
        ({"types_only": True}, 11_000),
        ({"path": "src/denizen/cli", "types_only": True}, 7000),
        ({"path": "src/denizen/cli/terminal.py"}, 3500),
        ({"path": "src/denizen/cli/terminal.py", "types_only": True}, 2500),
        ({"path": "src/denizen/cli/terminal.py/Terminal"}, 12_500),
        ({"path": "main"}, 2500),
        ({"jq": ".files"}, 10),
    ],
)
async def test_view(args: dict[str, Any], most: int, tmp_path: Path, call: Call) -> None:
    await fits(call(view_tool(tmp_path / "home"), **args), most)


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("args", "most"),
    [
        ({"pattern": "^import asyncio$"}, 4000),
        ({"pattern": "import", "mode": "files"}, 4000),
        ({"pattern": "import"}, 20_000),
        ({"pattern": "def main", "context": 2}, 1500),
        ({"pattern": "import", "jq": ".matches | length"}, 10),
    ],
)
async def test_grep(args: dict[str, Any], most: int, call: Call) -> None:
    await fits(call(grep_tool(os.environ), **args), most)


@pytest.mark.parametrize(
    ("args", "most"),
    [
        ({"action": "insert", "content": "def new() -> None:\n    pass\n"}, 100),
        ({"action": "replace", "content": "def main() -> None:\n    pass\n"}, 100),
        ({"action": "delete"}, 100),
    ],
)
async def test_edit_symbol(args: dict[str, Any], most: int, repository: Path, call: Call) -> None:
    (repository / "src/denizen/cli/main.py").write_text("def main() -> None:\n    print('hello')\n")
    await fits(call(edit_symbol, target="src/denizen/cli/main.py/main", **args), most)


async def fits(answer: Awaitable[ToolResult], most: int) -> None:
    result: ToolResult = await answer
    assert 1 < len(result.text) <= most
    assert len(msgspec.json.encode(result.details)) <= DETAILS
