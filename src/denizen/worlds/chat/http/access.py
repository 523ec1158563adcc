"""Access control: the token, the names of the gateway, and how many requests it takes."""

import asyncio
import hmac
import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from aiohttp import hdrs, web

from denizen.runtime.clock import Clock
from denizen.text.plural import counted
from denizen.worlds.chat.http.connections import Connections
from denizen.worlds.chat.http.requests import refusal
from denizen.worlds.chat.http.token import new_token, read_token
from denizen.worlds.chat.settings import GatewaySettings

OPEN_ROUTES = frozenset({"/healthz", "/readyz"})
"""Routes without a token."""
BURST_S = 10.0
"""Seconds' worth of requests that may arrive at once."""

STRANGER_SHARE = 0.1
"""The share of `gateway.rate` for all requests without the token, in addition to the owner's."""

LOG_INTERVAL_S = 60.0
"""Minimum seconds between two log lines about requests without the token."""
_HOST = re.compile(r"(?:(?P<name>[a-z0-9._-]+)|\[(?P<v6>[0-9a-f:.]+)\])(?::[0-9]{1,5})?")
_log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Allowance:
    """A token bucket: `rate` requests a second on average, up to `BURST_S` times as many at once."""

    def __init__(self, rate: float, clock: Clock) -> None:
        self._rate = rate
        self._clock = clock
        self._room = self._most = max(rate * BURST_S, 1.0)
        self._at = clock.monotonic()

    def spend(self) -> bool:
        """Count a request; False: it exceeds the rate."""
        now = self._clock.monotonic()
        self._room, self._at = min(self._most, self._room + self._rate * (now - self._at)), now
        has_room = self._room >= 1
        self._room -= has_room
        return has_room


class Access:
    """Refuses requests to another host name (DNS rebinding), from another page, without the token, or too many of them.

    A client with the token may do everything.
    """

    def __init__(self, home: Path, hosts: Iterable[str], settings: GatewaySettings, clock: Clock) -> None:
        self.connections = Connections()
        self._home = home
        self._hosts = {name.lower() for name in hosts}
        self._token = read_token(home).encode()
        self._settings = settings
        self._owner = Allowance(settings.rate, clock)
        self._strangers = Allowance(settings.rate * STRANGER_SHARE, clock)
        self._open = set[asyncio.Task[object]]()
        self._clock = clock
        self._refused, self._noted_at = 0, float("-inf")

    @property
    def open(self) -> int:
        """Requests that are open."""
        return len(self._open)

    def rotate(self) -> None:
        """Make a new token, and cancel the requests that are open under the old one, except the current one."""
        self._token = new_token(self._home).encode()
        self.connections.owners.clear()
        ended = self._open - {asyncio.current_task()}
        for task in ended:
            task.cancel()
        _log.warning("The token was rotated: the old one is void. Ended under it: %s.", counted(len(ended), "request"))

    async def handle(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The handler's response, or a refusal."""
        if refused := self._refusal(request):
            return refused
        task = asyncio.current_task()
        if task is None or request.path in OPEN_ROUTES:
            return await handler(request)
        self._open.add(task)
        try:
            return await handler(request)
        finally:
            self._open.discard(task)

    def _refusal(self, request: web.Request) -> web.Response | None:
        host = ",".join(request.headers.getall(hdrs.HOST, ()))
        self.connections.hear(request, is_owner=False)
        if _name_of(host) not in self._hosts:
            return refusal(403, "The gateway doesn't serve this Host. Add its name to gateway.hosts.")
        for origin in request.headers.getall(hdrs.ORIGIN, ()):
            scheme, _, there = origin.lower().partition("://")
            if scheme not in {"http", "https"} or _name_of(there) not in self._hosts or there != host.lower():
                return refusal(403, "Pages from another origin can't use the gateway.")
        scheme, _, given = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        is_owner = hmac.compare_digest(given.strip().encode(errors="replace"), self._token)
        is_owner = is_owner and scheme.lower() == "bearer"
        self.connections.hear(request, is_owner=is_owner)
        if not (self._owner if is_owner else self._strangers).spend():
            return refusal(429, "Too many requests (gateway.rate). Wait a second.", {hdrs.RETRY_AFTER: "1"})
        if request.path in OPEN_ROUTES:
            return None
        if not is_owner:
            self._note_stranger(request)
            return refusal(401, "The token is missing or wrong: Authorization: Bearer TOKEN, from the file `token`.")
        if len(self._open) >= self._settings.connections:
            why = "Too many open requests (gateway.connections). Wait until one ends."
            return refusal(429, why, {hdrs.RETRY_AFTER: "1"})
        return None

    def _note_stranger(self, request: web.Request) -> None:
        """Log a request without the token: the first one at once, then once a minute."""
        self._refused += 1
        if (now := self._clock.monotonic()) - self._noted_at >= LOG_INTERVAL_S:
            refused = counted(self._refused, "request")
            _log.warning("Refused for a missing or wrong token: %s, the last from %s.", refused, request.remote)
            self._refused, self._noted_at = 0, now


ACCESS = web.AppKey("access", Access)


def _name_of(host: str) -> str:
    """The name or address in a Host header, without the port; empty if the header is malformed."""
    found = _HOST.fullmatch(host.lower())
    return (found["name"] or found["v6"]) if found else ""


async def post_token(request: web.Request) -> web.Response:
    """Make a new token; the old one is void at once. The file `token` has the new one."""
    request.app[ACCESS].rotate()
    return web.json_response({"rotated": True})


ROUTES = [web.post("/api/token", post_token)]
