"""How a model acts: action formats."""

from denizen.actions.native import Native
from denizen.actions.once import Once

__all__ = ["Native", "Once"]
