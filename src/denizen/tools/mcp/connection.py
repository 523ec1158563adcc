"""The connection to one server: made when it is first needed, shared by all sessions, made again when it is lost."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from denizen.config.settings import McpServer
from denizen.errors import ConfigError, ToolRefused
from denizen.ports import ToolContext, TurnEnded
from denizen.runtime.clock import Clock
from denizen.tools.mcp.elicitation import Elicitations
from denizen.tools.mcp.listing import Listing, listing_of
from denizen.trusted.session_files import SessionFiles

if TYPE_CHECKING:
    from mcp.client import Client, ClientRequestContext, IncomingMessage
    from mcp_types import ListRootsResult

    from denizen.tools.mcp.program import Program
    from denizen.tools.mcp.remote import Remote

T = TypeVar("T")

_MAX_RETRY_DELAY_S = 60.0
"""Seconds after a failure before the next try, at most."""
_MAX_ERROR_CHARS = 600
"""Characters of a server's own words in an error."""


@dataclass(eq=False)
class McpConnection:
    """A server by its name. `listed` hears what it has, whenever that is listed.

    What a request changes in `session_files` is set aside.
    """

    name: str
    settings: McpServer
    wire: "Program | Remote"
    clock: Clock
    workspace: Path
    session_files: SessionFiles
    listed: Callable[[str, Listing], object] = lambda name, listing: None

    def __post_init__(self) -> None:
        self._questions = Elicitations(self.name, self.settings.timeout)
        self._task: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._listing = Listing()
        self._changes = self._listed_changes = 0
        self._failures, self._rest_until, self._why = 0, 0.0, ""

    async def listing(self) -> Listing:
        """The server's current listing. Raises ToolRefused."""
        await self._connected()
        if self._changes != self._listed_changes:
            await self.request(self._list)
        return self._listing

    async def request(self, ask: "Callable[[Client], Awaitable[T]]", turn: ToolContext | None = None) -> T:
        """Send the server a request, for a turn. Raises ToolRefused, with the server's reason if it refused."""
        client, seconds = await self._connected(), self.settings.timeout
        try:
            with self.session_files.watch(turn.emit if turn else str):
                async with asyncio.timeout(seconds) as limit:
                    with self._questions.during(turn, limit):
                        answer = await ask(client)
        except TimeoutError:
            if not self._questions.requests:  # it may hang, and nobody else is being served
                self._over.set()
            raise ToolRefused(f"the MCP server {self.name} gave no answer within {seconds:g} s") from None
        except (ToolRefused, ConfigError, TurnEnded):
            raise
        except Exception as error:  # the boundary to the server and its library: whatever it is, the model must know
            raise ToolRefused(await self._reason(error)) from error
        self._failures = 0
        return answer

    async def close(self) -> None:
        """Hang up; a program has ended then."""
        task, self._task = self._task, None
        if task:
            self._over.set()
            if not self._ready.done():  # nobody waits for a slow start any more
                task.cancel()
            await asyncio.wait([task])

    async def _reason(self, error: Exception) -> str:
        """A request's error in words."""
        first = _first(error)
        if not (self._over.is_set() or _is_loss(first)):
            return f"the MCP server {self.name} says: {_short(first)}"
        self._over.set()
        if self._task:
            await asyncio.wait([self._task])  # then it is known how a program ended
        return f"the connection to the MCP server {self.name} was lost, and what the call did is unknown: {self._why}"

    async def _connected(self) -> "Client":
        """Connect unless connected. Raises ToolRefused, at once if the last try failed recently."""
        while self._task is None or self._task.done() or self._over.is_set():
            if self._task and not self._task.done():
                await asyncio.wait([self._task])
                continue
            if (wait := self._rest_until - self.clock.monotonic()) > 0:
                raise ToolRefused(f"{self._unusable()}; next try in {wait:.0f} s")
            self._over = asyncio.Event()
            self._ready: asyncio.Future[Client | None] = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._serve(self._over, self._ready))
        ready = self._ready
        await asyncio.wait([ready])
        if client := ready.result():
            return client
        raise ToolRefused(self._unusable())

    def _unusable(self) -> str:
        return f"the MCP server {self.name} can't be used: {self._why}"

    async def _serve(self, over: asyncio.Event, ready: "asyncio.Future[Client | None]") -> None:
        """Connect, and stay so until it is over: what the library opens must be closed by the same task."""
        seconds, why = self.settings.start_timeout, ""
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
            self._why = "; ".join(filter(None, (why, self.wire.trouble()))) or "it ended"
            self._failures += 1
            rest = min(2.0 ** (self._failures - 2), _MAX_RETRY_DELAY_S) if self._failures > 1 else 0.0
            self._rest_until = self.clock.monotonic() + rest
            if not ready.done():
                ready.set_result(None)

    def _client(self, over: asyncio.Event) -> "Client":
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
            self.wire.open(over),
            client_info=Implementation(name="denizen", version=version("denizen")),
            elicitation_callback=self._questions.ask,
            list_roots_callback=self._roots if self.settings.roots else None,
            message_handler=self._hear,
            cache=None,
        )

    async def _list(self, client: "Client") -> None:
        changes = self._changes
        self._listing, self._listed_changes = await listing_of(client), changes
        self.listed(self.name, self._listing)

    async def _hear(self, message: "IncomingMessage") -> None:
        if str(getattr(message, "method", "")).endswith("/list_changed"):
            self._changes += 1

    async def _roots(self, context: "ClientRequestContext") -> "ListRootsResult":
        from mcp_types import ListRootsResult, Root

        folders = [(self.workspace / Path(root).expanduser()).resolve() for root in self.settings.roots]
        return ListRootsResult(roots=[Root.model_validate({"uri": folder.as_uri()}) for folder in folders])


def _is_loss(error: BaseException) -> bool:
    """Whether the connection is gone, or an HTTP server has forgotten us, as after a restart."""
    import httpx2
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED

    if isinstance(error, httpx2.TransportError) or (isinstance(error, MCPError) and error.code == CONNECTION_CLOSED):
        return True
    return any(words in str(error).lower() for words in ("session terminated", "session not found"))


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _short(error: BaseException) -> str:
    words = str(error) or type(error).__name__
    return words if len(words) <= _MAX_ERROR_CHARS else f"{words[:_MAX_ERROR_CHARS]}…"
