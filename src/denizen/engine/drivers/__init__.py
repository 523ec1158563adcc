"""How a turn is steered: drivers."""

from denizen.engine.drivers.planning import Planning
from denizen.engine.drivers.reflective import Reflective
from denizen.engine.drivers.simple import Simple
from denizen.engine.drivers.watched import Watched

__all__ = ["Planning", "Reflective", "Simple", "Watched"]
