"""How a turn is steered: drivers."""

from denizen.engine.drivers.find import DRIVERS, NewDriver, find_driver, with_tools_of
from denizen.engine.drivers.planning import Planning
from denizen.engine.drivers.reflective import Reflective
from denizen.engine.drivers.simple import Simple
from denizen.engine.drivers.watched import Watched

__all__ = ["DRIVERS", "NewDriver", "Planning", "Reflective", "Simple", "Watched", "find_driver", "with_tools_of"]
