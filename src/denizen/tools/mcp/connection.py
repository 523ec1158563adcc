"""The connection to one server: made when it is first needed, shared by all sessions, made again when it is lost."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from denizen.clock import Clock
from denizen.config.settings import McpServer
from denizen.errors import ToolRefused
from denizen.ports import ToolContext
from denizen.tools.mcp.asking import elicit
from denizen.tools.mcp.pins import KnownPrompt, KnownTool, Listing, visible

if TYPE_CHECKING:
    from mcp.client import Client, ClientRequestContext, IncomingMessage
    from mcp.client._transport import TransportStreams
    from mcp_types import ElicitRequestParams, ElicitResult, ListRootsResult, PaginatedResult

T = TypeVar("T")
P = TypeVar("P", bound="PaginatedResult")

_MOST_PAGES, _MOST, _LARGEST = 100, 1000, 50_000
"""Pages of a listing, tools and prompts of it, and bytes of one; the rest is left out."""
_LARGEST_LISTING = 4_000_000
"""Bytes of all of them: a pin, which may hold two, must be small enough to be read again."""
_LONGEST_INSTRUCTIONS = 2000
"""Characters of them that the model reads."""
_MOST_RESTING = 60.0
"""Seconds after a failure before the next try, at most."""
_LONGEST_WORDS = 600
"""Characters of a server's own words in an error."""


class Wire(Protocol):
    """How the bytes get there and back."""

    def open(self, over: asyncio.Event) -> "AbstractAsyncContextManager[TransportStreams]":
        """Connect meanwhile; `over` is set when the connection is lost."""
        ...

    def trouble(self) -> str:
        """What it shows of what is wrong, besides the error; may be empty."""
        ...


@dataclass(eq=False)
class _Call:
    """A request that runs for a turn. While the person is asked its time stands still; when it is over nobody is."""

    turn: ToolContext | None
    limit: asyncio.Timeout
    seconds: float
    asking: "asyncio.Task[ElicitResult] | None" = None
    over: bool = False

    async def ask(self, question: "Coroutine[Any, Any, ElicitResult]") -> "ElicitResult | None":
        """The answer; None: the request is over."""
        self.limit.reschedule(None)
        asking = self.asking = asyncio.create_task(question)
        try:
            await asyncio.wait([asking])
        finally:
            asking.cancel()
        if asking.cancelled() or self.over:
            return None
        self.limit.reschedule(asyncio.get_running_loop().time() + self.seconds)
        return asking.result()


_CURRENT: ContextVar[_Call | None] = ContextVar("mcp_call", default=None)


