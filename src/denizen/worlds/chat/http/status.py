"""How the gateway is."""

import msgspec
from aiohttp import web

from denizen.worlds.chat.http.requests import GATEWAY
from denizen.worlds.chat.status import status_of


async def get_status(request: web.Request) -> web.Response:
    """Its model, tools, skills and sessions, and what waits."""
    return web.json_response(msgspec.to_builtins(await status_of(request.app[GATEWAY])))


ROUTES = [web.get("/api/status", get_status)]
