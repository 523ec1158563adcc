"""What the agent keeps beyond a session."""

from denizen.memory.notes import Notes

__all__ = ["Notes"]
