"""How a model acts: action formats."""

from denizen.actions.composed import Composed
from denizen.actions.native import Native
from denizen.actions.once import Once
from denizen.actions.recovery import Recovered, recover_calls
from denizen.actions.shell import Shell
from denizen.actions.written import AsWritten

__all__ = ["AsWritten", "Composed", "Native", "Once", "Recovered", "Shell", "recover_calls"]
