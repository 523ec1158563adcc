"""What a model sees: context policies."""

from denizen.context.transcript import Transcript
from denizen.context.working_memory import WorkingMemory

__all__ = ["Transcript", "WorkingMemory"]
