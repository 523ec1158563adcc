"""Sessions are found by what was said in them, and their usage is counted, in files and in PostgreSQL."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from denizen.entries import AnyEntry, AssistantEntry, CompactionEntry, EndEntry, UserEntry
from denizen.messages import AssistantMessage, Text, Usage, UserMessage
from denizen.ports import Session, SessionStore
from denizen.sessions import JsonlStore
from denizen.sessions.key import session_key
from denizen.sessions.postgres import PostgresStore
from denizen.sessions.search_file import SearchFile
from denizen.sessions.search_index import FoundSession, SearchIndex
from denizen.sessions.search_table import SearchTable
from denizen.sessions.tables import SharedTables
from denizen.testing import FakeClock


class Searched(NamedTuple):
    """A store, and a maker of indexes over it, as another process opens one."""

    store: SessionStore
    index: Callable[[], SearchIndex]
    clock: FakeClock

    async def find(self, words: str) -> list[FoundSession]:
        return [*await asyncio.to_thread(self.index().find, words, 50)]

    async def names(self, words: str) -> list[str]:
        return [each.session_key.rpartition(":")[2] for each in await self.find(words)]

    @asynccontextmanager
    async def opened(self, name: str) -> AsyncGenerator[Session]:
        session = await self.store.open(name, profile="assistant")
        try:
            yield session
        finally:
            await session.close()

    async def write(self, name: str, *entries: AnyEntry) -> None:
        async with self.opened(name) as session:
            for entry in entries:
                await self.clock.sleep(1.0)
                await session.append(entry)


@pytest.fixture(params=["file", "server"])
def searched(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Searched]:
    clock = FakeClock()
    if request.param == "file":
        root = tmp_path / "sessions"
        yield Searched(JsonlStore(root, clock=clock), lambda: SearchFile(root, tmp_path / "search.db"), clock)
        return
    tables: Callable[[], SharedTables] = request.getfixturevalue("shared_tables")
    yield Searched(PostgresStore(tables(), clock=clock), lambda: SearchTable(tables()), clock)


def said(text: str) -> UserEntry:
    return UserEntry(message=UserMessage([Text(text)]))


def answered(text: str, model: str = "m", **usage: Any) -> AssistantEntry:
    return AssistantEntry(message=AssistantMessage([Text(text)], model=model, usage=Usage(**usage)))


@pytest.mark.parametrize(
    ("text", "words", "is_found"),
    [
        ("The roof is leaking", "roof", True),
        ("The roof is leaking", "LEAK roof", True),
        ("The roof is leaking", "roof tight", False),
        ("Straße nach Köln", "strasse koln", True),
        ("call parseHTTP_v2 first", "http", True),
        ("call parseHTTP_v2 first", "parseHTTP_v2", True),
        ("明日、東京へ行きます", "東京", True),
        ("明日、東京へ行きます", "京都", False),
        ("내일 서울에 갑니다", "서울", True),
        ("a 🏠 b", "🏠", False),
        ('say "hi" OR NOT (near*)', '"hi" OR NOT (near*)', True),
        ("null \0 and half \ud800 characters", "half characters", True),
        ("x" * 5000, "x" * 5000, True),
        ("anything", "", False),
    ],
)
async def test_message_is_found_by_its_words(searched: Searched, text: str, words: str, is_found: bool) -> None:
    await searched.write("shop", said(text))
    assert await searched.names(words) == (["shop"] if is_found else [])


async def test_found_session_shows_its_latest_hit(searched: Searched) -> None:
    long = "before " * 100 + "the roof leaks " + "after " * 100
    await searched.write("shop", said("What about the roof?"), answered("Nothing."), answered(long), said("Thanks"))
    [found] = await searched.find("roof")
    assert (found.session_key, found.title, found.role, found.hits) == (
        session_key("shop"),
        "What about the roof?",
        "assistant",
        2,
    )
    assert "the roof leaks" in found.text
    assert len(found.text) < 220
    entries = await searched.store.read("shop")
    assert [found.entry, found.at] == [entries[3].id, entries[3].at and entries[3].at.timestamp()]


async def test_latest_session_comes_first_and_what_is_added_is_found_at_once(searched: Searched) -> None:
    await searched.write("old", said("roof"))
    await searched.write("new", said("roof"))
    assert await searched.names("roof") == ["new", "old"]
    await searched.write("old", answered("The roof again, and the gutter"))
    assert await searched.names("roof") == ["old", "new"]
    async with searched.opened("new") as session:
        await session.append(said("gutter"))
        assert await searched.names("gutter") == ["new", "old"], "also in a session that is open"


async def test_removed_session_is_forgotten(searched: Searched) -> None:
    await searched.write("shop", said("roof"), answered("tight", input=5))
    assert await searched.names("roof") == ["shop"]
    await searched.store.remove("shop")
    assert await searched.names("roof") == []
    assert searched.index().usage(0.0, 0.0, "model") == []
    await searched.write("shop", said("cellar"))
    assert (await searched.names("roof"), await searched.names("cellar")) == ([], ["shop"])


async def test_usage_is_summed_by_day_and_model(searched: Searched) -> None:
    cheap, dear = {"input": 10, "output": 2, "cost_usd": 0.25}, {"input": 1, "cache_read": 90, "cache_write": 4}
    await searched.write("shop", said("hi"), answered("a", "cheap", **cheap), answered("b", "dear", **dear))
    await searched.write("shop", EndEntry(stop_reason="answered", retries=2, model="dear"))
    await searched.clock.sleep(timedelta(days=1).total_seconds())
    await searched.write("roof", said("hi"), answered("c", "cheap", **cheap))
    await searched.write("roof", CompactionEntry(usage=Usage(7)), EndEntry(stop_reason="error", model="cheap"))
    index = searched.index()
    first, second = sorted({each.day for each in index.usage(0.0, 0.0, "model")})
    assert [
        (each.day, each.name, each.calls, each.retries, each.errors, each.input, each.cache_read, each.cost_usd)
        for each in index.usage(0.0, 0.0, "model")
    ] == [
        (first, "cheap", 1, 0, 0, 10, 0, 0.25),
        (first, "dear", 1, 2, 0, 1, 90, 0.0),
        (second, "", 1, 0, 0, 7, 0, 0.0),
        (second, "cheap", 1, 0, 1, 10, 0, 0.25),
    ]
    assert next(each.seconds for each in index.usage(0.0, 0.0, "model")) == 1.0
    since = searched.clock.now().timestamp() - 3600
    assert {each.day for each in index.usage(since, 0.0, "profile")} == {second}
    assert [each.name for each in index.usage(since, 0.0, "profile")] == ["assistant"]
    assert [each.name for each in index.usage(since, 0.0, "channel")] == ["cli"]
    assert [each.name for each in index.usage(0.0, 0.0, "session")] == [session_key("shop"), session_key("roof")]


async def test_usage_copied_by_a_fork_is_counted_once(searched: Searched) -> None:
    await searched.write("shop", said("hi"), answered("a", cost_usd=1.0))
    await searched.clock.sleep(10.0)
    await searched.store.fork("shop", "shop-2")
    await searched.write("shop-2", answered("b", cost_usd=2.0))
    found = searched.index().usage(0.0, 0.0, "session")
    assert [(each.name, each.cost_usd) for each in found] == [(session_key("shop"), 1.0), (session_key("shop-2"), 2.0)]


async def test_missing_or_damaged_file_is_rebuilt(tmp_path: Path) -> None:
    root, clock = tmp_path / "sessions", FakeClock()
    searched = Searched(JsonlStore(root, clock=clock), lambda: SearchFile(root, tmp_path / "search.db"), clock)
    assert await searched.names("roof") == []
    await searched.write("shop", said("roof"))
    index = searched.index()
    (tmp_path / "search.db").unlink()
    assert len(index.find("roof", 5)) == 1
    (tmp_path / "search.db").write_bytes(b"nonsense" * 1000)
    assert len(index.find("roof", 5)) == 1
    assert len(searched.index().find("roof", 5)) == 1


async def test_session_that_is_removed_while_it_is_read_leaves_no_words(
    shared_tables: Callable[[], SharedTables], postgres_url: str
) -> None:
    tables = shared_tables()
    await Searched(PostgresStore(tables, clock=FakeClock()), lambda: SearchTable(tables), FakeClock()).write(
        "shop", said("roof")
    )
    with (
        ThreadPoolExecutor() as threads,
        psycopg.connect(postgres_url) as removing,
        psycopg.connect(postgres_url, autocommit=True) as watching,
    ):
        removing.execute("LOCK TABLE said IN SHARE MODE")  # the reader has read the session, and can't write yet
        reading = threads.submit(SearchTable(tables).find, "roof", 5)
        while not watching.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
            pass
        removing.execute("DELETE FROM sessions")
        removing.commit()
        assert reading.result() == []
        assert watching.execute("SELECT count(*) FROM said").fetchone() == (0,)


async def test_removed_session_leaves_no_words_in_the_file(tmp_path: Path) -> None:
    root, clock = tmp_path / "sessions", FakeClock()
    searched = Searched(JsonlStore(root, clock=clock), lambda: SearchFile(root, tmp_path / "search.db"), clock)
    await searched.write("shop", said("the bassoon is hidden"))
    await searched.write("other", said("cellar"))
    gateways = SearchFile(root, tmp_path / "search.db")
    assert len(gateways.find("bassoon", 5)) == 1
    await searched.store.remove("shop")
    SearchFile(root, tmp_path / "search.db").purge_removed()
    assert not [path for path in tmp_path.glob("search.db*") if b"bassoon" in path.read_bytes()]
    assert (len(gateways.find("bassoon", 5)), len(gateways.find("cellar", 5))) == (0, 1)


async def test_replaced_transcript_is_indexed_again(tmp_path: Path) -> None:
    root, clock = tmp_path / "sessions", FakeClock()
    store = JsonlStore(root, clock=clock)
    searched = Searched(store, lambda: SearchFile(root, tmp_path / "search.db"), clock)
    await searched.write("shop", said("roof"))
    await searched.write("other", said("cellar and garden"))
    assert await searched.names("roof") == ["shop"]
    store.path("other").replace(store.path("shop"))
    assert (await searched.names("roof"), await searched.names("cellar")) == ([], ["shop"])
    torn = store.path("shop").read_bytes()[:-5]
    store.path("shop").write_bytes(torn)
    assert await searched.names("cellar") == []
