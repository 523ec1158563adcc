"""How a model acts: action formats."""

from denizen.actions.native import Native

__all__ = ["Native"]
