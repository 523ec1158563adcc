"""What an edit would change is shown before it is allowed, and nothing is written for that."""

from pathlib import Path
from typing import Any

import pytest

from denizen.config.settings import PolicySettings, SandboxSettings
from denizen.ports import Tool, ToolContext, Traits
from denizen.tools.edit import edit
from denizen.tools.function import tool
from denizen.tools.patch import apply_patch
from denizen.tools.policy.policy import RulePolicy
from denizen.tools.sandbox import Bubblewrap
from denizen.tools.write import write
from denizen.worlds.code.tools.edit_symbol import edit_symbol

CODE = "def one():\n    return 1\n"
PATCH = "*** Begin Patch\n*** Update File: a.py\n-    return 1\n+    return 2\n*** Delete File: b.py\n*** End Patch\n"
CHANGED = "-    return 1\n+    return 2"
preview = RulePolicy(PolicySettings(), sandbox=Bubblewrap(SandboxSettings(), {}, Path("/nowhere"))).preview


@pytest.fixture
def files(workspace: Path) -> Path:
    (workspace / "a.py").write_text(CODE)
    (workspace / "b.py").write_text("b = 1\n")
    return workspace


@pytest.mark.parametrize(
    ("editor", "args", "expected"),
    [
        (edit, {"path": "a.py", "old": "return 1", "new": "return 2"}, ["+++ a.py", CHANGED]),
        (write, {"path": "a.py", "content": CODE.replace("1", "2")}, ["+++ a.py", CHANGED]),
        (write, {"path": "new/c.py", "content": "c = 1\n"}, ["--- (new)\n+++ new/c.py", "+c = 1"]),
        (edit_symbol, {"target": "a.py/one", "action": "delete"}, ["-def one():"]),
        (apply_patch, {"patch": PATCH}, [CHANGED, "--- b.py\n+++ (deleted)", "-b = 1"]),
    ],
)
async def test_the_diff_of_an_edit_is_known_before_it_is_made(
    turn: ToolContext, files: Path, editor: Tool, args: dict[str, Any], expected: list[str]
) -> None:
    diff = await preview(editor, args, turn)
    assert [part for part in expected if part not in diff] == []
    assert {path.name: path.read_text() for path in files.iterdir()} == {"a.py": CODE, "b.py": "b = 1\n"}


async def test_a_long_diff_is_whole(turn: ToolContext) -> None:
    diff = await preview(write, {"path": "long.txt", "content": "x\n" * 1000}, turn)
    assert diff.count("+x") == 1000


async def test_an_edit_that_would_be_refused_has_no_diff(turn: ToolContext, files: Path) -> None:
    assert await preview(edit, {"path": "a.py", "old": "return 3", "new": "return 4"}, turn) == ""


async def test_a_command_is_not_run_for_a_preview(turn: ToolContext, files: Path) -> None:
    @tool(traits=Traits.EXECUTES)
    def touch() -> None:
        """Make a file."""
        (files / "made").touch()

    assert await preview(touch, {}, turn) == ""
    assert not (files / "made").exists()
