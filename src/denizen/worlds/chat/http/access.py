"""Access control: the token, the names of the gateway, and how many requests it takes."""

import asyncio
import hmac
import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import msgspec
from aiohttp import hdrs, web

from denizen.runtime.clock import Clock
from denizen.text.plural import counted
from denizen.worlds.chat.http.connections import Connections
from denizen.worlds.chat.http.page_files import PAGE_ROUTES
from denizen.worlds.chat.http.requests import Refused, json_handler, json_response, read_body, refusal
from denizen.worlds.chat.http.sign_in import SignInLink, SignIns, cookie_name, set_cookie
from denizen.worlds.chat.http.token import new_token, read_token
from denizen.worlds.chat.settings import GatewaySettings

OPEN_ROUTES = frozenset({"/healthz", "/readyz", "/api/sign-in"}) | PAGE_ROUTES
"""Routes without a token."""
BURST_S = 10.0
"""Seconds' worth of requests that may arrive at once."""

STRANGER_SHARE = 0.1
"""The share of `gateway.rate` for all requests without the token, in addition to the owner's."""

LOG_INTERVAL_S = 60.0
"""Minimum seconds between two log lines about requests without the token."""
NOT_SIGNED_IN = (
    "The token is missing or wrong: Authorization: Bearer TOKEN, from the file `token`. "
    "A browser signs in with the link that `denizen web` prints."
)
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

    A client with the token may do everything, and so may a browser that is signed in.
    """

    def __init__(self, home: Path, hosts: Iterable[str], settings: GatewaySettings, clock: Clock) -> None:
        self.connections = Connections()
        self._home = home
        self._hosts = {name.lower() for name in hosts}
        self._token = read_token(home).encode()
        self.sign_ins = SignIns(home, self._token, clock)
        self._settings = settings
        self._owner = Allowance(settings.rate, clock)
        self._strangers = Allowance(settings.rate * STRANGER_SHARE, clock)
        self._open = dict[asyncio.Task[object], str]()  # with the browser, if a browser sent the request
        self._clock = clock
        self._refused, self._noted_at = 0, float("-inf")

    @property
    def open(self) -> int:
        """Requests that are open."""
        return len(self._open)

    def rotate(self) -> None:
        """Make a new token, and cancel the requests that are open under the old one, except the current one."""
        self._token = new_token(self._home).encode()
        self.sign_ins.end_all(self._token)
        self.connections.owners.clear()
        ended = self._end_requests({*self._open.values()})
        _log.warning("The token was rotated: the old one is void. Ended under it: %s.", counted(ended, "request"))

    def sign_out(self, request: web.Request) -> None:
        """Sign out the browser that sends the request, and cancel its other requests."""
        if browser := self._browser(request):
            self.sign_ins.end(browser)
            self._end_requests({browser})

    def _end_requests(self, browsers: set[str]) -> int:
        """Cancel the open requests of these browsers, except the current one; their number."""
        tasks = [task for task, browser in self._open.items() if browser in browsers]
        return sum(task.cancel() for task in tasks if task is not asyncio.current_task())

    def _browser(self, request: web.Request) -> str:
        """The signed-in browser that sends the request; empty if none, or if another page may have triggered it."""
        cookie = request.cookies.get(cookie_name(request), "")
        is_safe = request.method in {hdrs.METH_GET, hdrs.METH_HEAD} and hdrs.UPGRADE not in request.headers
        if not (is_safe or hdrs.ORIGIN in request.headers):  # browsers always send it then
            return ""
        if request.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}:
            return ""
        return self.sign_ins.browser(cookie) if cookie and hdrs.AUTHORIZATION not in request.headers else ""

    async def handle(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The handler's response, or a refusal."""
        browser = self._browser(request)
        if refused := self._refusal(request, is_signed_in=bool(browser)):
            return refused
        task = asyncio.current_task()
        if task is None or route_of(request) in OPEN_ROUTES:
            return await handler(request)
        self._open[task] = browser
        try:
            return await handler(request)
        finally:
            del self._open[task]

    def _refusal(self, request: web.Request, *, is_signed_in: bool) -> web.Response | None:
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
        is_owner = is_signed_in or (is_owner and scheme.lower() == "bearer")
        self.connections.hear(request, is_owner=is_owner)
        if not (self._owner if is_owner else self._strangers).spend():
            return refusal(429, "Too many requests (gateway.rate). Wait a second.", {hdrs.RETRY_AFTER: "1"})
        if route_of(request) in OPEN_ROUTES:
            return None
        if not is_owner:
            self._note_stranger(request)
            return refusal(401, NOT_SIGNED_IN)
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


def route_of(request: web.Request) -> str:
    """The route that a request is for, without its values; empty if there is none."""
    resource = request.match_info.route.resource
    return resource.canonical if resource else ""


class SignInRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request: the `code` of a link."""

    code: str


class SignedIn(msgspec.Struct, frozen=True):
    """Whether the browser is signed in."""

    signed_in: bool


class TokenRotated(msgspec.Struct, frozen=True):
    """The file `token` has a new token."""

    rotated: bool = True


async def post_token(request: web.Request) -> TokenRotated:
    """Make a new token, in the file `token`. The old one is void at once, and all browsers are signed out."""
    request.app[ACCESS].rotate()
    return TokenRotated()


async def post_sign_in_link(request: web.Request) -> SignInLink:
    """Make a code that signs in one browser, once, within five minutes: `/#sign-in=CODE` is its address."""
    return request.app[ACCESS].sign_ins.create_link()


async def post_sign_in(request: web.Request) -> web.Response:
    """Sign in a browser with the code of a link: it gets a cookie."""
    given = await read_body(request, SignInRequest)
    cookie = request.app[ACCESS].sign_ins.redeem(given.code)
    if not cookie:
        raise Refused(403, "This link was used, or is older than five minutes. `denizen web` prints a new one.")
    response = json_response(SignedIn(signed_in=True))
    set_cookie(request, response, cookie)
    return response


async def post_sign_out(request: web.Request) -> web.Response:
    """Sign out the browser that asks: its cookie is void."""
    request.app[ACCESS].sign_out(request)
    response = json_response(SignedIn(signed_in=False))
    set_cookie(request, response, "")
    return response


ROUTES = [
    web.post("/api/token", json_handler(post_token)),
    web.post("/api/sign-in-links", json_handler(post_sign_in_link)),
    web.post("/api/sign-in", post_sign_in),
    web.post("/api/sign-out", post_sign_out),
]
