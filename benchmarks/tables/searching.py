"""What a search over all sessions costs, in files and in PostgreSQL."""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.contenders import Broken, Entry, scratch
from benchmarks.hall import Plan
from benchmarks.report import Goal, Samples, Table
from denizen.entries import AssistantEntry, UserEntry
from denizen.messages import AssistantMessage, Text, UserMessage
from denizen.ports import SessionStore
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore
from denizen.sessions.postgres import PostgresStore
from denizen.sessions.search_file import SearchFile
from denizen.sessions.search_index import SearchIndex
from denizen.sessions.search_table import SearchTable
from denizen.sessions.tables import SharedTables

MANY = 10_000
REPEATS = 10
MESSAGES, WORDS = 4, 40
LIMIT_MS = 300.0
VOCABULARY = [
    *("roof", "leak", "shop", "close", "friday", "lamp", "tight", "water", "plan", "invoice", "tax", "error"),
    *("release", "train", "boat", "paint", "door", "window", "garden", "東京", "大阪", "認証", "データ"),
]
SEARCHES = {
    "a rare word": "needle7",
    "two common words": "roof leak",
    "two of Japanese": "東京 認証",
    "none": "nonsense",
}
NOTE = """\
Milliseconds by the clock until the first {limit} sessions are found; median (least–most) of {repeats}. Each session has
{messages} messages of {words} words out of {vocabulary}. *first* makes the index."""
COLUMNS = ("kept in", "sessions", "first", *SEARCHES)


def table(plan: Plan, peers: Sequence[Entry]) -> Table:
    """Searches over 10,000 sessions (a quick run: 1,000)."""
    many = min(MANY, plan.messages)
    note = NOTE.format(limit=20, repeats=REPEATS, messages=MESSAGES, words=WORDS, vocabulary=len(VOCABULARY))
    result = Table("Searching sessions", note, COLUMNS)
    with scratch() as folder:
        root = folder / "sessions"
        store = JsonlStore(root, clock=SystemClock(), sync=False)
        _measure(result, "files", store, lambda: SearchFile(root, folder / "search.db"), many)
        _in_database(result, folder, many)
    return result


def _in_database(result: Table, folder: Path, many: int) -> None:
    from tests import postgres  # what it needs is installed for development alone

    if not (server := postgres.running_server(folder)):
        raise Broken("there is no PostgreSQL server")
    url = postgres.new_database(server)
    tables = SharedTables(url)
    try:
        store = PostgresStore(tables, clock=SystemClock())
        _measure(result, "PostgreSQL", store, lambda: SearchTable(tables), many)
    finally:
        tables.close()
        postgres.drop_database(url)
        postgres.remove_begun(folder)


def _measure(result: Table, kept: str, store: SessionStore, index: Callable[[], SearchIndex], many: int) -> None:
    asyncio.run(_fill(store, many))
    search = index()
    first = _timed(search, "needle7")
    taken = {name: Samples([_timed(search, words) for _ in range(REPEATS)]) for name, words in SEARCHES.items()}
    result.add(kept, f"{many:,}", f"{first:,.0f}", *taken.values())
    slowest = max(figures.median for figures in taken.values())
    result.goals.append(Goal(f"the slowest search over {many:,} sessions in {kept}", LIMIT_MS, slowest, " ms"))


async def _fill(store: SessionStore, many: int) -> None:
    chance = random.Random(1)
    for number in range(many):
        session = await store.open(f"session-{number}")
        for _ in range(MESSAGES // 2):
            said, answered = (" ".join(chance.choices(VOCABULARY, k=WORDS)) for _ in range(2))
            await session.append(UserEntry(message=UserMessage([Text(f"{said} needle{number}")])))
            await session.append(AssistantEntry(message=AssistantMessage([Text(answered)])))
        await session.close()


def _timed(search: SearchIndex, words: str) -> float:
    began = time.perf_counter()
    search.find(words, 20)
    return (time.perf_counter() - began) * 1e3
