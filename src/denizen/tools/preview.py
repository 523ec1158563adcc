"""What an edit would change, shown before it is allowed to."""

import dataclasses
import sys
from typing import Any

from denizen.errors import ToolRefused
from denizen.ports import PlanningTool, Tool, ToolContext
from denizen.tools.editing.texts import difference
from denizen.tools.files.changes import load_or_empty
from denizen.tools.files.workspace import Workspace


async def preview(tool: Tool, args: dict[str, Any], turn: ToolContext) -> str:
    """The whole diff of what the call would do to files; empty where it would be refused, or it isn't known."""
    if not (isinstance(tool, PlanningTool) and tool.plans):
        return ""
    planned: dict[str, bytes | None] = {}
    try:
        await tool.run(args, dataclasses.replace(turn, planned=planned))
        diffs = [_diff(Workspace.of(turn), path, data) for path, data in planned.items()]
    except ToolRefused:
        return ""
    return "\n".join(diffs) if all(diffs) else ""


def _diff(workspace: Workspace, path: str, data: bytes | None) -> str:
    old = load_or_empty(workspace, path)
    new = dataclasses.replace(old, data=data)
    if diff := difference(old.text, new.text, most=sys.maxsize).diff:
        return (
            f"--- {path if old.data is not None else '(new)'}\n+++ {path if data is not None else '(deleted)'}\n{diff}"
        )
    return ""