class Connection:
    """A server by its name. `listed` hears what it has, whenever that is listed."""

    def __init__(
        self,
        name: str,
        settings: McpServer,
        wire: Wire,
        *,
        clock: Clock,
        workspace: Path,
        listed: Callable[[Listing], object] = lambda listing: None,
    ) -> None:
        self.name = name
        self._settings = settings
        self._wire = wire
        self._clock = clock
        self._workspace = workspace
        self._listed = listed
        self._task: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._calls: list[_Call] = []
        self._listing = Listing()
        self._changes = self._listed_changes = 0
        self._failures, self._rest_until, self._why = 0, 0.0, ""

    async def listing(self) -> Listing:
        """What the server has now. Raises ToolRefused."""
        client = await self._connected()
        if self._changes != self._listed_changes:
            await self._request(self._list, client)
        return self._listing

    async def request(self, ask: "Callable[[Client], Awaitable[T]]", turn: ToolContext | None = None) -> T:
        """Ask the server something, for a turn. Raises ToolRefused, with what the server said where it said no."""
        return await self._request(ask, await self._connected(), turn)

    async def close(self) -> None:
        """Hang up; a program has ended then."""
        task, self._task = self._task, None
        if task:
            self._over.set()
            if not self._ready.done():  # nobody waits for a slow start any more
                task.cancel()
            await asyncio.wait([task])

    async def _request(
        self, ask: "Callable[[Client], Awaitable[T]]", client: "Client", turn: ToolContext | None = None
    ) -> T:
        seconds = self._settings.timeout
        try:
            async with asyncio.timeout(seconds) as limit:
                call = _Call(turn, limit, seconds)
                self._calls.append(call)
                mark = _CURRENT.set(call)
                try:
                    answer = await ask(client)
                finally:
                    _CURRENT.reset(mark)
                    self._calls.remove(call)
                    call.over = True
                    if call.asking:
                        call.asking.cancel()
        except TimeoutError:
            if not self._calls:  # it may hang, and nobody else is being served
                self._over.set()
            raise ToolRefused(f"the MCP server {self.name} gave no answer within {seconds:g} s") from None
        except ToolRefused:
            raise
        except Exception as error:  # the boundary to the server and its library: whatever it is, the model must know
            raise ToolRefused(await self._reason(error)) from error
        self._failures = 0
        return answer

    async def _reason(self, error: Exception) -> str:
        """What an error of a request means."""
        import httpx2
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        first = _first(error)
        lost = isinstance(first, httpx2.TransportError)
        lost = lost or (isinstance(first, MCPError) and first.code == CONNECTION_CLOSED)
        if not (lost or self._over.is_set() or _session_is_gone(first)):
            return f"the MCP server {self.name} says: {_short(first)}"
        self._over.set()
        if self._task:
            await asyncio.wait([self._task])  # then it is known how a program ended
        return f"the connection to the MCP server {self.name} was lost, and what the call did is unknown: {self._why}"

    async def _connected(self) -> "Client":
        if self._task is None or self._task.done() or self._over.is_set():
            await self._connect()
        await asyncio.wait([self._ready])
        return self._ready.result()

    async def _connect(self) -> None:
        """Begin to connect. Raises ToolRefused where that failed a moment ago."""
        old, wait = self._task, self._rest_until - self._clock.monotonic()
        if old and not old.done():
            await asyncio.wait([old])
            if self._task is not old:
                return  # somebody else has begun meanwhile
        if wait > 0:
            raise ToolRefused(
                f"the MCP server {self.name} can't be used: {self._why}; it is tried again in {wait:.0f} s"
            )
        self._over = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._ready.add_done_callback(_retrieve)
        self._task = asyncio.create_task(self._serve(self._over, self._ready))

    async def _serve(self, over: asyncio.Event, ready: "asyncio.Future[Client]") -> None:
        """Connect, and stay so until it is over: what the library opens must be closed by the same task."""
        seconds, why = self._settings.start_timeout, ""
        try:
            async with asyncio.timeout(seconds) as limit, self._client(over) as client:
                await self._list(client)
                limit.reschedule(None)
                ready.set_result(client)
                await over.wait()
        except TimeoutError:
            why = f"it wasn't ready within {seconds:g} s"
        except Exception as error:  # noqa: BLE001 (the boundary to the server and its library: who waits must know)
            why = _short(_first(error))
        finally:
            self._why = "; ".join(filter(None, (why, self._wire.trouble()))) or "it ended"
            self._failures += 1
            rest = min(2.0 ** (self._failures - 2), _MOST_RESTING) if self._failures > 1 else 0.0
            self._rest_until = self._clock.monotonic() + rest
            if not ready.done():
                ready.set_exception(ToolRefused(f"the MCP server {self.name} can't be used: {self._why}"))

    def _client(self, over: asyncio.Event) -> "Client":
        import logging
        from importlib.metadata import version

        try:
            from mcp.client import Client
            from mcp_types import Implementation
        except ImportError as missing:
            from denizen.config.extras import how_to_install

            raise ToolRefused(f"{missing.name} is not installed. Install it: {how_to_install('mcp')}") from missing
        log = logging.getLogger("mcp")
        if not log.handlers:  # what it says is in our errors; without a handler it is printed amid the terminal
            log.addHandler(logging.NullHandler())
        return Client(
            self._wire.open(over),
            client_info=Implementation(name="denizen", version=version("denizen")),
            elicitation_callback=self._elicit,
            list_roots_callback=self._roots,
            message_handler=self._hear,
            cache=None,
        )

    async def _list(self, client: "Client") -> None:
        """List what the server has. Raises whatever the library does."""
        has, changes, room = client.server_capabilities, self._changes, _LARGEST_LISTING

        def fits(each: KnownTool | KnownPrompt) -> bool:
            nonlocal room
            if (size := len(msgspec.json.encode(each))) > min(_LARGEST, room):
                return False
            room -= size
            return True

        tools: dict[str, KnownTool] = {}
        async for page in pages(client.list_tools, has.tools):
            for each in page.tools:
                hints = each.annotations.model_dump(by_alias=True, exclude_none=True) if each.annotations else {}
                tool = KnownTool(each.name, each.description or each.title or "", each.input_schema, hints)
                if len(tools) < _MOST and tool.name not in tools and fits(tool):
                    tools[tool.name] = tool
        prompts: dict[str, KnownPrompt] = {}
        async for page in pages(client.list_prompts, has.prompts):
            for each in page.prompts:
                arguments = {argument.name: bool(argument.required) for argument in each.arguments or ()}
                prompt = KnownPrompt(each.name, each.description or each.title or "", arguments)
                if len(prompts) < _MOST and fits(prompt):
                    prompts[prompt.name] = prompt
        listed = [page.resources async for page in pages(client.list_resources, has.resources)]
        listed += [page.resource_templates async for page in pages(client.list_resource_templates, has.resources)]
        words = visible(client.instructions or "", _LONGEST_INSTRUCTIONS)
        self._listing = Listing([*tools.values()], words, any(listed), [*prompts.values()])
        self._listed_changes = changes
        self._listed(self._listing)

    async def _hear(self, message: "IncomingMessage") -> None:
        from mcp_types import (
            PromptListChangedNotification,
            ResourceListChangedNotification,
            ToolListChangedNotification,
        )

        if isinstance(
            message, ToolListChangedNotification | PromptListChangedNotification | ResourceListChangedNotification
        ):
            self._changes += 1

    async def _roots(self, context: "ClientRequestContext") -> "ListRootsResult":
        from mcp_types import ListRootsResult, Root

        return ListRootsResult(roots=[Root.model_validate({"uri": self._workspace.as_uri(), "name": "workspace"})])

    async def _elicit(self, context: "ClientRequestContext", params: "ElicitRequestParams") -> "ElicitResult":
        """Ask the person of the call that it is for; where that isn't clear, nobody: it may be another's."""
        from mcp_types import ElicitResult

        current = _CURRENT.get()
        sessions = {call.turn.session_key for call in self._calls if call.turn}
        call = current if current in self._calls else self._calls[-1] if len(sessions) == 1 else None
        if call is None or call.turn is None or (call.asking and not call.asking.done()):
            return ElicitResult(action="cancel")
        return await call.ask(elicit(self.name, params, call.turn)) or ElicitResult(action="cancel")


async def pages(ask: Callable[..., Awaitable[P]], has: object = True) -> AsyncGenerator[P]:
    """The pages of a listing; none where a server knows no such request, whatever it says it can do."""
    from mcp import MCPError
    from mcp_types import METHOD_NOT_FOUND

    cursor: str | None = None
    for _ in range(_MOST_PAGES if has else 0):
        try:
            page = await ask(cursor=cursor)
        except MCPError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            return
        yield page
        if not (cursor := page.next_cursor):
            return


def _retrieve(ready: "asyncio.Future[Any]") -> None:
    """Nobody may wait for it any more."""
    with suppress(asyncio.CancelledError):
        ready.exception()


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _short(error: BaseException) -> str:
    words = str(error) or type(error).__name__
    return words if len(words) <= _LONGEST_WORDS else f"{words[:_LONGEST_WORDS]}…"


def _session_is_gone(error: BaseException) -> bool:
    """Whether an HTTP server has forgotten us, as after a restart."""
    return "session terminated" in str(error).lower() or "session not found" in str(error).lower()
