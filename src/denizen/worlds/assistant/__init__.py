"""The assistant: a person's helper at a terminal."""

from denizen.actions import Native
from denizen.context import Transcript
from denizen.worlds.world import Profile, World

WORLD = World("assistant", Profile("assistant", Native(), Transcript, notes=True))
