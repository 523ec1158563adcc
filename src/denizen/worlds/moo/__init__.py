"""The text world: an autonomous character on a MOO server."""

from denizen.actions import Composed, Directives, Native
from denizen.context import RollingWindow
from denizen.runtime.clock import BackOff
from denizen.worlds.moo.settings import MooSettings
from denizen.worlds.world import Profile, World

WORLD = World(
    "moo",
    Profile(
        "denizen",
        Composed(Native(), Directives()),
        RollingWindow,
        tools=lambda _: [],  # they belong to a connection
        cooldown=BackOff(5.0, 20.0),
    ),
    settings=MooSettings,
)
