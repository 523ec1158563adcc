"""The sessions there are, and what was said in them."""

from collections.abc import Sequence

import msgspec
from aiohttp import web

from denizen.errors import SessionUnknown
from denizen.worlds.chat.http.requests import GATEWAY, Refused, read_key, read_number

PAGE = 200
"""Sessions, or entries, in one response."""
_ENCODER = msgspec.json.Encoder(enc_hook=repr)


async def get_sessions(request: web.Request) -> web.Response:
    """The index, the latest first; after so many of them."""
    return _page(request, "sessions", await request.app[GATEWAY].agent.record.store.list())


async def get_session(request: web.Request) -> web.Response:
    """The entries of a session from its first; after so many of them."""
    try:
        entries = await request.app[GATEWAY].agent.record.store.read(read_key(request))
    except SessionUnknown as error:
        raise Refused(404, str(error)) from error
    return _page(request, "entries", entries)


def _page(request: web.Request, name: str, rows: Sequence[object]) -> web.Response:
    after = int(read_number(request, "after", int, 2**53))
    end = after + PAGE
    page = {name: rows[after:end], "next": end if end < len(rows) else None}
    return web.Response(body=_ENCODER.encode(page), content_type="application/json")


ROUTES = [web.get("/api/sessions", get_sessions), web.get("/api/sessions/{key}", get_session)]
