"""The text world: an autonomous character on a MOO server."""

from denizen.actions import Composed, Directives, Native
from denizen.context import RollingWindow
from denizen.ports import Tool
from denizen.runtime.clock import BackOff
from denizen.worlds.moo.settings import MooSettings
from denizen.worlds.world import Profile, ToolParts, World


def _no_tools(parts: ToolParts) -> list[Tool]:
    """Outside of a world there is nothing to do."""
    return []


WORLD = World(
    "moo",
    Profile(
        "denizen",
        Composed(Native(), Directives()),
        RollingWindow,
        tools=_no_tools,
        cooldown=BackOff(5.0, 20.0),
    ),
    settings=MooSettings,
)
