"""Search in sessions, and their usage by day."""

import asyncio
import csv
import io
import math
from datetime import timedelta
from typing import get_args

import msgspec
from aiohttp import web

from denizen.sessions.search_index import FoundSession, UsageBy, UsageRow
from denizen.worlds.chat.http.requests import GATEWAY, Refused, json_handler, json_response, read_number

MAX_FOUND = 100
"""Sessions in one response."""
MAX_DAYS = 3660
_DAYS = 30
SEARCH_LOCK = web.AppKey("search_lock", asyncio.Lock)
"""Held during a search. The first one may take minutes; others wait for it without occupying a thread each."""


class FoundSessions(msgspec.Struct, frozen=True):
    """Sessions with the words, the latest first."""

    found: list[FoundSession]


class Budgets(msgspec.Struct, frozen=True):
    """Spending limits in US dollars; None: no limit."""

    turn_usd: float | None
    session_usd: float | None
    day_usd: float | None


class UsageReport(msgspec.Struct, frozen=True):
    """Usage by day and name: a model, channel, session or profile."""

    by: UsageBy
    rows: list[UsageRow]
    budgets: Budgets


async def get_search(request: web.Request) -> FoundSessions:
    """The sessions of all channels in which all the words of `q` were said in one message, the latest first."""
    limit = int(read_number(request, "limit", int, MAX_FOUND)) or MAX_FOUND
    search = request.app[GATEWAY].search
    async with request.app[SEARCH_LOCK]:
        return FoundSessions([*await asyncio.to_thread(search.find, request.query.get("q", ""), limit)])


async def get_usage(request: web.Request) -> web.Response:
    """The usage of the last `days`, by day and model, channel, session or profile.

    With `format=csv` the rows alone, for a spreadsheet.
    """
    gateway, asked = request.app[GATEWAY], request.query.get("by", "model")
    by: UsageBy | None = next((each for each in get_args(UsageBy) if each == asked), None)
    if by is None:
        raise Refused(400, f"`by` is one of {', '.join(get_args(UsageBy))}.")
    days = int(read_number(request, "days", int, MAX_DAYS)) or _DAYS
    now = gateway.agent.record.now().astimezone(gateway.agent.record.zone)
    since = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days - 1)
    offset = now.utcoffset() or timedelta()
    async with request.app[SEARCH_LOCK]:
        rows = [*await asyncio.to_thread(gateway.search.usage, since.timestamp(), offset.total_seconds(), by)]
    if request.query.get("format") == "csv":
        return web.Response(text=_as_csv(rows), content_type="text/csv")
    config = gateway.agent.config
    limits = (config.agent.max_cost_usd, config.budget.session_usd, config.budget.day_usd)
    budgets = Budgets(*(limit if limit < math.inf else None for limit in limits))
    return json_response(UsageReport(by, rows, budgets))


def _as_csv(rows: list[UsageRow]) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(UsageRow.__struct_fields__)
    table.writerows(msgspec.structs.astuple(row) for row in rows)
    return text.getvalue()


ROUTES = [web.get("/api/search", json_handler(get_search)), web.get("/api/usage", get_usage)]
