"""The chat world: an assistant that is always there, and reached through channels."""

from dataclasses import replace
from functools import partial

from denizen.actions import Native
from denizen.config.settings import Rule
from denizen.context import Transcript
from denizen.ports import Tool
from denizen.prompt.texts import CHAT
from denizen.worlds.chat.settings import GatewaySettings
from denizen.worlds.world import Profile, ToolParts, World, standard_tools


def _tools(parts: ToolParts) -> list[Tool]:
    """Those that every agent has, a web search that says how to set it up, and hardware where that is wanted."""
    from denizen.tools.hardware import i2c_tool, spi_tool
    from denizen.tools.web_search import web_search_tool

    tools = {tool.name: tool for tool in standard_tools(parts)}
    tools.setdefault("web_search", web_search_tool(parts.config.web, parts.environ))
    wants_hardware = parts.config.section("gateway", GatewaySettings).hardware
    return [*tools.values(), *((i2c_tool(), spi_tool()) if wants_hardware else ())]


UNASKED = (Rule(tool="web_search", decide="allow"), Rule(tool="web_fetch", decide="allow"))
"""Nobody sits there to be asked about each page; the rule of two still asks."""

WORLD = World(
    "gateway",
    Profile("gateway", Native(), partial(Transcript, keep=4), tools=_tools, identity=CHAT, notes=True, rules=UNASKED),
    settings=GatewaySettings,
    only_here=(
        "Only the gateway can go on with it: it has the tools, and sends the reply. Start it if it doesn't run, and "
        "answer in the chat: /approve or /deny; /stop ends the turn. Then go on here."
    ),
)


def profile_with(*tools: Tool) -> Profile:
    """The profile of a gateway that runs: these are the tools that its own parts lend to the agent."""
    return replace(WORLD.profile, tools=lambda parts: [*_tools(parts), *tools])
