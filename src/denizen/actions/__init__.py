"""How a model acts: action formats."""

from denizen.actions.composed import Composed
from denizen.actions.directives import Directives
from denizen.actions.native import Native
from denizen.actions.recovery import Recovered, recover_calls
from denizen.actions.shell import Shell

__all__ = ["Composed", "Directives", "Native", "Recovered", "Shell", "recover_calls"]
