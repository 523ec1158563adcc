"""All the MCP servers of an agent."""

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from denizen.config.pins import Pins
from denizen.config.settings import McpServer
from denizen.errors import ConfigError, ToolRefused
from denizen.ports import Tool, ToolGuide
from denizen.runtime.clock import Clock
from denizen.tools.mcp.connection import McpConnection
from denizen.tools.mcp.listing import KnownPrompt, Listing, Pin, pin_name, visible
from denizen.tools.mcp.meta_tools import prompt_tool, resource_tool, search_tools
from denizen.tools.mcp.program import Program
from denizen.tools.mcp.remote import Remote, Tokens
from denizen.tools.mcp.tool import PROMPT, RESOURCE, SEARCH, McpTool, text_of, tools_of
from denizen.trusted.session_files import SessionFiles

_MAX_INSTRUCTIONS_CHARS = 8000
"""Characters of the instructions of all servers."""


class McpServers:
    """The servers of an agent, which its sessions share. None is started before it is needed; all end with `close`.

    What they have is known from the pins in the home; a server without one must be met first. Of more than `most_tools`
    tools the model is shown none, and searches them. What a request changes in `session_files` is set aside. Raises
    ConfigError for damaged pins.
    """

    def __init__(
        self,
        servers: Mapping[str, McpServer],
        session_files: SessionFiles,
        *,
        workspace: Path,
        environ: Mapping[str, str],
        clock: Clock,
        most_tools: int,
    ) -> None:
        self._most = most_tools
        home = session_files.home
        self._pins = Pins(home / "mcp", Pin)
        self._pin_names = {name: pin_name(name, each) for name, each in servers.items() if each.enabled}
        read = {name: self._pins.read(pinned) for name, pinned in self._pin_names.items()}
        self._known = {name: pin for name, pin in read.items() if pin}
        self.connections: dict[str, McpConnection] = {}
        connect = partial(McpConnection, clock=clock, workspace=workspace, session_files=session_files)
        for name in self._pin_names:
            each = servers[name]
            wire = Remote(name, each, Tokens(home, each.url, clock)) if each.url else Program(each, workspace, environ)
            self.connections[name] = connect(name, each, wire, listed=self._listed)

    @property
    def unmet(self) -> Sequence[str]:
        """The servers that nothing is known of."""
        return [name for name in self.connections if name not in self._known]

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
        """A server's current listing, and its pin. Raises ToolRefused."""
        return await self.connections[name].listing(), self._known[name]

    async def accept(self, name: str) -> None:
        """Accept what a server has now. Raises ToolRefused."""
        self._known[name] = pin = Pin(await self.connections[name].listing())
        self._pins.write(self._pin_names[name], pin)

    def notices(self) -> list[str]:
        """A sentence for each server that isn't what was accepted."""
        return [
            f"The MCP server {name} describes differently from what you accepted: {', '.join(pin.changed[:5])}. "
            f"What changed is held back. Look at it and accept it: denizen mcp trust {name}"
            for name, pin in self._known.items()
            if pin.found
        ]

    def tools(self) -> list[Tool]:
        """The tools of all servers that were met, and those to search them, and to read resources and prompts."""
        tools, accepted = self._tools(), self._accepted().items()
        resources = {name: self.connections[name] for name, listing in accepted if listing.resources}
        prompts = {name: self.connections[name] for name, listing in accepted if listing.prompts}
        return [
            *tools,
            *(search_tools(tools) if any(tool.deferred for tool in tools) else []),
            *([resource_tool(resources)] if resources else []),
            *([prompt_tool(prompts)] if prompts else []),
        ]

    def guides(self) -> list[ToolGuide]:
        """The accepted instructions of the servers that were met."""
        said = {name: words for name, listing in self._accepted().items() if (words := listing.instructions)}
        named = {name: {SEARCH, RESOURCE, PROMPT} for name in said}
        for tool in self._tools():
            named.get(tool.connection.name, set()).add(tool.name)
        most = _MAX_INSTRUCTIONS_CHARS // max(len(said), 1)
        return [ToolGuide(name, visible(words, most), named[name]) for name, words in said.items()]

    def prompts(self) -> dict[str, KnownPrompt]:
        """The prompts of the servers that were met, by how they are called: `SERVER:PROMPT`."""
        accepted = self._accepted().items()
        return {f"{name}:{prompt}": known for name, listing in accepted for prompt, known in listing.prompts.items()}

    async def prompt(self, server: str, name: str, words: str) -> str:
        """The text of a server's prompt; the words fill in its arguments, in order. Raises ToolRefused."""
        connection = self.connections[server]
        prompts = (await connection.listing()).prompts
        if (prompt := prompts.get(name)) is None:
            raise ToolRefused(f"the MCP server {server} has no prompt {name!r}; available: {', '.join(prompts)}")
        try:
            given = shlex.split(words)
        except ValueError as wrong:
            raise ToolRefused(f"{words!r} can't be split into words: {wrong}") from wrong
        if len(given) > len(prompt.arguments) or any([*prompt.arguments.values()][len(given) :]):
            raise ToolRefused(f"usage: /{server}:{name} {prompt.usage}".rstrip())
        arguments = dict(zip(prompt.arguments, given, strict=False))
        got = await connection.request(lambda client: client.get_prompt(name, arguments))
        return "\n\n".join(text_of(each.content) for each in got.messages)

    async def close(self) -> None:
        """Hang up at all servers; the programs among them have ended then."""
        await asyncio.gather(*(connection.close() for connection in self.connections.values()))

    def _accepted(self) -> dict[str, Listing]:
        return {name: self._known[name].accepted for name in self.connections if name in self._known}

    def _tools(self) -> list[McpTool]:
        accepted = self._accepted().items()
        known = [(self.connections[name], tool) for name, listing in accepted for tool in listing.tools.values()]
        return tools_of(known, deferred=len(known) > self._most)

    def _listed(self, name: str, now: Listing) -> None:
        """Compare what a server has now with its pin, which another process may have written meanwhile."""
        pin = self._pins.read(self._pin_names[name])
        self._known[name] = compared = pin.compared(now) if pin else Pin(now)
        if compared != pin:
            self._pins.write(self._pin_names[name], compared)
