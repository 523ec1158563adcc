"""How the wire clients behave towards servers that fail, in both formats, over real HTTP."""

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import aclosing

import msgspec
import pytest
from tests.models.calls import ASKED, answer, call, failure

from denizen.errors import ConfigError, ErrorKind
from denizen.events import Finished, TextDelta
from denizen.messages import AssistantMessage, Image, Text, UserMessage
from denizen.models.anthropic import AnthropicModel
from denizen.models.http import Http
from denizen.models.openai import OpenAIModel
from denizen.models.providers import provider_named
from denizen.models.wire import WireModel
from denizen.ports import ModelRequest
from denizen.testing import LoopbackAnthropic, LoopbackOpenAI, Step, split
from denizen.testing.loopback import LoopbackServer

KEY = "sk-canary-0123456789"
HELLO = AssistantMessage([Text("Hello, dear world")])
BUFFERED = msgspec.structs.replace(ASKED, stream=False)


class Pair:
    """A server and a client for it."""

    def __init__(self, server: LoopbackServer, client: type[WireModel]) -> None:
        self.server = server
        self._client = client

    def model(self, http: Http | None = None, *, base_url: str = "") -> WireModel:
        base_url = base_url or self.server.base_url
        return self._client("m", api_key=KEY, base_url=base_url, http=http, profile_id="main")

    @property
    def hello(self) -> bytes:
        """The bytes of a stream."""
        return b"".join(self.server.wire.streamed(HELLO))


@pytest.fixture(
    params=[(LoopbackAnthropic, AnthropicModel), (LoopbackOpenAI, OpenAIModel)], ids=["anthropic", "openai"]
)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    make_server, client = request.param
    with make_server() as server:
        yield Pair(server, client)


# Refusals


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "auth"),
        (403, "auth"),
        (402, "billing"),
        (429, "rate_limit"),
        (500, "timeout"),
        (529, "timeout"),
        (418, "unknown"),
    ],
)
@pytest.mark.parametrize("asked", [ASKED, BUFFERED], ids=["streamed", "in one piece"])
async def test_status_decides_the_kind(pair: Pair, status: int, kind: ErrorKind, asked: ModelRequest) -> None:
    pair.server.fail(status, "It went wrong")
    error = failure(await call(pair.model(), asked))
    assert (error.kind, error.status, error.profile_id) == (kind, status, "main")
    assert error.message == f"{error.provider}:m: It went wrong (HTTP {status})"


async def test_wish_to_wait_comes_with_the_failure(pair: Pair) -> None:
    pair.server.fail(429, "Slow down", {"Retry-After": "12"})
    assert failure(await call(pair.model())).retry_after == 12.0


async def test_web_page_of_a_proxy_isn_t_repeated(pair: Pair) -> None:
    pair.server.fail(502, b"<html><body>nginx</body></html>", {"Content-Type": "text/html"})
    error = failure(await call(pair.model()))
    assert error.kind == "timeout"
    assert error.message.endswith(":m: Bad Gateway (HTTP 502)")


async def test_web_page_instead_of_an_answer_points_to_the_base_url(pair: Pair) -> None:
    pair.server.send(b"<html>Welcome!</html>", content_type="text/html")
    model = pair.model()
    error = failure(await call(model))
    assert error.kind == "unknown"
    assert error.message.endswith(f"is providers.{model.provider.name}.base_url right?")


async def test_redirect_isn_t_followed(pair: Pair) -> None:
    pair.server.fail(307, b"", {"Location": f"{pair.server.base_url}/elsewhere"})
    error = failure(await call(pair.model()))
    assert (error.kind, error.status) == ("unknown", 307)
    assert len(pair.server.requests) == 1


async def test_key_never_shows_in_a_failure(pair: Pair) -> None:
    pair.server.fail(401, f"Wrong key: {KEY}")
    error = failure(await call(pair.model()))
    assert KEY not in repr(error)
    assert KEY in str([request.headers for request in pair.server.requests])


# Connections


async def test_nobody_listening_is_a_timeout(pair: Pair) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        error = failure(await call(pair.model(base_url=f"http://127.0.0.1:{silent.getsockname()[1]}")))
    assert (error.kind, error.status) == ("timeout", 0)


async def test_nobody_listening_is_reported_with_the_address() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        model = OpenAIModel("m", base_url=f"http://me:secret@{host}/v1")
        error = failure(await call(model))
    assert error.message == f"openai:m: no server listens at http://{host}/v1 (connection refused)"


