"""The shadow repository: what the files were, so that everything the agent does to them can be undone."""

from denizen.checkpoints.differences import Difference
from denizen.checkpoints.history import Snapshot
from denizen.checkpoints.restore import Conflict
from denizen.checkpoints.shadow import Shadow, shadow_of

__all__ = ["Conflict", "Difference", "Shadow", "Snapshot", "shadow_of"]
