"""The chat world: an assistant that is always on, reached through channels."""

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
    """The standard tools, and a web search that explains how to set it up."""
    from denizen.tools.web_search import web_search_tool

    tools = {tool.name: tool for tool in standard_tools(parts)}
    tools.setdefault("web_search", web_search_tool(parts.config.web, parts.environ))
    if parts.config.section("gateway", GatewaySettings).hardware and "i2c" not in tools:
        _log.warning("gateway.hardware: i2c and spi are a plug-in now. Install denizen-hardware, remove the setting.")
    return [*tools.values()]


UNASKED = (Rule(tool="web_search", decide="allow"), Rule(tool="web_fetch", decide="allow"))
"""Nobody is present to approve each page; the rule of two still asks."""

WORLD = World(
    "gateway",
    Profile(
        "gateway", Native(), partial(Transcript, keep=4), _tools, CHAT, checkpoints=True, notes=True, rules=UNASKED
    ),
    settings=GatewaySettings,
    only_here=(
        "Only the gateway can continue it: the gateway has its tools and sends its reply. Start the gateway if it "
        "isn't running, and answer in the chat: /approve or /deny; /stop ends the turn. Then continue here."
    ),
    database=lambda config: config.section("gateway", GatewaySettings).database,
)


def profile_with(*tools: Tool) -> Profile:
    """The profile of a running gateway, with the tools of its own parts."""
    return replace(WORLD.profile, tools=lambda parts: [*_tools(parts), *tools])
