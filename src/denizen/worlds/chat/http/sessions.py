"""The sessions there are, and what was said in them."""

import math

import msgspec
from aiohttp import web

from denizen.errors import SessionUnknown
from denizen.worlds.chat.http.requests import GATEWAY, Refused, read_key, read_number

PAGE = 200
"""Sessions, or entries, in one response."""
_ENCODER = msgspec.json.Encoder(enc_hook=repr)


async def get_sessions(request: web.Request) -> web.Response:
    """The index, the latest first: those used before a time, or after so many of them."""
    limit = int(read_number(request, "limit", int, PAGE)) or PAGE
    before = read_number(request, "before", float, 2**53) or math.inf
    after = int(read_number(request, "after", int, 2**53))
    found = (await request.app[GATEWAY].agent.record.store.page(after + limit, before))[after:]
    is_full = len(found) >= limit
    page = {
        "sessions": found,
        "before": found[-1].used if is_full else None,
        "next": after + len(found) if is_full else None,
    }
    return web.Response(body=_ENCODER.encode(page), content_type="application/json")


async def get_session(request: web.Request) -> web.Response:
    """The entries of a session from its first; after so many of them."""
    try:
        entries = await request.app[GATEWAY].agent.record.store.read(read_key(request))
    except SessionUnknown as error:
        raise Refused(404, str(error)) from error
    after = int(read_number(request, "after", int, 2**53))
    end = after + PAGE
    page = {"entries": entries[after:end], "next": end if end < len(entries) else None}
    return web.Response(body=_ENCODER.encode(page), content_type="application/json")


ROUTES = [web.get("/api/sessions", get_sessions), web.get("/api/sessions/{key}", get_session)]
