"""All the MCP servers of an agent."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from denizen.clock import Clock
from denizen.config.settings import McpServer
from denizen.errors import ConfigError, ToolRefused
from denizen.ports import Tool, ToolGuide
from denizen.tools.mcp.connection import Connection, Wire
from denizen.tools.mcp.pins import KnownPrompt, Listing, Pin, Pins, visible
from denizen.tools.mcp.program import Program
from denizen.tools.mcp.remote import Remote
from denizen.tools.mcp.shared import prompt_of, prompt_tool, resource_tool, search_tools
from denizen.tools.mcp.tool import PROMPT, RESOURCE, SEARCH, McpTool, names_for, tools_of

_ALL_INSTRUCTIONS = 8000
"""Characters of the instructions of all servers."""


class McpServers:
    """The servers of an agent, which its sessions share. None is started before it is needed; all end with `close`.

    What they have is known from the pins in `home`; a server without one must be met first. Of more than `most_tools`
    tools the model is shown none, and searches them. Raises ConfigError for damaged pins.
    """

    def __init__(
        self,
        servers: Mapping[str, McpServer],
        *,
        home: Path,
        workspace: Path,
        environ: Mapping[str, str],
        clock: Clock,
        most_tools: int,
    ) -> None:
        self._servers = {name: each for name, each in servers.items() if each.enabled}
        self._most = most_tools
        self._pins = Pins(home)
        self._known: dict[str, Pin] = {}
        self.connections: dict[str, Connection] = {}
        for name, each in self._servers.items():
            wire: Wire = Remote(name, each, home, clock) if each.url else Program(each, workspace, environ)
            self.connections[name] = Connection(
                name,
                each,
                wire,
                clock=clock,
                workspace=workspace,
                listed=lambda found, name=name: self._listed(name, found),
            )
            if pin := self._pins.read(name, each):
                self._known[name] = pin

    @property
    def unmet(self) -> Sequence[str]:
        """The servers that nothing is known of."""
        return [name for name in self._servers if name not in self._known]

    async def meet(self) -> list[str]:
        """Ask those servers what they have, all at once; a sentence for each that fails."""

        async def ask(name: str) -> str:
            try:
                await self.connections[name].listing()
            except (ToolRefused, ConfigError) as why:
                return str(why)
            return ""

        return [why for why in await asyncio.gather(*map(ask, self.unmet)) if why]

    async def look(self, name: str) -> tuple[Listing, Pin]:
        """What a server has now, and its pin: what was accepted, and what differs. Raises ToolRefused."""
        return await self.connections[name].listing(), self._known[name]

    async def accept(self, name: str) -> None:
        """Accept what a server has now. Raises ToolRefused."""
        listing = await self.connections[name].listing()
        self._known[name] = self._pins.accept(name, self._servers[name], listing)

    def notices(self) -> list[str]:
        """A sentence for each server that isn't what was accepted."""
        changed = {name: ", ".join(pin.changed[:5]) for name, pin in self._known.items() if pin.found}
        return [
            f"The MCP server {name} describes differently from what you accepted: {what or 'none of its tools'}. "
            f"What changed is held back. Look at it and accept it: denizen mcp trust {name}"
            for name, what in changed.items()
        ]

    def tools(self) -> list[Tool]:
        """The tools of all servers that were met, and those to search them, and to read resources and prompts."""
        accepted, names = self._accepted(), self._names()
        found: list[McpTool] = []
        for name, listing in accepted.items():
            found += tools_of(self.connections[name], listing.tools, names)
        deferred = len(found) > self._most
        for tool in found:
            tool.deferred = deferred
        resources = {name: self.connections[name] for name, listing in accepted.items() if listing.resources}
        prompts = {name: self.connections[name] for name, listing in accepted.items() if listing.prompts}
        return [
            *found,
            *(search_tools(found) if deferred else []),
            *([resource_tool(resources)] if resources else []),
            *([prompt_tool(prompts)] if prompts else []),
        ]

    def guides(self) -> list[ToolGuide]:
        """What the servers that were met say of how they are used, as it was accepted."""
        names = self._names()
        saying = {name: listing for name, listing in self._accepted().items() if listing.instructions}
        return [
            ToolGuide(
                name,
                visible(listing.instructions, _ALL_INSTRUCTIONS // len(saying)),
                {SEARCH, RESOURCE, PROMPT, *(names[name, tool.name] for tool in listing.tools)},
            )
            for name, listing in saying.items()
        ]

    def prompts(self) -> dict[str, KnownPrompt]:
        """The prompts of the servers that were met, by how they are called: `SERVER:PROMPT`."""
        return {f"{name}:{each.name}": each for name, listing in self._accepted().items() for each in listing.prompts}

    async def prompt(self, server: str, name: str, words: str) -> str:
        """The text of a server's prompt, filled in with the words. Raises ToolRefused."""
        return await prompt_of(self.connections[server], name, words)

    async def close(self) -> None:
        """Hang up at all servers; the programs among them have ended then."""
        await asyncio.gather(*(connection.close() for connection in self.connections.values()))

    def _accepted(self) -> dict[str, Listing]:
        return {name: self._known[name].accepted for name in self._servers if name in self._known}

    def _names(self) -> dict[tuple[str, str], str]:
        return names_for((name, tool.name) for name, listing in self._accepted().items() for tool in listing.tools)

    def _listed(self, name: str, listing: Listing) -> None:
        self._known[name] = self._pins.compare(name, self._servers[name], listing)
