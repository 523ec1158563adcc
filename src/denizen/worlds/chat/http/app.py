"""The application: its routes, and how it words refusals."""

import asyncio
import logging
from pathlib import Path
from typing import Any

from aiohttp import web

from denizen.errors import DenizenError
from denizen.runtime.clock import Clock
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.http import (
    access,
    completions,
    controls,
    events,
    history,
    jobs,
    messages,
    openapi,
    page_files,
    pairings,
    responses,
    search,
    session_queue,
    sessions,
    status,
    waiting,
)
from denizen.worlds.chat.http.access import ACCESS, Access, Handler
from denizen.worlds.chat.http.events import EVENTS, EventLog
from denizen.worlds.chat.http.requests import GATEWAY, failure, refusal
from denizen.worlds.chat.ledger import ledger

API = (
    access,
    completions,
    controls,
    events,
    history,
    jobs,
    messages,
    openapi,
    pairings,
    session_queue,
    responses,
    search,
    sessions,
    status,
    waiting,
)
"""The modules with the routes that `/openapi.json` describes."""

NO_RETRY = {"x-should-retry": "false"}
"""Keeps OpenAI's SDKs from repeating a request by themselves: a session would have its message twice."""

READY_S = 5.0
"""Seconds for the database to answer before it counts as away."""
_log = logging.getLogger(__name__)


def make_app(gateway: Gateway, home: Path, host: str) -> web.Application:
    """The routes of a gateway that listens at `host`, for those who have the home's token."""
    clock = gateway.agent.record.clock
    app = web.Application(middlewares=[_guard(clock)])
    app[GATEWAY] = gateway
    app[ACCESS] = Access(
        home, {"localhost", "127.0.0.1", "::1", host, *gateway.settings.hosts}, gateway.settings, clock
    )
    app[search.SEARCH_LOCK] = asyncio.Lock()
    app[EVENTS] = EventLog(int(clock.now().timestamp() * 1_000_000))
    gateway.listeners.of_all.append(app[EVENTS].add)
    gateway.outbox.changed = app[EVENTS].changed
    app.router.add_get("/healthz", _healthz)
    app.router.add_get("/readyz", _readyz)
    for group in (*API, page_files):
        app.add_routes(group.ROUTES)
    app.on_response_prepare.append(page_files.harden)
    return app


async def _healthz(_: web.Request) -> web.Response:
    """Report that the process is alive."""
    return web.json_response({"status": "ok"})


async def _readyz(request: web.Request) -> web.Response:
    """Report whether the ledger can be read: 503 if not."""
    gateway = request.app[GATEWAY]
    try:
        async with asyncio.timeout(READY_S):
            await gateway.database.read(ledger.next_due)
    except (DenizenError, TimeoutError) as error:
        _log.warning("not ready: %s", gateway.agent.record.redact(str(error)) or "the database doesn't answer")
        return refusal(503, "The database is away. The gateway's log says more.")
    return web.json_response({"status": "ready"})


def _guard(clock: Clock) -> Any:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        began = clock.monotonic()
        try:
            return await request.app[ACCESS].handle(request, handler)
        except ConnectionError:
            raise  # the client has left
        except Exception as error:  # noqa: BLE001 (the boundary to a client: the others are served on)
            status, why = failure(request, error)
            return refusal(status, why, NO_RETRY if status in {409, 500, 502} else None)
        finally:
            if route := request.match_info.route.resource:
                request.app[GATEWAY].metrics.observe(
                    "denizen_request_seconds", began, method=request.method, route=route.canonical
                )

    return guard
