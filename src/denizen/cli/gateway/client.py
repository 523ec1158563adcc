"""A client of the home's gateway."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import msgspec

from denizen.config.home import places
from denizen.config.load import load
from denizen.config.redact import Redactor
from denizen.config.settings import Config
from denizen.errors import DenizenError
from denizen.runtime.clock import Clock, SystemClock
from denizen.worlds.chat.backends import open_backends
from denizen.worlds.chat.http.server import GatewayAway, Running, find_running
from denizen.worlds.chat.http.token import read_token
from denizen.worlds.chat.ledger.database import DEFAULT_TIMING, Database

T = TypeVar("T")

_TIMEOUT_MARGIN_S = 30.0
"""Seconds more than it was asked to wait that an answer may take."""


class Client:
    """Talks to the gateway of a home. Raises GatewayAway if none answers, and DenizenError where it refuses."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @property
    def running(self) -> Running:
        """The gateway as it is now: it may have begun anew since the last request, elsewhere and with another token."""
        running = find_running(self._home)
        if running is None:
            raise GatewayAway(f"No gateway runs on {self._home}. Start one: denizen gateway")
        return running

    async def get(self, path: str, query: Mapping[str, str | int] | None = None, *, wait: float = 0.0) -> Any:
        """What a route answers, which may take `wait` seconds."""
        return await self._request("GET", path, wait, params=query)

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """What a route answers to this body."""
        return await self._request("POST", path, 0.0, json=body)

    async def _request(self, method: str, path: str, wait: float, **arguments: Any) -> Any:
        timeout = aiohttp.ClientTimeout(total=wait + _TIMEOUT_MARGIN_S)
        running, headers = self.running, {"Authorization": f"Bearer {read_token(self._home)}"}
        url = f"{running.url}{path}"
        try:
            async with aiohttp.request(method, url, headers=headers, timeout=timeout, **arguments) as response:
                answer = await response.json()
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise GatewayAway(
                f"The gateway (process {running.pid}) doesn't answer at {url}: {error}. Is it running? "
                "Start it: denizen gateway"
            ) from error
        if response.status >= 400:
            raise DenizenError(f"The gateway refuses: {answer['error']['message']}")
        return answer


async def ask_gateway_or_ledger(
    path: str, body: Any, kind: Any, in_ledger: Callable[[Config, Database, Clock], Awaitable[T]]
) -> T:
    """Ask the running gateway, which has the ledger open; without one, use the ledger directly.

    The gateway is asked by a POST with the body, or by a GET if that is None, and answers with one value of a `kind`.
    """
    loaded = load()
    folder, _ = places(loaded.config)
    if find_running(folder):
        client = Client(folder)
        [value] = (await (client.get(path) if body is None else client.post(path, body))).values()
        return msgspec.convert(value, kind)
    clock, redactor = SystemClock(), Redactor.from_environ(loaded.environ, loaded.secrets)
    async with open_backends(loaded.config, clock, redactor, is_gateway=False, timing=DEFAULT_TIMING) as shared:
        return await in_ledger(loaded.config, shared.ledger, clock)
