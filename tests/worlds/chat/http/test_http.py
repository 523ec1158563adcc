"""The routes: what they take and answer, and whom they let in."""

from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec
import pytest
from tests.documents import PAPER, scanned
from tests.engine.scene import call
from tests.full_disk import file_size_limit
from tests.worlds.chat.conftest import AWAY, AwayStore, Scene, Serve, SimulatedClock, key_of

from denizen.messages import Document, UserMessage, from_outside
from denizen.ports import OutboundMessage
from denizen.runtime.clock import SystemClock
from denizen.worlds.chat.http.server import listening
from denizen.worlds.chat.http.status import Status
from denizen.worlds.chat.http.token import read_token
from denizen.worlds.chat.ledger import outbound

POST = {"channel": "http", "chat": "ann", "sender": "ann", "content": "hi"}


class Client:
    """Talks to a gateway as a program does."""

    def __init__(self, session: aiohttp.ClientSession, url: str, token: str, scene: Scene) -> None:
        self.url = url
        self.scene = scene
        self._session = session
        self._headers = {"Authorization": f"Bearer {token}"}

    async def ask(self, method: str, path: str, headers: Mapping[str, str] | None = None, **body: Any) -> Any:
        given = self._headers if headers is None else {**self._headers, **headers}
        async with self._session.request(method, self.url + path, headers=given, **body) as response:
            assert not [name for name in response.headers if name.startswith("Access-Control")]
            return response.status, await response.json()

    async def text(self, path: str) -> str:
        async with self._session.get(self.url + path, headers=self._headers) as response:
            assert response.status == 200
            return await response.text()

    async def post(self, **body: Any) -> Any:
        return await self.ask("POST", "/api/messages", json={**POST, **body})

    async def control(self, chat: str, **body: Any) -> Any:
        return await self.ask("POST", f"/api/sessions/{quote(key_of(chat), safe='')}/controls", json=body)


@asynccontextmanager
async def reached(scene: Scene, home: Path) -> AsyncGenerator[Client]:
    async with (
        listening(scene.gateway, home, host="127.0.0.1", port=0) as running,
        aiohttp.ClientSession() as session,
    ):
        yield Client(session, running.url, read_token(home), scene)


async def test_message_is_accepted_and_its_reply_fetched(serve: Serve, home: Path) -> None:
    async with serve("hello") as scene, reached(scene, home) as client:
        accepted = {"accepted": True, "id": "1", "session_key": key_of("ann")}
        assert await client.post(id="1") == (202, accepted)
        status, answer = await client.ask("GET", "/api/replies?chat=ann&after=0&wait=60")
        reply = {"seq": 1, "in_reply_to": "1", "content": "hello", "session_key": key_of("ann"), "state": "sent"}
        assert (status, answer) == (200, {"replies": [reply]})
        assert (await client.ask("GET", "/api/replies?chat=ann&after=1&wait=0"))[1] == {"replies": []}


async def test_files_in_a_message_are_seen_by_the_model(serve: Serve, home: Path) -> None:
    raw = {"type": "document", "media_type": "application/pdf", "name": "bridge.pdf"}
    notes = {"type": "document", "media_type": "text/plain", "data": "bWluZQ==", "name": "n.txt"}
    async with serve("open") as scene, reached(scene, home) as client:
        media: list[Any] = [{**raw, "data": b64encode(PAPER.data).decode()}, notes, "roof.png"]
        assert (await client.post(media=media))[0] == 202
        await scene.replies(1)
        (seen,) = [each for each in scene.model.requests[-1].messages if isinstance(each, UserMessage)]
        assert seen.content[1:3] == [from_outside(PAPER), from_outside(Document("text/plain", b"mine", "n.txt"))]
        assert "[attached: roof.png]" in seen.text


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (PAPER.data[:400], "a.pdf isn't a PDF document that can be read"),
        (scanned(pages=101), "a.pdf has 101 pages; at most 100"),
        (b"\0\1", "a.pdf is neither a PDF document nor text"),
    ],
    ids=["damaged", "too long", "something else"],
)
async def test_a_file_that_cannot_be_used_is_refused(serve: Serve, home: Path, data: bytes, why: str) -> None:
    sent = {"type": "document", "media_type": "application/pdf", "name": "a.pdf", "data": b64encode(data).decode()}
    async with serve() as scene, reached(scene, home) as client:
        status, answer = await client.post(media=[sent])
        assert status == 400
        assert why in answer["error"]["message"]


