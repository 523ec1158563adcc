"""Sessions found by their words, by filters and page by page, and what they used."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.cli.gateway import PATIENCE
from tests.engine.scene import say
from tests.worlds.chat.conftest import Serve, key_of
from tests.worlds.chat.http.test_http import reached

from denizen import Agent, load_config, run_agent
from denizen.sessions.search_index import FoundSession, UsageBy, UsageRow
from denizen.testing import ScriptedModel


class HeldIndex:
    """Looks until it may end; `begun` once the first look begins."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.may_end = threading.Event()
        self._loop = asyncio.get_running_loop()

    def find(self, words: str, limit: int) -> Sequence[FoundSession]:
        self._loop.call_soon_threadsafe(self.begun.set)
        self.may_end.wait()
        return ()

    def usage(self, since: float, utc_offset: float, by: UsageBy) -> Sequence[UsageRow]:
        return ()


async def test_many_searches_that_take_long_hold_nothing_else(serve: Serve, home: Path) -> None:
    async with serve(rate=1000.0) as scene, reached(scene, home) as client:
        scene.gateway.search = index = HeldIndex()
        searches = [asyncio.create_task(client.ask("GET", "/api/search?q=roof")) for _ in range(40)]
        await index.begun.wait()
        try:
            async with asyncio.timeout(PATIENCE):
                assert (await client.ask("GET", "/api/sessions"))[0] == 200
        finally:
            index.may_end.set()
        assert {status for status, _ in await asyncio.gather(*searches)} == {200}


async def test_messages_are_found_in_sessions_of_every_channel(serve: Serve, home: Path) -> None:
    async with serve("The roof leaks.") as scene, reached(scene, home) as client:
        await client.post(id="1", content="Is it tight?")
        await scene.contents(1)
        async with Agent(load_config(home=home, environ={}, cwd=home), model=ScriptedModel(["No."]), tools=[]) as agent:
            await run_agent("Does the roof leak?", session_key="shop", agent=agent)
        _, answer = await client.ask("GET", "/api/search?q=roof%20leak")
        found = {each["session_key"]: each for each in answer["found"]}
        assert found.keys() == {key_of("ann"), key_of("shop", "cli")}
        assert found[key_of("ann")]["title"] == "Is it tight?"
        assert (found[key_of("ann")]["role"], found[key_of("ann")]["text"]) == ("assistant", "The roof leaks.")
        assert len((await client.ask("GET", "/api/search?q=roof&limit=1"))[1]["found"]) == 1
        assert await client.ask("GET", "/api/search") == (200, {"found": []})
        for query, keys in (
            ("channel=cli", ["shop"]),
            ("channel=http&profile=gateway", ["ann"]),
            ("ended=answered&channel=cli", ["shop"]),
            ("ended=parked", []),
        ):
            _, page = await client.ask("GET", f"/api/sessions?{query}")
            assert [each["key"].rpartition(":")[2] for each in page["sessions"]] == keys


async def test_filtered_sessions_are_found_beyond_the_first_page(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client:
        store = scene.gateway.agent.record.store
        for number in range(9):
            await (await store.open(key_of(f"s{number}", "irc" if number % 4 == 0 else "http"))).close()
        found, path = list[Any](), "/api/sessions?channel=irc&limit=2"
        cursor: float | None = 2.0**53
        while cursor is not None:
            _, page = await client.ask("GET", f"{path}&before={cursor!r}")
            found += page["sessions"]
            cursor = page["before"]
        assert [each["key"] for each in found] == [key_of(f"s{number}", "irc") for number in (8, 4, 0)]


async def test_sessions_show_what_all_their_turns_have_cost(serve: Serve, home: Path) -> None:
    script = [say("one", cost_usd=0.25), say("two", cost_usd=0.5)]
    async with serve(*script) as scene, reached(scene, home) as client:
        for number in ("1", "2"):
            await client.post(id=number)
        await scene.contents(2)
        await scene.settled()
        _, page = await client.ask("GET", "/api/sessions")
    assert [each["cost_usd"] for each in page["sessions"]] == [0.75]


async def test_last_entries_of_a_session_are_read_without_the_first(serve: Serve, home: Path) -> None:
    path = f"/api/sessions/{quote(key_of('ann'), safe='')}"
    async with serve("one") as scene, reached(scene, home) as client:
        await client.post(id="1")
        await scene.contents(1)
        await scene.settled()
        _, whole = await client.ask("GET", path)
        total = len(whole["entries"])
        assert (whole["first"], whole["total"], whole["next"]) == (0, total, None)
        _, page = await client.ask("GET", f"{path}?before={2**53}&limit=2")
        assert (page["entries"], page["first"], page["next"]) == (whole["entries"][-2:], total - 2, None)
        _, page = await client.ask("GET", f"{path}?before={total - 2}&limit=1000")
        assert (page["entries"], page["first"], page["next"]) == (whole["entries"][:-2], 0, total - 2)


async def test_usage_is_reported_as_json_and_csv(serve: Serve, home: Path) -> None:
    budget = {"budget": {"day_usd": 2.0}}
    async with serve(say("one", input=5, cost_usd=0.25), config=budget) as scene, reached(scene, home) as client:
        await client.post(id="1")
        await scene.contents(1)
        _, report = await client.ask("GET", "/api/usage?by=channel&days=2")
        [row] = report["rows"]
        assert (row["name"], row["calls"], row["input"], row["cost_usd"]) == ("http", 1, 5, 0.25)
        assert report["budgets"]["day_usd"] == 2.0
        assert report["budgets"]["session_usd"] == 20.0
        head, line = (await client.text("/api/usage?by=session&format=csv")).splitlines()
        assert head.startswith("day,name,calls,")
        assert line.startswith(f"{row['day']},{key_of('ann')},1,0,0,5,")
        assert (await client.ask("GET", "/api/usage?by=colour"))[0] == 400
