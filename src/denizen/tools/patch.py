"""`apply_patch`: changes to several files, all of them or none."""

from denizen.messages import ToolResult
from denizen.ports import ToolContext, Traits
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import tool


@tool(traits=Traits.WRITES, plans=True)
def apply_patch(turn: ToolContext, patch: str) -> ToolResult:
    """Change files by a patch, all or none of it: a unified diff or `*** Begin Patch`. It may create, delete, rename.

    Args:
        patch: Show unchanged lines around each change; line numbers may be left out: @@
    """
    from denizen.tools.patching.files import PatchedFiles
    from denizen.tools.patching.parse import read_patch

    changes = PatchedFiles(Workspace.of(turn))
    for file in read_patch(patch):
        changes.add(file)
    return changes.write()