async def test_a_picture_that_is_none_is_refused(serve: Serve, home: Path) -> None:
    sent = {"type": "image", "media_type": "image/png", "data": "AAAA"}
    async with serve() as scene, reached(scene, home) as client:
        status, answer = await client.post(media=[sent])
        assert status == 400
        assert "isn't a picture that models can see" in answer["error"]["message"]


async def test_body_that_is_not_compressed_as_it_says_is_refused(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client:
        headers = {"Content-Encoding": "gzip"}
        status, answer = await client.ask("POST", "/api/messages", data=b"{}", headers=headers)
        assert status == 400
        assert "can't be read" in answer["error"]["message"]


async def test_last_replies_are_fetched_alone(serve: Serve, home: Path) -> None:
    async with serve("one", "two", "three") as scene, reached(scene, home) as client:
        for content in ("1", "2", "3"):
            await scene.say(content)
        await scene.replies(3)
        for query, found in (("last=1", [3]), ("last=2", [2, 3]), ("last=2&after=2", [3]), ("last=0", [1, 2, 3])):
            _, answer = await client.ask("GET", f"/api/replies?chat=ann&{query}")
            assert [each["seq"] for each in answer["replies"]] == found


async def test_id_that_was_there_gets_the_first_ones_key(serve: Serve, home: Path) -> None:
    async with serve("hello") as scene, reached(scene, home) as client:
        await client.post(id="1")
        again = {"accepted": False, "id": "1", "session_key": key_of("ann")}
        assert await client.post(id="1", chat="ben", content="other") == (202, again)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"chat": "ann"}',
        b'{"chat": "ann", "sender": "ann", "content": "hi", "colour": "red"}',
        b'{"chat": 5, "sender": "ann", "content": "hi"}',
        b'{"chat": "", "sender": "ann", "content": "hi"}',
        b'{"chat": "ann", "sender": "ann", "content": " "}',
        b'{"chat": "ann", "sender": "ann", "content": "hi", "channel": "system"}',
        b'{"chat": " ", "sender": "ann", "content": "hi"}',
    ],
)
async def test_malformed_message_is_refused(serve: Serve, home: Path, data: bytes) -> None:
    async with serve() as scene, reached(scene, home) as client:
        status, answer = await client.ask("POST", "/api/messages", data=data)
        assert status == 400
        assert answer["error"]["message"]


async def test_oversized_message_is_refused(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client:
        assert (await client.ask("POST", "/api/messages", data=BytesIO(b"x" * 20_000_001)))[0] == 413


async def test_body_that_is_nested_too_deeply_is_refused(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client:
        status, answer = await client.ask("POST", "/v1/chat/completions", data=b'{"x": ' + b"[" * 100_000)
    assert status == 400
    assert "The body doesn't fit this route" in answer["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/sessions", {}),
        ("GET", f"/api/sessions/{key_of('ann')}", {}),
        ("GET", "/api/status", {}),
        ("POST", f"/api/sessions/{key_of('ann')}/controls", {"json": {"type": "approve", "call_id": "c1"}}),
    ],
)
async def test_request_while_the_sessions_are_away_says_so(
    serve: Serve, home: Path, method: str, path: str, body: Any
) -> None:
    store = AwayStore(clock=SystemClock())
    async with serve("hello", store=store) as scene, reached(scene, home) as client:
        await scene.say("hi")
        await scene.contents(1)
        store.is_away = True
        status, answer = await client.ask(method, path, **body)
        assert (status, answer["error"]["message"]) == (503, AWAY)


