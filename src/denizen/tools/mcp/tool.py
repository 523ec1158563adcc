"""A server's tool as one of ours, and its results as messages."""

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from denizen.errors import ToolRefused
from denizen.messages import Image, Text, ToolResult, UserPart
from denizen.ports import Schema, ToolContext, Traits
from denizen.tools.mcp.connection import Connection
from denizen.tools.mcp.listing import KnownTool, visible

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import CallToolResult, ContentBlock

UNKNOWN = (
    Traits.WRITES | Traits.EXECUTES | Traits.NETWORK | Traits.SENDS | Traits.PRIVATE | Traits.UNTRUSTED
)  # whatever it does
READS = Traits.READS | Traits.NETWORK | Traits.PRIVATE | Traits.UNTRUSTED
"""What is believed of a tool that says it only reads: it is still asked about, as by default all that is `NETWORK`."""

SEARCH, CALL, RESOURCE, PROMPT = "mcp_search", "mcp_call", "mcp_resource", "mcp_prompt"
"""The tools for all servers."""

_LONGEST_NAME, _LONGEST_DESCRIPTION = 64, 1024  # characters that every provider takes
_MOST_SHOWN = 200
"""Lines of progress of one call."""
_LARGEST_IMAGE = 5_000_000  # bytes
_AT_THE_TOP = {"$schema", "$id", "anyOf", "oneOf", "allOf", "not"}
"""Of a schema, what providers refuse there."""


@dataclass(slots=True, eq=False)
class McpTool:
    """A tool of a server, as it was accepted; `deferred`: the model finds it by searching."""

    connection: Connection
    known: KnownTool
    name: str
    schema: Schema
    traits: Traits
    deferred: bool = False
    shell_names: Sequence[str] = ()

    async def run(self, args: dict[str, Any], turn: ToolContext) -> ToolResult:
        """Let the server do it. Raises ToolRefused, also when it describes the tool differently by now."""
        server = self.connection.name
        now = (await self.connection.listing()).tools.get(self.known.name)
        if now is None:
            raise ToolRefused(f"the MCP server {server} has no tool {self.known.name} any more")
        if now != self.known:
            raise ToolRefused(
                f"{self.name} is held back: the MCP server {server} describes it differently from what the user "
                f"accepted. They can look at it and accept it: denizen mcp trust {server}"
            )
        progress = _progress(turn)
        result = await self.connection.request(
            lambda client: client.call_tool(self.known.name, args, progress_callback=progress), turn
        )
        return ToolResult(turn.call_id, self.name, [*_parts(result)], is_error=result.is_error)


def tools_of(known: Sequence[tuple[Connection, KnownTool]], *, deferred: bool) -> list[McpTool]:
    """The tools of servers as ours."""
    names = names_for((connection.name, tool.name) for connection, tool in known)
    made: list[McpTool] = []
    for connection, tool in known:
        name = names[connection.name, tool.name]
        schema: dict[str, Any] = {"type": "object", "properties": dict[str, Any]()}
        schema |= {key: value for key, value in tool.schema.items() if key not in _AT_THE_TOP}
        described = Schema(name, visible(tool.description, _LONGEST_DESCRIPTION) or tool.name, schema)
        made.append(McpTool(connection, tool, name, described, READS if tool.only_reads else UNKNOWN, deferred))
    return made


def names_for(tools: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Names for tools, given by server and name: `mcp_SERVER_TOOL` as far as that is valid and means one tool alone."""
    plain = {tool: re.sub(r"[^a-z0-9]+", "_", f"mcp_{tool[0]}_{tool[1]}".lower()).strip("_") for tool in tools}
    taken = Counter([SEARCH, CALL, RESOURCE, PROMPT, *plain.values()])

    def unique(tool: tuple[str, str], name: str) -> str:
        if taken[name] == 1 and len(name) <= _LONGEST_NAME:
            return name
        return f"{name[: _LONGEST_NAME - 7]}_{hashlib.sha256('/'.join(tool).encode()).hexdigest()[:6]}"

    return {tool: unique(tool, name) for tool, name in plain.items()}


def text_of(block: "ContentBlock") -> str:
    """A block of content as text; of what is none, what it is."""
    from mcp_types import EmbeddedResource, ResourceLink, TextContent, TextResourceContents

    match block:
        case TextContent(text=text):
            return text
        case EmbeddedResource(resource=TextResourceContents(uri=uri, text=text)):
            return f"[{uri}]\n{text}"
        case EmbeddedResource(resource=resource):
            return f"[{resource.uri}: {resource.mime_type or 'data'}, which isn't text]"
        case ResourceLink(uri=uri, name=name, description=about):
            return f"[resource {name}: {uri}]{f' {about}' if about else ''}"
        case _:
            return f"[{block.type}, which can't be shown]"


def _parts(result: "CallToolResult") -> Iterator[UserPart]:
    from mcp_types import ImageContent

    blocks, texts = result.content, list[str]()
    for block in blocks:
        if isinstance(block, ImageContent) and block.mime_type.startswith("image/"):
            if len(block.data) * 3 // 4 > _LARGEST_IMAGE:
                texts.append("[a picture of more than 5 MB, left out]")
                continue
            try:
                yield Image(block.mime_type, base64.b64decode(block.data, validate=True))
            except ValueError:
                texts.append("[a picture that is damaged]")
        else:
            texts.append(text_of(block))
    if not blocks and result.structured_content is not None:
        texts.append(msgspec.json.encode(result.structured_content).decode())
    yield Text("\n".join(texts) or ("" if blocks else "(no output)"))


def _progress(turn: ToolContext) -> "ProgressFnT":
    left = _MOST_SHOWN

    async def show(progress: float, total: float | None, message: str | None) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            done = f"{progress:g}/{total:g}" if total else f"{progress:g}"
            turn.emit(f"{done} {visible(message or '', 200)}".rstrip() + "\n")

    return show
