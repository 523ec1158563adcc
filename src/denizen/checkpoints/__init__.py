"""The shadow repository: what the files were, so that everything the agent does to them can be undone."""

from denizen.checkpoints.differences import Difference
from denizen.checkpoints.history import Snapshot
from denizen.checkpoints.plan import Conflict, InTheWay, named
from denizen.checkpoints.shadow import Preview, Shadow, shadow_of

__all__ = ["Conflict", "Difference", "InTheWay", "Preview", "Shadow", "Snapshot", "named", "shadow_of"]