async def test_session_that_is_not_there_is_not_found(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client:
        for key in (key_of("ann"), "agent:nonsense"):
            for method, path, body in (("GET", "", {}), ("POST", "/controls", {"json": {"type": "stop"}})):
                assert (await client.ask(method, f"/api/sessions/{key}{path}", **body))[0] == 404


async def test_token_that_cannot_be_kept_stays_as_it_is(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client:
        token = read_token(home)
        with file_size_limit(0):
            status, answer = await client.ask("POST", "/api/token")
        assert status == 503
        assert "token" in answer["error"]["message"]
        assert read_token(home) == token
        assert (await client.ask("GET", "/api/sessions"))[0] == 200


@pytest.mark.parametrize("query", ["", "?chat=", "?chat=a&after=x", "?chat=a&after=-1", "?chat=a&wait=1e9&after=1"])
async def test_malformed_query_is_refused(serve: Serve, home: Path, query: str) -> None:
    async with serve() as scene, reached(scene, home) as client:
        assert (await client.ask("GET", f"/api/replies{query}"))[0] == 400


async def test_question_is_approved_over_http(serve: Serve, home: Path) -> None:
    async with serve(call(("post", {"text": "hello"})), "done") as scene, reached(scene, home) as client:
        await client.post(id="1")
        [question] = await scene.replies(1)
        asked = question.message.metadata["call_id"]
        assert (await client.control("ann", type="approve", call_id="c1"))[0] == 409, "that is the provider's"
        assert (await client.control("ann", type="approve"))[0] == 400
        assert (await client.control("ben", type="approve", call_id=asked))[0] == 404
        assert (await client.control("ann", type="approve", call_id=asked))[0] == 202
        assert (await scene.contents(2))[1] == "done"
        assert (await client.control("ann", type="approve", call_id=asked))[0] == 409


async def test_control_of_a_session_without_a_turn_is_refused_and_nothing_is_kept(serve: Serve, home: Path) -> None:
    async with serve("hello") as scene, reached(scene, home) as client:
        await client.post(id="1")
        await scene.replies(1)
        for control in ({"type": "stop"}, {"type": "steer", "content": "left"}, {"type": "follow_up", "content": "b"}):
            assert (await client.control("ann", **control))[0] == 409
        assert (await client.control("ann", type="dance"))[0] == 400
        assert (await client.ask("POST", "/api/sessions/nonsense/controls", json={"type": "stop"}))[0] == 404


async def test_wrong_tokens_and_rotations_are_logged_without_them_and_not_for_each_request(
    serve: Serve, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = SimulatedClock(datetime(2026, 1, 1, tzinfo=UTC))
    wrong = {"Authorization": "Bearer guessed"}
    async with serve(clock=clock) as scene, reached(scene, home) as client:
        token = read_token(home)
        for _ in range(5):
            await client.ask("GET", "/api/sessions", wrong)
        clock.wake(timedelta(seconds=61))
        await client.ask("GET", "/api/sessions", wrong)
        assert await client.ask("POST", "/api/token") == (200, {"rotated": True})
    lines = [record.message for record in caplog.records if record.name == "denizen.worlds.chat.http.access"]
    assert [line.partition(":")[2].partition(",")[0] for line in lines[:2]] == [" 1 request", " 5 requests"]
    assert "rotated" in lines[2]
    assert not any(secret in line for line in lines for secret in (token, read_token(home), "guessed"))


async def test_reply_that_is_kept_for_whoever_asked_is_in_no_chat(serve: Serve, home: Path) -> None:
    async with serve("to you alone", "to all") as scene, reached(scene, home) as client:
        assert await scene.ask("hi", key_of("ann"), channel="http", chat="ann") == "to you alone"
        await scene.say("and now?")
        await scene.contents(1)
        _, found = await client.ask("GET", "/api/replies?chat=ann")
        assert [(reply["content"], reply["state"]) for reply in found["replies"]] == [("to all", "sent")]
        _, status = await client.ask("GET", "/api/status")
        assert status["outbox"] == {"kept": 1, "sent": 1}


async def test_status_lists_replies_that_may_have_been_sent(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client:
        reply = OutboundMessage("irc", "den", "hello", id="m1:reply")
        await scene.gateway.database.run(partial(outbound.add_outbound, message=reply, state="unknown"))
        _, status = await client.ask("GET", "/api/status")
    assert status["unconfirmed"] == [{"channel": "irc", "chat": "den", "id": "m1:reply", "reason": ""}]
    assert "unconfirmed: m1:reply to irc den: " in [*msgspec.convert(status, Status).lines()]
