"""The shadow repository: what the files were, so that everything the agent does to them can be undone."""

from denizen.checkpoints.history import Snapshot
from denizen.checkpoints.shadow import Shadow, shadow_of
from denizen.checkpoints.worktree import Worktree
from denizen.ports.checkpoints import Conflict, named

__all__ = [
    "Conflict",
    "Shadow",
    "Snapshot",
    "Worktree",
    "named",
    "shadow_of",
]
