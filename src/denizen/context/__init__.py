"""Context policies: what a model sees of a session."""

from denizen.context.rolling_window import RollingWindow, as_shown
from denizen.context.transcript import Transcript
from denizen.context.working_memory import WorkingMemory

__all__ = ["RollingWindow", "Transcript", "WorkingMemory", "as_shown"]
