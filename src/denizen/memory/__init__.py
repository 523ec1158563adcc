"""Memory: what the agent keeps beyond a session."""

from denizen.memory.long_term import LongTermMemory, open_memory
from denizen.memory.notes import Notes

__all__ = ["LongTermMemory", "Notes", "open_memory"]
