"""The application: who may talk to it, how much at once, and how it words refusals."""

import hmac
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from denizen.worlds.chat.database import LedgerError
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.http import completions, controls, messages
from denizen.worlds.chat.http.requests import GATEWAY, refusal

MAX_BODY = 1_000_000
"""Bytes of a request's body."""
OPEN_ROUTES = frozenset({"/healthz"})
"""Routes that need no token."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_log = logging.getLogger(__name__)


def make_app(gateway: Gateway, token: str, host: str) -> web.Application:
    """The routes of a gateway that listens at `host`, for those who have the token."""
    own = {"localhost", "127.0.0.1", "::1", host, *gateway.settings.hosts}
    app = web.Application(middlewares=[_guard({name.lower() for name in own}, token)], client_max_size=MAX_BODY)
    app[GATEWAY] = gateway
    app.router.add_get("/healthz", _healthz)
    app.add_routes(messages.ROUTES)
    app.add_routes(controls.ROUTES)
    app.add_routes(completions.ROUTES)
    return app


async def _healthz(_: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


def _guard(hosts: set[str], token: str) -> Any:
    """Lets nobody in who comes by another name (DNS rebinding), from another page, or without the token."""
    expected = token.encode()

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if _host_of(f"//{request.headers.get(hdrs.HOST, '')}") not in hosts:
            return refusal(403, "This Host isn't the gateway's. Further names: gateway.hosts.")
        if (origin := request.headers.get(hdrs.ORIGIN)) is not None and not _is_own(origin, request, hosts):
            return refusal(403, "Pages of another origin may not use the gateway.")
        if request.path not in OPEN_ROUTES:
            scheme, _, given = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(errors="replace"), expected):
                return refusal(
                    401, "The token is missing or wrong: Authorization: Bearer TOKEN, from the file `token`."
                )
        try:
            return await handler(request)
        except web.HTTPException as why:
            return refusal(why.status, why.text or why.reason)
        except LedgerError as why:
            _log.error("%s", why)
            return refusal(503, str(why))

    return guard


def _host_of(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""


def _is_own(origin: str, request: web.Request, hosts: set[str]) -> bool:
    """Whether a page is the gateway's own: of one of its names, and of the very host that was asked."""
    try:
        there = urlsplit(origin)
    except ValueError:
        return False
    return _host_of(origin) in hosts and there.netloc.lower() == request.headers.get(hdrs.HOST, "").lower()
