"""What the agent keeps beyond a session."""

from denizen.memory.notes import Notes
from denizen.memory.recollection import Recollection, open_memory

__all__ = ["Notes", "Recollection", "open_memory"]
