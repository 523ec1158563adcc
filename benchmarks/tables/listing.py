"""What a page of the list of sessions costs, with few sessions and with many, in files and in PostgreSQL."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.contenders import Broken, Entry, scratch
from benchmarks.hall import Plan
from benchmarks.report import Goal, Samples, Table
from denizen.entries import EndEntry, UserEntry
from denizen.messages import Text, UserMessage
from denizen.ports import SessionStore
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore
from denizen.sessions.postgres import PostgresStore
from denizen.sessions.tables import SharedTables

PAGE = 50
MANY = 10_000
REPEATS = 20
NOTE = """\
Milliseconds by the clock for a page of {page} sessions, the first and one in the middle; median (least–most) of
{repeats}. Each session has one turn. *× 50* compares a page of {page} from the middle with the only one of {page}."""
COLUMNS = ("kept in", "sessions", "first page", "middle page", "× 50")


def table(plan: Plan, peers: Sequence[Entry]) -> Table:
    """Pages of 50 and of 10,000 sessions (a quick run: 1,000)."""
    many = min(MANY, plan.messages)
    result = Table("Listing sessions", NOTE.format(page=PAGE, repeats=REPEATS), COLUMNS)
    with scratch() as folder:
        asyncio.run(_in_files(result, folder, many))
        asyncio.run(_in_database(result, folder, many))
    return result


async def _in_files(result: Table, folder: Path, many: int) -> None:
    stores = {count: JsonlStore(folder / str(count), clock=SystemClock(), sync=False) for count in (PAGE, many)}
    await _measure(result, "files", stores)


async def _in_database(result: Table, folder: Path, many: int) -> None:
    from tests import postgres  # what it needs is installed for development alone

    if not (server := postgres.running_server(folder)):
        raise Broken("there is no PostgreSQL server")
    urls = {count: postgres.new_database(server) for count in (PAGE, many)}
    tables = {count: SharedTables(url) for count, url in urls.items()}
    try:
        await _measure(
            result, "PostgreSQL", {count: PostgresStore(each, clock=SystemClock()) for count, each in tables.items()}
        )
    finally:
        for count, url in urls.items():
            tables[count].close()
            postgres.drop_database(url)
        postgres.remove_begun(folder)


async def _measure(result: Table, kept: str, stores: Mapping[int, SessionStore]) -> None:
    taken: dict[int, list[list[float]]] = {}
    for count, store in stores.items():
        for number in range(count):
            session = await store.open(f"session-{number}")
            await session.append(UserEntry(message=UserMessage([Text(f"Question {number}")])))
            await session.append(EndEntry(stop_reason="answered", model="test:model"))
            await session.close()
        taken[count] = [[], []]
    middle = {count: (await store.page(count // 2 + 1))[-1].used for count, store in stores.items()}
    for _ in range(REPEATS):
        for count, store in stores.items():
            for figures, before in zip(taken[count], (float("inf"), middle[count]), strict=True):
                began = time.perf_counter()
                await store.page(PAGE, before)
                figures.append((time.perf_counter() - began) * 1e3)
    # 50 sessions have no full page in their middle: the first is compared
    base = Samples(taken[PAGE][0])
    for count, (first, between) in taken.items():
        figures = Samples(first), Samples(between)
        compared = figures[0] if count == PAGE else figures[1]
        result.add(kept, f"{count:,}", *figures, compared.over(base))
        if count > PAGE:
            result.goals.append(
                Goal(f"a page of {count:,} sessions in {kept}, over 50", 1.5, compared.median / base.median)
            )
