"""A server's tool as one of ours, and its results as messages."""

import asyncio
import base64
import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import msgspec

from denizen.errors import ConfigError, ToolRefused
from denizen.messages import Image, Text, ToolResult, UserPart
from denizen.ports import EFFECTS, Schema, ToolContext, Traits
from denizen.text.documents import is_pdf, read_pages
from denizen.tools.accepted import MAX_DESCRIPTION_CHARS, accepted_names, accepted_schema
from denizen.tools.mcp.connection import McpConnection
from denizen.tools.mcp.listing import KnownTool, visible

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import ContentBlock, ReadResourceResult

UNKNOWN_TRAITS = (
    Traits.WRITES | Traits.EXECUTES | Traits.NETWORK | Traits.SENDS | Traits.PRIVATE | Traits.UNTRUSTED | Traits.CHANGES
)  # whatever it does
READING_TRAITS = (UNKNOWN_TRAITS & ~EFFECTS) | Traits.READS
"""Traits of a tool that claims only to read: it is still asked about, because by default all `NETWORK` calls are."""

SEARCH, CALL, RESOURCE, PROMPT = "mcp_search", "mcp_call", "mcp_resource", "mcp_prompt"
"""The tools for all servers."""

_MAX_PROGRESS_LINES = 200
"""Lines of progress of one call."""
_MAX_IMAGE_BYTES = 5_000_000  # bytes
_MAX_DOCUMENT_CHARS = 40_000  # of a document's text
_MAX_LINKS = 3  # of one result that are followed


@dataclass(slots=True, eq=False)
class McpTool:
    """A tool of a server, as it was accepted; `deferred`: the model finds it by searching."""

    connection: McpConnection
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
        parts = await parts_of(result.content, self.connection, turn)
        if not result.content and result.structured_content is not None:
            parts[:] = [Text(msgspec.json.encode(result.structured_content).decode())]
        return ToolResult(turn.call_id, self.name, parts, is_error=result.is_error)


def tools_of(known: Sequence[tuple[McpConnection, KnownTool]], *, deferred: bool) -> list[McpTool]:
    """The tools of servers as ours."""
    names = names_for((connection.name, tool.name) for connection, tool in known)
    made: list[McpTool] = []
    for connection, tool in known:
        name = names[connection.name, tool.name]
        described = accepted_schema(name, visible(tool.description, MAX_DESCRIPTION_CHARS) or tool.name, tool.schema)
        made.append(McpTool(connection, tool, name, described, _traits_of(tool, connection.settings.traits), deferred))
    return made


def _traits_of(tool: KnownTool, of_server: Sequence[str] | None) -> Traits:
    """The traits that the user gives the server's tools, else all except those that the tool disclaims."""
    if of_server is not None:
        return reduce(or_, (Traits[each.upper()] for each in of_server), Traits.NONE)
    if tool.only_reads:
        return READING_TRAITS
    return UNKNOWN_TRAITS & ~Traits.CHANGES if tool.annotations.get("destructiveHint") is False else UNKNOWN_TRAITS


def names_for(tools: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Names for tools, given by server and name: `mcp_SERVER_TOOL` as far as that is valid and means one tool alone."""
    keys = {tool: "/".join(tool) for tool in tools}
    plain = {key: re.sub(r"[^a-z0-9]+", "_", f"mcp_{key}".lower()).strip("_") for key in keys.values()}
    names = accepted_names(plain, (SEARCH, CALL, RESOURCE, PROMPT))
    return {tool: names[key] for tool, key in keys.items()}


def text_of(block: "ContentBlock") -> str:
    """A block of content as text; other kinds are named."""
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


async def parts_of(blocks: "Sequence[ContentBlock]", connection: McpConnection, turn: ToolContext) -> list[UserPart]:
    """A server's content: pictures and documents, then the texts; a link to a PDF document is followed."""
    from mcp_types import BlobResourceContents, EmbeddedResource, ImageContent, ResourceLink

    parts: list[UserPart] = []
    texts: list[str] = []
    waiting, links = [*blocks], _MAX_LINKS
    while waiting:
        block = waiting.pop(0)
        match block:
            case ImageContent(data=data, mime_type=media_type):
                parts += _picture(media_type, data, texts)
            case EmbeddedResource(resource=BlobResourceContents(blob=data, mime_type=str(kind))) if kind.startswith(
                "image/"
            ):
                parts += _picture(kind, data, texts)
            case EmbeddedResource(resource=BlobResourceContents(blob=data, uri=uri)):
                parts += await asyncio.to_thread(_file, uri, data, text_of(block), texts)
            case ResourceLink(mime_type="application/pdf", uri=uri) if links:
                links -= 1
                try:
                    read = await connection.request(partial(_read, uri), turn)
                    waiting[:0] = [EmbeddedResource(type="resource", resource=each) for each in read.contents]
                except ToolRefused as why:
                    texts.append(f"{text_of(block)} ({why})")
            case _:
                texts.append(text_of(block))
    return [*parts, Text("\n".join(texts) or ("" if blocks else "(no output)"))]


async def _read(uri: str, client: "Client") -> "ReadResourceResult":
    return await client.read_resource(uri)


def _picture(media_type: str, data: str, notes: list[str]) -> list[UserPart]:
    if len(data) * 3 // 4 > _MAX_IMAGE_BYTES:
        notes.append("[a picture of more than 5 MB, left out]")
        return []
    try:
        return [Image(media_type, base64.b64decode(data, validate=True))]
    except ValueError:
        notes.append("[a picture that is damaged]")
        return []


def _file(uri: str, data: str, otherwise: str, notes: list[str]) -> list[UserPart]:
    """A document; the text of a file goes to the notes, as does what else there is to say."""
    try:
        content = base64.b64decode(data, validate=True)
        if is_pdf(content):
            document, end, count = read_pages(
                content, _name(uri), (1, None), most=_MAX_DOCUMENT_CHARS, stop=threading.Event()
            )
            notes += [f"[{uri}: only pages 1 to {end} of {count} are shown]"] if end < count else []
            return [document]
        text = content.decode()
    except ConfigError as why:
        otherwise = f"[{uri}: {why}]"
    except ValueError:  # neither base64 nor text
        pass
    else:
        otherwise = otherwise if "\0" in text else f"[{uri}]\n{text}"
    notes.append(otherwise)
    return []


def _name(uri: str) -> str:
    """A file's name, from its address."""
    return visible(unquote(urlsplit(uri).path).rpartition("/")[2], 100) or "document.pdf"


def _progress(turn: ToolContext) -> "ProgressFnT":
    left = _MAX_PROGRESS_LINES

    async def show(progress: float, total: float | None, message: str | None) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            done = f"{progress:g}/{total:g}" if total else f"{progress:g}"
            turn.emit(f"{done} {visible(message or '', 200)}".rstrip() + "\n")

    return show
