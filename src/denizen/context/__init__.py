"""Context policies: what a model sees of a session."""

from denizen.context.transcript import Transcript
from denizen.context.working_memory import WorkingMemory

__all__ = ["Transcript", "WorkingMemory"]
