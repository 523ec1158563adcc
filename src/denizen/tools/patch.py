"""`apply_patch`: changes to several files, all of them or none."""

from denizen.cancellation import run_in_thread
from denizen.messages import ToolResult
from denizen.ports import ToolContext, Traits
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import tool
from denizen.tools.patching.plan import Plan
from denizen.tools.patching.read import read_patch


@tool(traits=Traits.WRITES, plans=True)
async def apply_patch(turn: ToolContext, patch: str) -> ToolResult:
    """Change files by a patch, all or none of it: a unified diff or `*** Begin Patch`. It may create, delete, rename.

    Args:
        patch: Show unchanged lines around each change; line numbers may be left out: @@
    """
    return await run_in_thread(None, _apply, Workspace.of(turn), patch)


def _apply(workspace: Workspace, patch: str) -> ToolResult:
    plan = Plan(workspace)
    for file in read_patch(patch):
        plan.add(file)
    return plan.carry_out()
