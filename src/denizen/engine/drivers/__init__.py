"""How a turn is steered: drivers."""

from denizen.engine.drivers.simple import Simple

__all__ = ["Simple"]
