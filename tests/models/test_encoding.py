"""A session's requests are put together from what was encoded before; nobody can tell."""

from collections.abc import Iterator, Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.calls import request

from denizen.events import Finished
from denizen.messages import AssistantMessage, Message, Opaque, Text, Thinking, ToolCall, ToolResult, UserMessage
from denizen.models.anthropic import AnthropicModel
from denizen.models.encoding import Encodings
from denizen.models.openai import OpenAIModel
from denizen.models.wire import WireModel
from denizen.ports import Schema
from denizen.testing import LoopbackAnthropic, LoopbackOpenAI
from denizen.testing.loopback import LoopbackServer

OK = AssistantMessage([Text("ok")])
POOL: Sequence[Message] = (
    UserMessage([Text("Hi")], "m1"),
    UserMessage([Text("")], "m2"),
    AssistantMessage([Text("Yes?")]),
    AssistantMessage([Thinking("hm", "c2ln"), ToolCall("c1", "read", {"path": "a"})]),
    AssistantMessage([]),
    AssistantMessage([Opaque("anthropic", {"type": "redacted_thinking", "data": "x"})], "anthropic:m"),
    ToolResult("c1", "read", [Text("A" * 300)]),
    ToolResult("c1", "read", [Text("no")], is_error=True),
)
messages = st.lists(st.sampled_from(POOL), max_size=120)
edits = st.lists(st.tuples(st.integers(0, 150), messages, st.integers(0, 150)), min_size=1, max_size=4)


@pytest.fixture(scope="module", params=[(LoopbackAnthropic, AnthropicModel), (LoopbackOpenAI, OpenAIModel)])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[LoopbackServer, type[WireModel]]]:
    make_server, client = request.param
    with make_server() as server:
        yield server, client


async def body(
    server: LoopbackServer, model: WireModel, history: Sequence[Message], key: str, **fields: object
) -> bytes:
    server.say(OK)
    asked = request(*history, session_key=key, **fields)
    assert isinstance([event async for event in model.stream(asked)][-1], Finished)
    return server.requests[-1].body


@settings(max_examples=40)
@given(first=messages, edits=edits)
async def test_request_is_the_same_whatever_was_sent_before(
    first: list[Message],
    edits: list[tuple[int, list[Message], int]],
    pair: tuple[LoopbackServer, type[WireModel]],
) -> None:
    server, client = pair
    model = client("m", base_url=server.base_url)
    history = [POOL[0], *first]
    for start, new, dropped in [(0, [], 0), *edits]:
        history[1 + start : 1 + start + dropped] = new
        kept = await body(server, model, history, "work")
        assert kept == await body(server, model, history, "")
    await model.close()


@pytest.mark.parametrize("place", [0, 1, 150, 290, 299])
async def test_change_far_back_is_noticed(pair: tuple[LoopbackServer, type[WireModel]], place: int) -> None:
    server, client = pair
    model = client("m", base_url=server.base_url)
    history: list[Message] = [POOL[0], POOL[2]] * 150
    await body(server, model, history, "work")
    history[place] = UserMessage([Text("something else")])
    for _ in range(2):
        assert await body(server, model, history, "work") == await body(server, model, history, "")
        history.append(POOL[0])
    await model.close()


@pytest.mark.parametrize("values", [(1, True), (1, 1.0), (0.0, -0.0), ([0], [False]), ({"a": 1}, {"a": True})], ids=str)
async def test_what_python_takes_for_the_same_and_json_does_not_is_noticed(
    pair: tuple[LoopbackServer, type[WireModel]], values: tuple[object, object]
) -> None:
    """An undone call may be made again with `true` in place of `1`."""
    server, client = pair
    model = client("m", base_url=server.base_url)
    for value in values:
        call = ToolCall("c1", "read", {"path": value})
        block = Opaque(f"{model.provider.name}:m", {"type": "redacted_thinking", "data": value})
        history = [POOL[0], AssistantMessage([block, call], model.name), POOL[6]]
        assert await body(server, model, history, "work") == await body(server, model, history, "")
    await model.close()


@pytest.mark.parametrize("data", [5, "x", [1], None, [["a", "b"]]], ids=str)
async def test_block_that_its_provider_could_not_understand_is_left_out(
    pair: tuple[LoopbackServer, type[WireModel]], data: object
) -> None:
    server, client = pair
    model = client("m", base_url=server.base_url)
    block, words, call = Opaque(model.provider.name, data), Text("Yes?"), ToolCall("c1", "read", {"path": "a"})
    history = [POOL[0], AssistantMessage([words, block, call, block], model.name), POOL[6]]
    without = [POOL[0], AssistantMessage([words, call], model.name), POOL[6]]
    assert await body(server, model, history, "") == await body(server, model, without, "")
    await model.close()


async def test_whatever_else_changes_is_noticed(pair: tuple[LoopbackServer, type[WireModel]]) -> None:
    server, client = pair
    model = client("m", base_url=server.base_url)
    tools = (Schema("read", "Read.", {}),)
    changes: list[dict[str, object]] = [
        {},
        {"system": "x"},
        {"tools": tools},
        {"max_tokens": 5},
        {"options": {"seed": 1}},
    ]
    for change in changes:
        assert await body(server, model, POOL, "work", **change) == await body(server, model, POOL, "", **change)
    await model.close()


async def test_sessions_do_not_mix(pair: tuple[LoopbackServer, type[WireModel]]) -> None:
    server, client = pair
    model = client("m", base_url=server.base_url)
    for key in ("a", "b", "a", "b"):
        history = [UserMessage([Text(f"I am {key}")]), *POOL]
        assert await body(server, model, history, key) == await body(server, model, history, "")
    await model.close()


def test_every_message_is_encoded_once_however_often_it_is_sent() -> None:
    encoded: list[Message] = []

    def encode(run: Sequence[Message]) -> bytes:
        encoded.extend(run)
        return msgspec.json.encode([*run])

    encodings = Encodings(encode)
    history: list[Message] = []
    for _ in range(500):
        history += [POOL[0], POOL[3], POOL[6]]
        encodings.of(history, "work")
    assert len(encoded) < 2 * len(history)  # the last run may have gone on


def test_memory_for_sessions_is_bounded() -> None:
    encoded = 0

    def encode(run: Sequence[Message]) -> bytes:
        nonlocal encoded
        encoded += 1
        return b"x" * 1000

    encodings = Encodings(encode, most=10_000)
    for number in range(100):
        encodings.of([POOL[0]], f"session {number}")
    assert encoded == 100
    encodings.of([POOL[0]], "session 99")
    assert encoded == 100
    encodings.of([POOL[0]], "session 0")
    assert encoded == 101