async def test_connection_closed_before_the_answer_is_a_timeout(pair: Pair) -> None:
    pair.server.send(Step.HANG_UP)
    assert failure(await call(pair.model())).kind == "timeout"


async def test_connection_closed_amid_the_answer_is_a_timeout(pair: Pair) -> None:
    pair.server.send(pair.hello[:-60], Step.HANG_UP)
    events = await call(pair.model())
    assert any(isinstance(event, TextDelta) for event in events)
    assert failure(events).kind == "timeout"


async def test_stream_that_ends_amid_the_answer_is_a_timeout(pair: Pair) -> None:
    pair.server.send(pair.hello[: len(pair.hello) // 2])
    assert failure(await call(pair.model())).kind == "timeout"


async def test_stream_without_a_word_is_a_timeout(pair: Pair) -> None:
    pair.server.send(b": nothing\n\n")
    assert failure(await call(pair.model())).kind == "timeout"


@pytest.mark.parametrize("asked", [ASKED, BUFFERED], ids=["streamed", "in one piece"])
async def test_silence_is_a_timeout(pair: Pair, asked: ModelRequest) -> None:
    pair.server.send(Step.STALL)
    http = Http(stream_silence_s=0.05, answer_silence_s=0.05)
    assert failure(await call(pair.model(http), asked)).kind == "timeout"


async def test_silence_amid_the_answer_is_a_timeout(pair: Pair) -> None:
    pair.server.send(pair.hello[:-60], Step.STALL)
    assert failure(await call(pair.model(Http(stream_silence_s=0.05)))).kind == "timeout"


async def test_answer_is_complete_although_the_server_keeps_the_connection(pair: Pair) -> None:
    pair.server.send(pair.hello, Step.STALL)
    assert answer(await call(pair.model(Http(stream_silence_s=0.05)))).text == HELLO.text


async def test_cancelled_call_closes_its_connection(pair: Pair) -> None:
    pair.server.send(pair.hello[:-60], Step.STALL)
    model = pair.model()
    streaming = asyncio.Event()

    async def listen() -> None:
        async with aclosing(model.stream(ASKED)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    streaming.set()

    listener = asyncio.create_task(listen())
    await streaming.wait()
    listener.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listener
    assert await asyncio.to_thread(pair.server.gone.wait, 5)
    await model.close()


async def test_connection_is_used_again(pair: Pair) -> None:
    pair.server.say(HELLO, HELLO, HELLO)
    model = pair.model()
    for asked in (ASKED, BUFFERED, ASKED):
        assert isinstance([event async for event in model.stream(asked)][-1], Finished)
    assert pair.server.connections == 1
    await model.close()


def test_client_works_in_one_event_loop_after_another(pair: Pair) -> None:
    pair.server.say(HELLO, HELLO)
    model = pair.model()
    for _ in range(2):
        assert answer(asyncio.run(call(model))).text == HELLO.text


async def test_proxies_of_the_environment_do_not_lead_to_this_machine(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setitem(os.environ, name, "http://127.0.0.1:9")
    pair.server.say(HELLO)
    assert answer(await call(pair.model())).text == HELLO.text


async def test_large_request_is_sent_whole(pair: Pair) -> None:
    pair.server.say(HELLO)
    picture = Image("image/png", os.urandom(3_000_000))
    asked = msgspec.structs.replace(ASKED, messages=[UserMessage([Text("What is this?"), picture])])
    assert answer(await call(pair.model(), asked)).text == HELLO.text
    assert len(pair.server.requests[0].body) > 4_000_000
    assert pair.server.requests[0].json["messages"]


# Odd answers


async def test_json_is_taken_although_a_stream_was_asked_for(pair: Pair) -> None:
    pair.server.send(pair.server.wire.whole(HELLO), content_type="application/json")
    assert answer(await call(pair.model())).content == HELLO.content


async def test_stream_is_taken_although_none_was_asked_for(pair: Pair) -> None:
    pair.server.send(pair.hello)
    assert answer(await call(pair.model(), BUFFERED)).content == HELLO.content


@pytest.mark.parametrize("garbage", [b"data: {nonsense}\n\n", b"data: 7\n\n", b'data: {"a": \xff\n\n', b"data: {\n\n"])
async def test_damaged_stream_is_a_timeout(pair: Pair, garbage: bytes) -> None:
    pair.server.send(pair.hello[:-60], b"\n\n", garbage)
    assert failure(await call(pair.model())).kind == "timeout"


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"7", b"{nonsense", b"[" * 100_000, b'{"error": ' + b"[" * 100_000]
)
async def test_answer_in_one_piece_that_is_none_is_a_failure(pair: Pair, body: bytes) -> None:
    pair.server.send(body, content_type="application/json")
    error = failure(await call(pair.model(), BUFFERED))
    assert error.kind == "unknown"
    assert len(error.message) < 1000


async def test_failure_in_a_200_response_is_a_failure(pair: Pair) -> None:
    pair.server.send(b'{"error": {"code": 502, "message": "Upstream is down"}}', content_type="application/json")
    error = failure(await call(pair.model(), BUFFERED))
    assert (error.kind, error.status) == ("timeout", 502)
    assert "Upstream is down" in error.message


@pytest.mark.parametrize(
    "event",
    [
        b'data: {"error": {"code": 429, "message": "Slow down"}}\n\n',
        b'event: error\ndata: {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}}\n\n',
        b'event: error\ndata: {"code": 429, "message": "Slow down"}\n\n',
        b'{"error": {"code": 429, "message": "Slow down"}}',
    ],
)
async def test_error_event_in_a_stream_is_understood_like_a_status(pair: Pair, event: bytes) -> None:
    pair.server.send(pair.hello[:-60].rpartition(b"\n\n")[0], b"\n\n", event)
    error = failure(await call(pair.model()))
    assert (error.kind, error.status) == ("rate_limit", 429)
    assert "Slow down" in error.message


@pytest.mark.parametrize(("old", "new"), [(b"\n", b"\r\n"), (b"\n", b"\r"), (b"data: ", b": hi\ndata:")])
async def test_framing_is_read_as_the_standard_says(pair: Pair, old: bytes, new: bytes) -> None:
    pair.server.send(*split(pair.hello.replace(old, new), 7, 1))
    assert answer(await call(pair.model())).content == HELLO.content


async def test_bytes_that_are_no_characters_do_no_harm(pair: Pair) -> None:
    pair.server.send(pair.hello.replace(b"dear", b"d\xffr"))
    assert answer(await call(pair.model())).text == "Hello, d\ufffdr world"


@pytest.mark.parametrize("event", [b"{}", b'{"type": "keepalive"}', b'{"id": "1", "object": "of.tomorrow"}'])
async def test_events_of_no_known_kind_are_passed_over(pair: Pair, event: bytes) -> None:
    pair.server.send(b"data: %s\n\n" % event, pair.hello)
    assert answer(await call(pair.model())).text == HELLO.text


async def test_half_a_character_of_a_pair_does_no_harm(pair: Pair) -> None:
    pair.server.send(pair.hello.replace(b"dear", rb"d\ud83dr"))
    assert answer(await call(pair.model())).text == "Hello, d\ufffdr world"


# Configuration


@pytest.mark.parametrize(
    ("base_url", "advice"),
    [
        ("localhost:18080", "write http://localhost:18080/v1"),
        ("192.168.0.7:8000/api", "write http://192.168.0.7:8000/api"),
        ("api.example.com", "write https://api.example.com/v1"),
        ("", "write one like http://localhost:8080/v1"),
        ("ftp://example.com", "write one like"),
        ("http://", "write one like"),
        ("file:///etc/passwd", "write one like"),
    ],
)
def test_base_url_must_be_an_address(base_url: str, advice: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAIModel("m", provider_named("stub"), base_url=base_url)
    assert str(caught.value).startswith(
        f'providers.stub.base_url is "{base_url}", not an http or https address: {advice}'
    )


@pytest.mark.parametrize("key", ["two\nlines", "a\x00b"])
def test_key_that_cannot_be_sent_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigError, match="Authorization") as caught:
        OpenAIModel("m", api_key=key)
    assert key not in str(caught.value)


async def test_headers_of_the_configuration_go_along(pair: Pair) -> None:
    pair.server.say(HELLO)
    model = type(pair.model())("m", api_key=f" {KEY}\n", base_url=pair.server.base_url, headers={"X-Team": "7"})
    await call(model)
    [request] = pair.server.requests
    assert request.headers["X-Team"] == "7"
    assert KEY in (request.headers.get("x-api-key"), request.headers.get("Authorization", "").removeprefix("Bearer "))
    assert request.headers["Content-Type"] == "application/json"


async def test_server_without_a_key_gets_none(pair: Pair) -> None:
    pair.server.say(HELLO)
    await call(type(pair.model())("m", base_url=pair.server.base_url))
    assert not {"x-api-key", "authorization"} & {name.lower() for name in pair.server.requests[0].headers}
