"""Who may talk to the gateway, and how much at once."""

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
"""Routes that need no token."""
BURST_S = 10.0
"""Seconds' worth of requests that may come at once."""

STRANGER_SHARE = 0.1
"""The part of `gateway.rate` that requests without the token have together, apart from the owner's."""

LOG_INTERVAL_S = 60.0
"""Seconds between two lines of the log on requests without the token, at least."""
_HOST = re.compile(r"(?:(?P<name>[a-z0-9._-]+)|\[(?P<v6>[0-9a-f:.]+)\])(?::[0-9]{1,5})?")
_log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Allowance:
    """So many requests a second on average, and for a while `BURST_S` times as many."""

    def __init__(self, rate: float, clock: Clock) -> None:
        self._rate = rate
        self._clock = clock
        self._room = self._most = max(rate * BURST_S, 1.0)
        self._at = clock.monotonic()

    def spend(self) -> bool:
        """Count one more; False: there is no room for it."""
        now = self._clock.monotonic()
        self._room, self._at = min(self._most, self._room + self._rate * (now - self._at)), now
        has_room = self._room >= 1
        self._room -= has_room
        return has_room


class Access:
    """Lets nobody in who comes by another name (DNS rebinding), from another page, without the token, or too often.

    A client with the token may do everything: what it claims of itself gives it nothing more.
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
        """Make a new token, and end whatever is open under the old one, but for the request that asks this."""
        self._token = new_token(self._home).encode()
        self.connections.owners.clear()
        ended = self._open - {asyncio.current_task()}
        for task in ended:
            task.cancel()
        _log.warning("The token was rotated: the old one is void. Ended under it: %s.", counted(len(ended), "request"))

    async def handle(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """What the handler answers, or why it isn't asked."""
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
            return refusal(403, "This Host isn't the gateway's. Further names: gateway.hosts.")
        for origin in request.headers.getall(hdrs.ORIGIN, ()):
            scheme, _, there = origin.lower().partition("://")
            if scheme not in {"http", "https"} or _name_of(there) not in self._hosts or there != host.lower():
                return refusal(403, "Pages of another origin may not use the gateway.")
        scheme, _, given = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        is_owner = hmac.compare_digest(given.strip().encode(errors="replace"), self._token)
        is_owner = is_owner and scheme.lower() == "bearer"
        self.connections.hear(request, is_owner=is_owner)
        if not (self._owner if is_owner else self._strangers).spend():
            return refusal(429, "These are too many requests (gateway.rate). Wait a second.", {hdrs.RETRY_AFTER: "1"})
        if request.path in OPEN_ROUTES:
            return None
        if not is_owner:
            self._note_stranger(request)
            return refusal(401, "The token is missing or wrong: Authorization: Bearer TOKEN, from the file `token`.")
        if len(self._open) >= self._settings.connections:
            why = "Too many requests are open (gateway.connections). Wait for one of yours to end."
            return refusal(429, why, {hdrs.RETRY_AFTER: "1"})
        return None

    def _note_stranger(self, request: web.Request) -> None:
        """Say in the log that somebody came without the token: the first time at once, then once a minute."""
        self._refused += 1
        if (now := self._clock.monotonic()) - self._noted_at >= LOG_INTERVAL_S:
            refused = counted(self._refused, "request")
            _log.warning("Refused for a missing or wrong token: %s, the last from %s.", refused, request.remote)
            self._refused, self._noted_at = 0, now


ACCESS = web.AppKey("access", Access)


def _name_of(host: str) -> str:
    """The name or address of a Host header, without its port; empty for anything else."""
    found = _HOST.fullmatch(host.lower())
    return (found["name"] or found["v6"]) if found else ""


async def post_token(request: web.Request) -> web.Response:
    """Make a new token: the old one is void at once. The new one is in the file `token`."""
    request.app[ACCESS].rotate()
    return web.json_response({"rotated": True})


ROUTES = [web.post("/api/token", post_token)]
