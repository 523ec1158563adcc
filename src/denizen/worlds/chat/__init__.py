"""The chat world: an assistant that is always there, and reached through channels."""

from functools import partial

from denizen.actions import Native
from denizen.context import Transcript
from denizen.prompt.texts import CHAT
from denizen.worlds.chat.settings import GatewaySettings
from denizen.worlds.world import Profile, World

WORLD = World(
    "gateway",
    Profile("gateway", Native(), partial(Transcript, keep=4), identity=CHAT, notes=True),
    settings=GatewaySettings,
)
