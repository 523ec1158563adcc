"""Requests to a session that another process holds."""

import asyncio
import socket
from pathlib import Path

import pytest

from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore
from denizen.sessions.request_socket import (
    AnswerLost,
    SessionNotRunning,
    SessionRequest,
    send_request,
    serve_requests,
    sessions_named,
    sessions_of,
)

KEY = "agent:mason:channel:moo:account:mason@moo.example:peer:direct:world"


async def loud(request: SessionRequest) -> str:
    return request.text.upper()


@pytest.mark.parametrize("folder", ["home", "a" * 120])
async def test_requests_work_with_socket_paths_of_any_length(tmp_path: Path, folder: str) -> None:
    home = tmp_path / folder
    async with serve_requests(home, KEY, loud):
        assert await send_request(home, KEY, SessionRequest("1", "hello\nthere")) == "HELLO\nTHERE"
        [path] = (home / "sockets").iterdir()
        assert [each.stat().st_mode & 0o777 for each in (path, path.parent)] == [0o600, 0o700]
    assert not [*(home / "sockets").iterdir()]


async def test_request_is_refused_before_after_and_once_the_process_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SessionNotRunning):
        await send_request(tmp_path, KEY, SessionRequest("1", "hello"))
    async with serve_requests(tmp_path, KEY, loud):
        [path] = (tmp_path / "sockets").iterdir()
    monkeypatch.chdir(path.parent)  # the whole path may be too long
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(path.name)
    with pytest.raises(SessionNotRunning):
        await send_request(tmp_path, KEY, SessionRequest("1", "hello"))
    async with serve_requests(tmp_path, KEY, loud):
        assert await send_request(tmp_path, KEY, SessionRequest("1", "hello")) == "HELLO"


async def test_answer_is_lost_if_the_process_ends_first(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def never(_: SessionRequest) -> str:
        asked.set()
        return await asyncio.Event().wait() and ""

    async with serve_requests(tmp_path, KEY, never):
        asking = asyncio.create_task(send_request(tmp_path, KEY, SessionRequest("1", "hello")))
        await asked.wait()
    with pytest.raises(AnswerLost):
        await asking


async def test_sessions_of_a_channel_are_found_by_their_files(tmp_path: Path) -> None:
    store = JsonlStore(tmp_path / "sessions", clock=SystemClock())
    for key in (KEY, "agent:main:channel:moon:account:default:peer:direct:ann"):
        session = await store.open(key)
        await session.close()
    assert [*map(str, sessions_of(tmp_path, "moo"))] == [KEY]


async def test_name_matches_agent_or_account_and_prefers_sessions_that_listen(tmp_path: Path) -> None:
    store, other = JsonlStore(tmp_path / "sessions", clock=SystemClock()), KEY.replace("moo.example", "old.example")
    for key in (KEY, other):
        await (await store.open(key)).close()

    def found(name: str) -> list[str]:
        return [*map(str, sessions_named(tmp_path, "moo", name))]

    assert (found("mason"), found("mason@old.example"), found("world")) == ([KEY, other], [other], [])
    async with serve_requests(tmp_path, KEY, loud):
        assert (found("mason"), found("mason@old.example")) == ([KEY], [other])
