"""The chat world: an assistant that is always there, and reached through channels."""

import logging
from dataclasses import replace
from functools import partial

from denizen.actions import Native
from denizen.config.settings import Rule
from denizen.context import Transcript
from denizen.ports import Tool
from denizen.prompt.texts import CHAT
from denizen.worlds.chat.settings import GatewaySettings
from denizen.worlds.world import Profile, ToolParts, World, standard_tools

_log = logging.getLogger(__name__)


def _tools(parts: ToolParts) -> list[Tool]:
    """The standard tools, and a web search that says how to set it up."""
    from denizen.tools.web_search import web_search_tool

    tools = {tool.name: tool for tool in standard_tools(parts)}
    tools.setdefault("web_search", web_search_tool(parts.config.web, parts.environ))
    if parts.config.section("gateway", GatewaySettings).hardware and "i2c" not in tools:
        _log.warning("gateway.hardware: i2c and spi are a plug-in now. Install denizen-hardware, remove the setting.")
    return [*tools.values()]


UNASKED = (Rule(tool="web_search", decide="allow"), Rule(tool="web_fetch", decide="allow"))
"""Nobody sits there to be asked about each page; the rule of two still asks."""

WORLD = World(
    "gateway",
    Profile(
        "gateway", Native(), partial(Transcript, keep=4), _tools, CHAT, checkpoints=True, notes=True, rules=UNASKED
    ),
    settings=GatewaySettings,
    only_here=(
        "Only the gateway can go on with it: it has the tools, and sends the reply. Start it if it doesn't run, and "
        "answer in the chat: /approve or /deny; /stop ends the turn. Then go on here."
    ),
    database=lambda config: config.section("gateway", GatewaySettings).database,
)


def profile_with(*tools: Tool) -> Profile:
    """The profile of a gateway that runs: these are the tools that its own parts lend to the agent."""
    return replace(WORLD.profile, tools=lambda parts: [*_tools(parts), *tools])
