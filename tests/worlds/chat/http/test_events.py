"""Sessions and their events over HTTP, and what a new token ends."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from tests.worlds.chat.conftest import PATIENCE, Scene, Serve, SimulatedClock, key_of
from tests.worlds.chat.http.test_http import Client, reached

from denizen.errors import ConfigError
from denizen.events import Notice
from denizen.worlds.chat.http.events import EventLog, EventReader
from denizen.worlds.chat.http.server import listening
from denizen.worlds.chat.http.token import read_token

Socket = aiohttp.ClientWebSocketResponse


@asynccontextmanager
async def socket(client: Client, home: Path, after: int = 0, **headers: str) -> AsyncGenerator[Socket]:
    given = {"Authorization": f"Bearer {read_token(home)}", **headers}
    url = f"{client.url}/api/events?after={after}"
    async with aiohttp.ClientSession(headers=given) as session, session.ws_connect(url) as opened:
        yield opened


async def until_done(opened: Socket) -> list[Any]:
    got: list[Any] = []
    async with asyncio.timeout(PATIENCE):
        while not got or got[-1]["event"]["type"] != "done":
            got.append(await opened.receive_json())
    return got


async def turn(scene: Scene, content: str, count: int) -> None:
    await scene.say(content)
    await scene.contents(count)


async def test_events_are_resumed_without_a_gap(serve: Serve, home: Path) -> None:
    async with serve("one", "two") as scene, reached(scene, home) as client:
        await turn(scene, "1", 1)
        async with socket(client, home) as opened:
            first = await until_done(opened)
            await turn(scene, "2", 2)
            second = await until_done(opened)
        assert {each["session_key"] for each in first} == {key_of("ann")}
        numbers = [each["seq"] for each in first + second]
        assert numbers == [*range(numbers[0], numbers[0] + len(numbers))]
        async with socket(client, home, after=first[1]["seq"]) as opened:
            assert await until_done(opened) == first[2:]
            assert await until_done(opened) == second


async def test_events_that_are_gone_are_an_explicit_gap(serve: Serve, home: Path) -> None:
    async with serve("one") as scene, reached(scene, home) as client:
        await turn(scene, "1", 1)
        async with socket(client, home) as opened:
            first = await opened.receive_json()
        for wrong in (5, first["seq"] + 10**6):
            async with socket(client, home, after=wrong) as opened:
                assert await opened.receive_json() == {"gap": {"after": wrong, "next": first["seq"]}}
                assert await opened.receive_json() == first


def test_reader_who_is_too_slow_is_cut_off() -> None:
    log, cut = EventLog(0, room=1000), []
    slow, quick = EventReader(0, lambda: cut.append("slow")), EventReader(0, lambda: cut.append("quick"))
    log.readers |= {slow, quick}
    while not cut:
        log.add("s", Notice("x" * 100))
        quick.after = log.last
    assert cut == ["slow"]
    assert log.readers == {quick}


async def test_event_that_json_cannot_express_breaks_no_turn() -> None:
    log = EventLog(0)
    log.add("s", Notice("half \ud800"))
    assert await log.after(0) == [b'{"seq":1,"session_key":"s","event":{"type":"notice"}}']


async def test_events_are_not_served_without_an_upgrade(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client:
        assert (await client.ask("GET", "/api/events"))[0] == 426


async def test_sessions_are_listed_and_read_in_pages(serve: Serve, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("denizen.worlds.chat.http.sessions.PAGE", 2)
    async with serve("one") as scene, reached(scene, home) as client:
        await turn(scene, "1", 1)
        status, index = await client.ask("GET", "/api/sessions")
        assert (status, [each["key"] for each in index["sessions"]]) == (200, [key_of("ann")])
        entries: list[Any] = []
        after: int | None = 0
        while after is not None:
            _, page = await client.ask("GET", f"/api/sessions/{quote(key_of('ann'), safe='')}?after={after}")
            entries += page["entries"]
            after = page["next"]
        assert [each["type"] for each in entries if each["type"] in {"user", "assistant", "end"}] == [
            "user",
            "assistant",
            "end",
        ]
        assert (await client.ask("GET", "/api/sessions/nobody"))[0] == 404
        assert (await client.ask("GET", "/api/sessions?after=x"))[0] == 400


@pytest.mark.parametrize("cursor", ["before", "next"])
async def test_sessions_are_listed_page_by_page(serve: Serve, home: Path, cursor: str) -> None:
    async with serve() as scene, reached(scene, home) as client:
        for name in "abcde":
            await (await scene.gateway.agent.record.store.open(name)).close()
        found, pages, path = list[str](), 0, "/api/sessions?limit=2"
        while path:
            _, page = await client.ask("GET", path)
            found += [each["key"][-1] for each in page["sessions"]]
            pages += 1
            more = {"before": f"&before={page['before']!r}", "next": f"&after={page['next']}"}[cursor]
            path = page[cursor] and f"/api/sessions?limit=2{more}"
        assert (found, pages) == ([*"edcba"], 3)
        assert (await client.ask("GET", "/api/sessions?before=x"))[0] == 400
        assert (await client.ask("GET", "/api/sessions?limit=201"))[0] == 400


async def test_requests_beyond_the_limits_are_refused(serve: Serve, home: Path) -> None:
    async with serve(connections=1) as scene, reached(scene, home) as client, socket(client, home):
        status, answer = await client.ask("GET", "/api/sessions")
        assert (status, "gateway.connections" in answer["error"]["message"]) == (429, True)
    async with serve(rate=0.1) as scene, reached(scene, home) as client:
        assert (await client.ask("GET", "/healthz"))[0] == 200
        assert (await client.ask("GET", "/healthz"))[0] == 429


async def test_requests_without_the_token_use_up_none_of_the_owners_rate(serve: Serve, home: Path) -> None:
    clock = SimulatedClock(datetime(2026, 1, 1, tzinfo=UTC))
    async with serve(rate=0.5, clock=clock) as scene, reached(scene, home) as client:
        stranger = [(await client.ask("GET", "/api/sessions", {"Authorization": "Bearer no"}))[0] for _ in range(9)]
        assert stranger == [401, *[429] * 8]
        owner = [(await client.ask("GET", "/api/sessions"))[0] for _ in range(6)]
        assert owner == [*[200] * 5, 429]


async def test_rate_is_given_also_to_who_asks_too_often_all_the_time(serve: Serve, home: Path) -> None:
    clock = SimulatedClock(datetime(2026, 1, 1, tzinfo=UTC))
    async with serve(rate=0.1, clock=clock) as scene, reached(scene, home) as client:
        statuses = []
        for _ in range(21):
            statuses.append((await client.ask("GET", "/api/sessions"))[0])
            clock.wake(timedelta(seconds=1.001))
        assert statuses.count(200) == 3


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "agent.example"])
async def test_listening_elsewhere_with_a_guessable_token_is_refused(serve: Serve, home: Path, host: str) -> None:
    (home / "token").write_text("secret\n")
    async with serve() as scene:
        with pytest.raises(ConfigError, match="too short"):
            async with listening(scene.gateway, home, host=host, port=0):
                pass
