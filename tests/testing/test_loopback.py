"""The loopback servers do what a test tells them to, over real HTTP."""

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from denizen.messages import AssistantMessage, Opaque, Text, Thinking, ToolCall, Usage
from denizen.testing import LoopbackAnthropic, LoopbackOpenAI, Step, split
from denizen.testing.loopback import LoopbackServer

SAID = AssistantMessage(
    [Thinking("hm", "c2ln"), Text("I look"), ToolCall("c1", "read", {"a": 1})],
    usage=Usage(1, 2),
    stop_reason="tool_calls",
)


@pytest.fixture(params=[LoopbackAnthropic, LoopbackOpenAI])
def server(request: pytest.FixtureRequest) -> Iterator[LoopbackServer]:
    with request.param() as server:
        yield server


@pytest.fixture
def connection(server: LoopbackServer) -> Iterator[http.client.HTTPConnection]:
    where = urlsplit(server.base_url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port)
    yield connection
    connection.close()


def ask(connection: http.client.HTTPConnection, body: Any = None) -> http.client.HTTPResponse:
    connection.request("POST", "/some/path", json.dumps(body or {}), {"X-Who": "me"})
    return connection.getresponse()


def test_requests_are_recorded(server: LoopbackServer, connection: http.client.HTTPConnection) -> None:
    server.say("Hi")
    ask(connection, {"a": [1]}).read()
    [request] = server.requests
    assert (request.path, request.headers["x-who"], request.body, request.json) == (
        "/some/path", "me", b'{"a": [1]}', {"a": [1]},
    )  # fmt: skip


def test_replies_come_in_their_order(server: LoopbackServer, connection: http.client.HTTPConnection) -> None:
    server.say("one", "two")
    server.fail(503, "three")
    assert [word in ask(connection).read() for word in (b"one", b"two", b"three")] == [True] * 3


def test_message_is_streamed_if_the_request_asks_for_it(
    server: LoopbackServer, connection: http.client.HTTPConnection
) -> None:
    server.say(SAID, SAID)
    streamed, whole = ask(connection, {"stream": True}), None
    assert (streamed.headers["Content-Type"] or "").startswith("text/event-stream")
    assert streamed.read() == b"".join(server.wire.streamed(SAID))
    whole = ask(connection)
    assert whole.headers["Content-Type"] == "application/json"
    assert json.loads(whole.read()) == json.loads(server.wire.whole(SAID))


def test_failure_has_status_headers_and_the_provider_s_form(
    server: LoopbackServer, connection: http.client.HTTPConnection
) -> None:
    server.fail(429, "Slow down", {"Retry-After": "7"})
    response = ask(connection)
    assert (response.status, response.headers["Retry-After"]) == (429, "7")
    assert json.loads(response.read())["error"]["message"] == "Slow down"
    server.fail(500, b"\xff\x00")
    assert ask(connection).read() == b"\xff\x00"


def test_bytes_are_sent_as_they_are(server: LoopbackServer, connection: http.client.HTTPConnection) -> None:
    data = bytes(range(256))
    server.send(*split(data, 7, 1))
    assert ask(connection).read() == data


def test_reply_waits_until_it_is_released(server: LoopbackServer, connection: http.client.HTTPConnection) -> None:
    server.send(b"one", Step.HOLD, b"two")
    response = ask(connection)
    assert response.read(3) == b"one"
    server.release()
    assert response.read() == b"two"


def test_release_counts_before_the_reply_holds(server: LoopbackServer, connection: http.client.HTTPConnection) -> None:
    server.send(b"one", *split(b"." * 100, 1), Step.HOLD, b"two", Step.HOLD, b"three")
    response = ask(connection)
    assert response.read(3) == b"one"
    server.release()
    server.release()
    assert response.read().endswith(b"twothree")


def test_connection_can_break(server: LoopbackServer, connection: http.client.HTTPConnection) -> None:
    server.send(b"one", Step.HANG_UP)
    with pytest.raises(http.client.IncompleteRead):
        ask(connection).read()
    connection.close()
    server.send(Step.HANG_UP)
    with pytest.raises(http.client.RemoteDisconnected):
        ask(connection)


def test_client_that_leaves_is_noticed(server: LoopbackServer, connection: http.client.HTTPConnection) -> None:
    server.send(b"one", Step.STALL)
    ask(connection)
    connection.close()
    assert server.gone.wait()


def test_request_that_nobody_expected_fails(server: LoopbackServer, connection: http.client.HTTPConnection) -> None:
    response = ask(connection)
    assert response.status == 500
    assert b"no reply left" in response.read()


def test_blocks_of_a_provider_are_sent_as_they_are(loopback_anthropic: LoopbackAnthropic) -> None:
    block = {"type": "of_tomorrow", "x": [1]}
    message = AssistantMessage([Opaque("anthropic", block), Text("Hi"), Opaque("anthropic", {"citations": [{"a": 1}]})])
    whole = json.loads(loopback_anthropic.wire.whole(message))
    assert whole["content"] == [block, {"type": "text", "text": "Hi", "citations": [{"a": 1}]}]


def test_bytes_are_cut_into_sizes_over_and_over() -> None:
    assert split(b"abcdefgh", 1, 3) == [b"a", b"bcd", b"e", b"fgh"]
    assert split(b"", 1) == []


def test_fixtures_give_servers(loopback_anthropic: LoopbackAnthropic, loopback_openai: LoopbackOpenAI) -> None:
    assert loopback_anthropic.base_url.startswith("http://127.0.0.1:")
    assert loopback_openai.base_url.endswith("/v1")
