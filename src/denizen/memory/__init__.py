"""Memory: what the agent keeps beyond a session."""

from denizen.memory.long_term import LongTermMemory, open_memory

__all__ = ["LongTermMemory", "open_memory"]
