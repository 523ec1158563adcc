"""Context policies: what a model sees of a session."""

from denizen.context.rolling_window import RollingWindow
from denizen.context.transcript import Transcript
from denizen.context.working_memory import WorkingMemory

__all__ = ["RollingWindow", "Transcript", "WorkingMemory"]
