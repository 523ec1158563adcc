"""Tools for all servers: to search and call tools if there are too many, and to read resources and prompts."""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import Schema, Tool, ToolContext, Traits
from denizen.tools.function import result, tool
from denizen.tools.mcp.connection import McpConnection
from denizen.tools.mcp.listing import pages
from denizen.tools.mcp.tool import (
    CALL,
    PROMPT,
    READING_TRAITS,
    RESOURCE,
    SEARCH,
    UNKNOWN_TRAITS,
    McpTool,
    parts_of,
    text_of,
)

if TYPE_CHECKING:
    from mcp.client import Client

_MAX_FOUND, _MAX_LISTED = 20, 200
_CALL_SCHEMA: Final = Schema(
    CALL,
    f"Call a tool that {SEARCH} has found.",
    {
        "type": "object",
        "properties": {
            "tool": {"type": "string", "description": "The tool's name."},
            "arguments": {"type": "object", "description": "Its arguments, as its schema wants them."},
        },
        "required": ["tool", "arguments"],
    },
)


def search_tools(tools: Sequence[McpTool]) -> list[Tool]:
    """`mcp_search` and `mcp_call`: to find one of many tools, and to call it."""
    return [_search(tools), _Call([each.name for each in tools])]


def _search(tools: Sequence[McpTool]) -> Tool:
    servers = ", ".join(dict.fromkeys(each.connection.name for each in tools))

    @tool(name=SEARCH, traits=Traits.READS | Traits.UNTRUSTED | Traits.REPEATABLE)
    def mcp_search(query: str, limit: int = 5) -> ToolResult:
        """Find tools.

        Args:
            query: What is to be done, in a few words; or the name of a tool. Empty: list the names of all.
            limit: How many.
        """
        if not query.strip():
            return result("\n".join(each.name for each in tools[:_MAX_LISTED]))
        words = set(re.findall(r"\w+", query.lower()))
        scored = [(_score(each, words, query), each) for each in tools]
        best = [each for score, each in sorted(scored, key=lambda pair: -pair[0]) if score]
        if not best:
            return result(f"No tool matches. The servers are {servers}; an empty query lists the names of all tools.")
        shown = best[: max(1, min(limit, _MAX_FOUND))]
        about = [
            f"{each.name}: {each.schema.description}\n"
            f"its arguments: {msgspec.json.encode(each.schema.parameters).decode()}"
            for each in shown
        ]
        return result("\n\n".join([*about, f"[{len(shown)} of {len(best)}; call one with {CALL}]"]))

    words = f"Find more tools ({len(tools)}, of the MCP servers {servers}), with their arguments; {CALL} calls them."
    mcp_search.schema = msgspec.structs.replace(mcp_search.schema, description=words[:1024])
    return mcp_search


def _score(each: McpTool, words: set[str], query: str) -> int:
    """How well a tool fits: words of its name count more than those of its description."""
    if query.strip() == each.name:
        return 1000
    name, text = each.name.lower(), each.schema.description.lower()
    return sum(3 * (word in name) + (word in text) for word in words)


class _Call:
    """Calls a tool that was found. What runs is the call of that tool: policy, traits and results are its own."""

    name = CALL
    shell_names: Sequence[str] = ()
    traits = UNKNOWN_TRAITS
    schema = _CALL_SCHEMA

    def __init__(self, tools: Sequence[str]) -> None:
        self._tools = tools

    def called(self, args: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
        """The tool that is meant, and its arguments."""
        name, arguments = args.get("tool"), args.get("arguments") or {}
        if isinstance(arguments, str):
            try:
                arguments = msgspec.json.decode(arguments)
            except msgspec.DecodeError:
                return None
        return (str(name), arguments) if name in self._tools and isinstance(arguments, dict) else None

    def check(self, args: dict[str, Any]) -> NoReturn:
        """Raises ToolRefused: a call that can be understood is another tool's."""
        if (name := args.get("tool")) in self._tools:
            raise ToolRefused(f"the arguments of {name} must be a JSON object")
        near = difflib.get_close_matches(str(name), self._tools, 1, 0.5)
        raise ToolRefused(f"unknown tool {name!r}{f'; did you mean {near[0]}?' if near else ''} Use {SEARCH}")

    async def run(self, args: dict[str, Any], turn: ToolContext) -> ToolResult:
        """Raises ToolRefused."""
        self.check(args)


def resource_tool(connections: Mapping[str, McpConnection]) -> Tool:
    """`mcp_resource`: what servers have to read."""

    @tool(name=RESOURCE, traits=READING_TRAITS)
    async def mcp_resource(server: str, turn: ToolContext, uri: str = "") -> ToolResult:
        """List what an MCP server has to read, or read one of it.

        Args:
            server: The server's name.
            uri: What to read; empty: list what there is.
        """
        from mcp_types import EmbeddedResource, Resource, ResourceTemplate

        async def listed(client: "Client") -> list[str]:
            there: list[tuple[str, Resource | ResourceTemplate]] = []
            async for page in pages(client.list_resources):
                there += [(each.uri, each) for each in page.resources]
            async for page in pages(client.list_resource_templates):
                there += [(each.uri_template, each) for each in page.resource_templates]
            return [f"{uri}  {each.title or each.name}" for uri, each in there]

        connection = _named(connections, server)
        if not uri:
            return result(_lines(await connection.request(listed, turn)))
        read = await connection.request(lambda client: client.read_resource(uri), turn)
        contents = [EmbeddedResource(type="resource", resource=each) for each in read.contents]
        return ToolResult("", "", await parts_of(contents, connection, turn))

    return mcp_resource


def prompt_tool(connections: Mapping[str, McpConnection]) -> Tool:
    """`mcp_prompt`: texts of servers that say how something is done."""

    @tool(name=PROMPT, traits=READING_TRAITS)
    async def mcp_prompt(
        server: str, turn: ToolContext, name: str = "", arguments: dict[str, str] | None = None
    ) -> ToolResult:
        """List the prompts of an MCP server, or get the text of one.

        Args:
            server: The server's name.
            name: The prompt; empty: list what there is.
            arguments: What it is to be filled in with.
        """
        connection = _named(connections, server)
        if name:
            got = await connection.request(lambda client: client.get_prompt(name, arguments), turn)
            return result("\n\n".join(f"{each.role}: {text_of(each.content)}" for each in got.messages))
        there = (await connection.listing()).prompts.values()
        return result(_lines([f"{each.name}({', '.join(each.arguments)})  {each.description}" for each in there]))

    return mcp_prompt


def _named(connections: Mapping[str, McpConnection], server: str) -> McpConnection:
    if server not in connections:
        raise ToolRefused(f"there is no MCP server {server!r} with that; available: {', '.join(connections)}")
    return connections[server]


def _lines(lines: Sequence[str]) -> str:
    more = f"\n[{len(lines) - _MAX_LISTED} more]" if len(lines) > _MAX_LISTED else ""
    return "\n".join(lines[:_MAX_LISTED]) + more or "(none)"
