"""The shadow repository: what the files were, so that everything the agent does to them can be undone."""

from denizen.checkpoints.differences import Difference
from denizen.checkpoints.history import Snapshot
from denizen.checkpoints.plan import Conflict, InTheWay, named
from denizen.checkpoints.shadow import Preview, Shadow, shadow_of
from denizen.checkpoints.worktree import Worktree

__all__ = ["Conflict", "Difference", "InTheWay", "Preview", "Shadow", "Snapshot", "Worktree", "named", "shadow_of"]
