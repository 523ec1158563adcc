"""A server's tools and prompts in its words, pinned as the user accepted them: descriptions can instruct the model."""

import hashlib
import unicodedata
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from denizen.config.settings import McpServer

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp_types import PaginatedResult

P = TypeVar("P", bound="PaginatedResult")

MAX_MESSAGE_BYTES = 16_000_000
"""Bytes of one message of a server."""
_MAX_PAGES, _MAX_ITEM_BYTES = 100, 50_000
"""Pages of a listing, and bytes of a tool or prompt in it; the rest is left out."""
_MAX_LISTING_BYTES = 4_000_000
"""Bytes of all of them: a pin, which may hold two listings, must be small enough to be read again."""
_MAX_INSTRUCTIONS_CHARS = 2000
"""Characters of them that the model reads."""


class KnownTool(msgspec.Struct, frozen=True):
    """A tool as its server describes it: `schema` is that of its arguments, `annotations` are hints."""

    name: str
    description: str
    schema: dict[str, Any]
    annotations: dict[str, Any] = {}

    @property
    def only_reads(self) -> bool:
        """Whether the server says that it changes nothing."""
        return self.annotations.get("readOnlyHint") is True


class KnownPrompt(msgspec.Struct, frozen=True):
    """A prompt as its server describes it; of its arguments, in order, whether they must be given."""

    name: str
    description: str = ""
    arguments: dict[str, bool] = {}

    @property
    def usage(self) -> str:
        """How the arguments are written: `path [focus]`."""
        return " ".join(name if required else f"[{name}]" for name, required in self.arguments.items())


class Listing(msgspec.Struct, frozen=True):
    """A server's tools and prompts by name; `instructions` are its own advice on their use."""

    tools: dict[str, KnownTool] = {}
    instructions: str = ""
    resources: bool = False
    prompts: dict[str, KnownPrompt] = {}


class Pin(msgspec.Struct, frozen=True):
    """The accepted listing, and the server's current one if that must still be accepted."""

    accepted: Listing
    found: Listing | None = None

    def compared(self, now: Listing) -> "Pin":
        """The pin of a server that has this now. What the model reads only when it asks for it needs no consent."""
        latest = msgspec.structs.replace(self.accepted, resources=now.resources, prompts=now.prompts)
        return Pin(latest, None if now == latest else now)

    @property
    def changed(self) -> list[str]:
        """The names of the tools that are described differently now, are new or are gone; and the instructions."""
        if self.found is None:
            return []
        old, new = self.accepted.tools, self.found.tools
        words = ["its instructions"] if self.found.instructions != self.accepted.instructions else []
        return [*words, *(name for name in {**old, **new} if old.get(name) != new.get(name))]


def pin_name(name: str, server: McpServer) -> str:
    """Another program or address under the same name is another server."""
    what = msgspec.json.encode([name, server.command, server.args, server.cwd, server.url])
    return hashlib.sha256(what).hexdigest()[:24]


async def listing_of(client: "Client") -> Listing:
    """A server's current listing. Raises the library's errors."""
    has, room = client.server_capabilities, _MAX_LISTING_BYTES
    tools, prompts = dict[str, KnownTool](), dict[str, KnownPrompt]()

    def fits(each: KnownTool | KnownPrompt) -> bool:
        nonlocal room
        size = len(msgspec.json.encode(each))
        fitting = size <= min(_MAX_ITEM_BYTES, room)
        room -= size * fitting
        return fitting

    async for page in pages(client.list_tools, has.tools):
        for each in page.tools:
            hints = each.annotations.model_dump(by_alias=True, exclude_none=True) if each.annotations else {}
            tool = KnownTool(each.name, each.description or each.title or "", each.input_schema, hints)
            if tool.name not in tools and fits(tool):
                tools[tool.name] = tool
    async for page in pages(client.list_prompts, has.prompts):
        for each in page.prompts:
            arguments = {argument.name: bool(argument.required) for argument in each.arguments or ()}
            prompt = KnownPrompt(each.name, each.description or each.title or "", arguments)
            if prompt.name not in prompts and fits(prompt):
                prompts[prompt.name] = prompt
    resources = [page.resources async for page in pages(client.list_resources, has.resources)]
    templates = [page.resource_templates async for page in pages(client.list_resource_templates, has.resources)]
    instructions = visible(client.instructions or "", _MAX_INSTRUCTIONS_CHARS)
    return Listing(tools, instructions, any([*resources, *templates]), prompts)


async def pages(ask: Callable[..., Awaitable[P]], has: object = True) -> AsyncGenerator[P]:
    """The pages of a listing; none if a server knows no such request, whatever it says it can do."""
    from mcp import MCPError
    from mcp_types import METHOD_NOT_FOUND

    cursor: str | None = None
    for _ in range(_MAX_PAGES if has else 0):
        try:
            page = await ask(cursor=cursor)
        except MCPError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            return
        yield page
        if not (cursor := page.next_cursor):
            return


def visible(text: str, most: int) -> str:
    """The text without characters that nobody sees, and a model reads; cut to so many."""
    text = "".join(each for each in text if each in "\n\t" or unicodedata.category(each)[0] != "C").strip()
    return text if len(text) <= most else f"{text[: most - 1]}…"
