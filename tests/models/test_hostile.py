"""Whatever a server sends, a call ends with an answer or a failure, and raises nothing."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.calls import ASKED, call

from denizen.errors import ModelError
from denizen.events import Failed, Finished
from denizen.messages import AssistantMessage, Opaque, Text, Thinking, ToolCall, Usage
from denizen.models.anthropic import AnthropicModel
from denizen.models.anthropic_answer import AnthropicAnswer
from denizen.models.failures import ModelIdentity
from denizen.models.gemini import GeminiModel
from denizen.models.gemini_answer import GeminiAnswer
from denizen.models.http import SseParser
from denizen.models.openai import OpenAIModel
from denizen.models.openai_answer import OpenAIAnswer
from denizen.models.responses import ResponsesModel
from denizen.models.responses_answer import ResponsesAnswer
from denizen.models.wire import AnswerReader, WireModel
from denizen.testing import LoopbackAnthropic, LoopbackGemini, LoopbackOpenAI, LoopbackResponses
from denizen.testing.loopback import LoopbackServer

SAID = AssistantMessage(
    [
        Opaque("anthropic", {"type": "server_tool_use", "id": "s", "name": "x", "input": {}}),
        Thinking("hm", "c2ln"),
        Text("I look"),
        ToolCall("c1", "read", {"a": 1}),
    ],
    usage=Usage(1, 2, 3, 4),
    stop_reason="tool_calls",
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


READERS = [
    (LoopbackAnthropic, AnthropicAnswer),
    (LoopbackOpenAI, OpenAIAnswer),
    (LoopbackGemini, GeminiAnswer),
    (LoopbackResponses, ResponsesAnswer),
]
CLIENTS = [
    (LoopbackAnthropic, AnthropicModel),
    (LoopbackOpenAI, OpenAIModel),
    (LoopbackGemini, GeminiModel),
    (LoopbackResponses, ResponsesModel),
]


@pytest.fixture(scope="module", params=CLIENTS, ids=["anthropic", "openai", "gemini", "responses"])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[LoopbackServer, type[WireModel]]]:
    make_server, client = request.param
    with make_server() as server:
        yield server, client


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to everything inside a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*way, key)
        yield from places(each, (*way, key))


def changed(event: Any, way: Sequence[Any], value: Any) -> Any:
    """The event with another value at a place."""
    copy = json.loads(json.dumps(event))
    target = copy
    for key in way[:-1]:
        target = target[key]
    target[way[-1]] = value
    return copy


@settings(max_examples=150)
@given(data=st.data())
async def test_any_value_anywhere_in_a_stream(
    data: st.DataObject, pair: tuple[LoopbackServer, type[WireModel]]
) -> None:
    server, client = pair
    payloads = [each.partition(b"data: ")[2].strip() for each in server.wire.streamed(SAID)]
    events = [json.loads(payload) for payload in payloads if payload != b"[DONE]"]
    for _ in range(data.draw(st.integers(1, 3))):
        number = data.draw(st.integers(0, len(events) - 1))
        ways = [*places(events[number])]
        events[number] = changed(events[number], data.draw(st.sampled_from(ways)), data.draw(values))
    order = data.draw(st.permutations(events) | st.just(events))
    server.send(*(b"data: %s\n\n" % json.dumps(event).encode() for event in order))
    told = await call(client("m", base_url=server.base_url))
    assert isinstance(told[-1], Finished | Failed)


@pytest.mark.parametrize(("server", "reader"), READERS, ids=["anthropic", "openai", "gemini", "responses"])
def test_stream_cut_at_every_byte_is_never_a_shorter_answer(
    server: type[LoopbackServer], reader: Callable[[ModelIdentity], AnswerReader]
) -> None:
    body = b"".join(server.wire.streamed(SAID))
    kinds: set[str] = set()

    def read(*pieces: bytes) -> AssistantMessage | None:
        answer, events = reader(ModelIdentity("a:m", "a")), SseParser()
        try:
            for piece in pieces:
                answer.feed(events.feed(piece))
            answer.feed(events.close())
        except ModelError as error:
            kinds.add(error.kind)
            return None
        return answer.message() if answer.complete else None

    whole = read(*(body[place : place + 1] for place in range(len(body))))
    assert whole
    assert whole == read(body)
    assert whole.tool_calls == SAID.tool_calls
    for place in range(len(body)):
        cut = read(body[:place])
        assert cut is None or cut.content == whole.content
    assert kinds <= {"timeout"}


@settings(max_examples=60)
@given(
    body=st.binary(max_size=60) | values.map(lambda value: json.dumps(value).encode()),
    status=st.sampled_from([200, 400, 500]),
)
async def test_any_body(body: bytes, status: int, pair: tuple[LoopbackServer, type[WireModel]]) -> None:
    server, client = pair
    for content_type in ("application/json", "text/event-stream"):
        server.fail(status, body, {"Content-Type": content_type})
        told = await call(client("m", base_url=server.base_url), ASKED)
        assert isinstance(told[-1], Finished | Failed)
