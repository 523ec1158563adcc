"""How long replies take while a gateway removes what has been over for long."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp

from benchmarks.contenders import Entry, loopback, scratch
from benchmarks.gateway import Gateway, serving
from benchmarks.hall import FULL, Plan
from benchmarks.report import Goal, Table
from benchmarks.tables.gateway import WAITS
from benchmarks.tables.ledger import watched_server

NOTE = """\
A gateway on PostgreSQL that begins with so many messages that have been over for longer than it keeps them, and a model
that takes {waits:g} s. {talk} people talk at once until all of those are removed: what their replies take beyond the
model's time, without each one's first."""
COLUMNS = ("rows", "removed in s", "replies", "beyond the model, ms: half", "99 of 100", "most")
TALK, ROWS, FEW_ROWS = 8, 1_000_000, 500_000
_FILL = """
INSERT INTO inbox (channel, id, session_key, message, state, over_since)
SELECT 'http', 'old-' || n, 'agent:main:channel:http:account:default:peer:direct:old-' || mod(n, 1000),
json_build_object(
    'channel', 'http', 'chat', 'old-' || mod(n, 1000), 'sender', 'bench', 'content', repeat('x', 100),
    'session_key', 'agent:main:channel:http:account:default:peer:direct:old-' || mod(n, 1000)
), 'done', 1 FROM generate_series(1, %s) AS n
"""
_LEFT = "SELECT EXISTS (SELECT 1 FROM inbox WHERE state = 'done' AND over_since = 1)"


def table(plan: Plan, peers: Sequence[Entry]) -> Table:
    """The latency of replies during a clean-up."""
    import psycopg

    rows = ROWS if plan == FULL else FEW_ROWS
    result = Table("A clean-up under load", NOTE.format(waits=WAITS, talk=TALK), COLUMNS)
    with loopback() as model, scratch() as home, watched_server() as server:
        url = f"{server.url}/den"
        settings = f'database = "{url}"\n'
        for each in ("first", "second"):
            (home / each).mkdir()
        with serving(model.url("slow"), home / "first", settings):
            pass  # it makes the tables
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(_FILL, [rows])
            with serving(model.url("slow"), home / "second", settings) as place:
                seconds, taken = asyncio.run(_talk(place, db))
    beyond = sorted((each - WAITS) * 1e3 for each in taken)
    half, most = beyond[len(beyond) // 2], beyond[len(beyond) * 99 // 100]
    result.add(f"{rows:,}", f"{seconds:.1f}", len(beyond), f"{half:.1f}", f"{most:.1f}", f"{beyond[-1]:.1f}")
    result.goals.append(Goal("99 of 100 replies during a clean-up, beyond the model's time", 100, most, "ms"))
    return result


async def _talk(place: Mapping[str, Any], db: Any) -> tuple[float, list[float]]:
    """Seconds until all is removed, and seconds of each reply until then."""
    taken, begun, over = list[float](), time.perf_counter(), False

    async def talk(gateway: Gateway, chat: str) -> None:
        await gateway.post(chat, "ticket-00000000")
        await gateway.reply(chat)
        while not over or not taken:
            asked = time.perf_counter()
            await gateway.post(chat, f"ticket-{int(asked * 1e6):08}")
            await gateway.reply(chat)
            taken.append(time.perf_counter() - asked)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http, asyncio.TaskGroup() as people:
        gateway = Gateway(http, **place)
        for number in range(TALK):
            people.create_task(talk(gateway, f"chat-{number}"))
        while (await asyncio.to_thread(lambda: db.execute(_LEFT).fetchone())) == (True,):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        over, seconds = True, time.perf_counter() - begun
    return seconds, taken
