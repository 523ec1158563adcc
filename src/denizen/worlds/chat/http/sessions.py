"""The sessions there are, and what was said in them."""

import asyncio
import math
from collections.abc import Sequence

import msgspec
from aiohttp import web

from denizen.entries import AnyEntry
from denizen.errors import DenizenError
from denizen.ports import SessionInfo
from denizen.sessions import SessionKey
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.http.requests import GATEWAY, entries_of, json_handler, read_number

PAGE = 200
"""Sessions, or entries, in one response, unless a `limit` asks for more entries."""
MAX_ENTRIES = 1000
_MAX_FILTERED = 10
"""Pages of the index that are filtered for one response."""


class SessionPage(msgspec.Struct, frozen=True):
    """A page of the index. `before` and `next` ask for the page after it; None: it is the last."""

    sessions: list[SessionInfo]
    before: float | None
    next: int | None


class EntryPage(msgspec.Struct, frozen=True):
    """Entries of a session, from number `first` on, of `total`; `next` is the number of the entry after them."""

    entries: list[AnyEntry]
    next: int | None
    first: int
    total: int


async def get_sessions(request: web.Request) -> SessionPage:
    """The index, the latest first: those used before a time, or after so many of them.

    `channel`, `profile` and `ended` select sessions. The costs are those of all turns, as far as they are known.
    """
    gateway, store = request.app[GATEWAY], request.app[GATEWAY].agent.record.store
    limit = int(read_number(request, "limit", int, PAGE)) or PAGE
    before = read_number(request, "before", float, 2**53) or math.inf
    after = int(read_number(request, "after", int, 2**53))
    found = (await store.page(after + limit, before))[after:]
    is_full, next_ = len(found) >= limit, after + len(found)
    until = found[-1].used if found else 0.0
    found = [info for info in found if _is_selected(request, info)]
    for _ in range(_MAX_FILTERED):
        if len(found) >= limit or not is_full or not {"channel", "profile", "ended"} & request.query.keys():
            break
        page = await store.page(limit, until)
        is_full, until = len(page) >= limit, page[-1].used if page else 0.0
        found += [info for info in page if _is_selected(request, info)]
    sessions = await _with_costs(gateway, found)
    return SessionPage(sessions, until if is_full else None, next_ if is_full else None)


def _is_selected(request: web.Request, info: SessionInfo) -> bool:
    of = {"channel": SessionKey.parse(info.key).channel, "profile": info.profile, "ended": info.stop_reason}
    return all(request.query.get(name, value) == value for name, value in of.items())


async def _with_costs(gateway: Gateway, found: Sequence[SessionInfo]) -> list[SessionInfo]:
    """The sessions with the total cost of their turns."""
    try:
        spent = await asyncio.to_thread(gateway.sums.read, [info.key for info in found])
    except DenizenError:  # keeps the cost of the last turn
        spent = dict[str, float]()
    return [msgspec.structs.replace(each, cost_usd=max(each.cost_usd, spent.get(each.key, 0.0))) for each in found]


async def get_session(request: web.Request) -> EntryPage:
    """The entries of a session from its first; after so many of them, or the last ones before so many."""
    entries = await entries_of(request)
    after = int(read_number(request, "after", int, 2**53))
    before = int(read_number(request, "before", int, 2**53))
    limit = int(read_number(request, "limit", int, MAX_ENTRIES)) or PAGE
    end = min(before, len(entries)) if before else after + limit
    first = max(end - limit, 0) if before else after
    next_ = end if end < len(entries) else None
    return EntryPage([*entries[first:end]], next_, first, len(entries))


ROUTES = [
    web.get("/api/sessions", json_handler(get_sessions)),
    web.get("/api/sessions/{key}", json_handler(get_session)),
]
