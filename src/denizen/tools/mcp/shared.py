"""The tools for all servers: searching and calling where there are too many, resources, prompts."""

import difflib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import Schema, Tool, ToolContext, Traits
from denizen.tools.function import result, tool
from denizen.tools.mcp.connection import Connection, pages
from denizen.tools.mcp.tool import CALL, PROMPT, READS, RESOURCE, SEARCH, UNKNOWN, McpTool, text_of

if TYPE_CHECKING:
    from mcp.client import Client

_MOST_FOUND, _MOST_LISTED = 20, 200


def search_tools(tools: Sequence[McpTool]) -> list[Tool]:
    """`mcp_search` and `mcp_call`: to find one of many tools, and to call it."""
    return [_search(tools), _Call({each.name: each for each in tools})]


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
            return result("\n".join(each.name for each in tools[:_MOST_LISTED]))
        words = set(re.findall(r"\w+", query.lower()))
        scores = {each.name: _score(each, words, query) for each in tools}
        best = sorted((each for each in tools if scores[each.name]), key=lambda each: -scores[each.name])
        if not best:
            return result(f"No tool matches. The servers are {servers}; an empty query lists the names of all tools.")
        shown = best[: max(1, min(limit, _MOST_FOUND))]
        schemas = [msgspec.json.encode(each.schema.parameters).decode() for each in shown]
        about = [
            f"{each.name}: {each.schema.description}\nits arguments: {schema}"
            for each, schema in zip(shown, schemas, strict=True)
        ]
        return result("\n\n".join([*about, f"[{len(shown)} of {len(best)}; call one with {CALL}]"]))

    described = (
        f"Find more tools ({len(tools)}, of the MCP servers {servers}), with their arguments; {CALL} calls them."
    )
    mcp_search.schema = msgspec.structs.replace(mcp_search.schema, description=described[:1024])
    return mcp_search


def _score(each: McpTool, words: set[str], query: str) -> float:
    """How well a tool fits: words of its name count more than those of its description."""
    if query.strip() == each.name:
        return 1000.0
    name, text = each.name.lower(), each.schema.description.lower()
    return sum(3.0 * (word in name) + 1.0 * (word in text) for word in words)


@dataclass(slots=True, eq=False)
class _Call:
    """Calls a tool that was found. What runs is the call of that tool: policy, traits and results are its own."""

    tools: Mapping[str, McpTool]
    name: str = CALL
    shell_names: Sequence[str] = ()
    traits: Traits = UNKNOWN
    schema: Schema = Schema(  # noqa: RUF009 (it never changes)
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

    def called(self, args: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
        """The tool that is meant, and its arguments."""
        name, arguments = args.get("tool"), args.get("arguments") or {}
        if isinstance(arguments, str):  # as JSON text
            try:
                arguments = msgspec.json.decode(arguments)
            except msgspec.DecodeError:
                return None
        return (
            (name, arguments) if isinstance(name, str) and name in self.tools and isinstance(arguments, dict) else None
        )

    def check(self, args: dict[str, Any]) -> None:
        """Raises ToolRefused: a call that can be understood is another tool's."""
        name = args.get("tool")
        if not isinstance(name, str) or name not in self.tools:
            near = difflib.get_close_matches(str(name), self.tools, 1, 0.5)
            raise ToolRefused(f"there is no tool {name!r}{f'; did you mean {near[0]}?' if near else ''} Use {SEARCH}")
        raise ToolRefused(f"the arguments of {name} must be a JSON object")

    async def run(self, args: dict[str, Any], turn: ToolContext) -> ToolResult:
        """Raises ToolRefused."""
        self.check(args)
        raise AssertionError("check always raises")


def resource_tool(connections: Mapping[str, Connection]) -> Tool:
    """`mcp_resource`: what servers have to read."""

    @tool(name=RESOURCE, traits=READS)
    async def mcp_resource(server: str, turn: ToolContext, uri: str = "") -> ToolResult:
        """List what an MCP server has to read, or read one of it.

        Args:
            server: The server's name.
            uri: What to read; empty: list what there is.
        """
        from mcp_types import TextResourceContents

        connection = _named(connections, server)
        if uri:
            read = await connection.request(lambda client: client.read_resource(uri), turn)
            texts = [
                each.text if isinstance(each, TextResourceContents) else f"[{each.mime_type or 'data'}: not text]"
                for each in read.contents
            ]
            return result("\n".join(texts))

        async def listed(client: "Client") -> list[str]:
            there = [each async for page in pages(client.list_resources) for each in page.resources]
            patterns = [
                each async for page in pages(client.list_resource_templates) for each in page.resource_templates
            ]
            lines = [f"{each.uri}  {each.title or each.name}" for each in there]
            return lines + [f"{each.uri_template}  {each.title or each.name}" for each in patterns]

        return result(_lines(await connection.request(listed, turn)))

    return mcp_resource


async def prompt_of(connection: Connection, name: str, words: str) -> str:
    """A prompt's text; the words fill in its arguments, in order. Raises ToolRefused, with what there is."""
    listing = await connection.listing()
    prompt = listing.prompt(name)
    if prompt is None:
        there = ", ".join(each.name for each in listing.prompts)
        raise ToolRefused(f"the MCP server {connection.name} has no prompt {name!r}; there is: {there}")
    try:
        given = shlex.split(words)
    except ValueError as wrong:
        raise ToolRefused(f"{words!r} can't be split into words: {wrong}") from wrong
    if len(given) > len(prompt.arguments) or any([*prompt.arguments.values()][len(given) :]):
        raise ToolRefused(f"this prompt is called so: /{connection.name}:{name} {prompt.usage}".rstrip())
    arguments = dict(zip(prompt.arguments, given, strict=False))
    got = await connection.request(lambda client: client.get_prompt(name, arguments))
    return "\n\n".join(text_of(each.content) for each in got.messages)


def prompt_tool(connections: Mapping[str, Connection]) -> Tool:
    """`mcp_prompt`: texts of servers that say how something is done."""

    @tool(name=PROMPT, traits=READS)
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
        there = (await connection.listing()).prompts
        return result(_lines(f"{each.name}({', '.join(each.arguments)})  {each.description}" for each in there))

    return mcp_prompt


def _named(connections: Mapping[str, Connection], server: str) -> Connection:
    if server not in connections:
        raise ToolRefused(f"there is no MCP server {server!r} with that; there is: {', '.join(connections)}")
    return connections[server]


def _lines(lines: Any) -> str:
    every = [*lines]
    more = f"\n[{len(every) - _MOST_LISTED} more]" if len(every) > _MOST_LISTED else ""
    return "\n".join(every[:_MOST_LISTED]) + more or "(none)"
