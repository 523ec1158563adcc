"""What servers get wrong is understood all the same, streamed and in one piece; what can't be is a failure."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.models.calls import answer, call, failure, request

from denizen.messages import AssistantMessage, Text, Thinking, ToolCall, Usage
from denizen.models.anthropic import AnthropicModel
from denizen.models.openai import OpenAIModel
from denizen.models.wire import WireModel
from denizen.testing import LoopbackAnthropic, LoopbackOpenAI
from denizen.testing.loopback import LoopbackServer

Json = dict[str, Any]

CONTENT = [Thinking("Hm."), Text("I look."), ToolCall("c1", "read", {"path": "a", "lines": None})]
COUNTS = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}


class Asked:
    """A server, and what a model behind it makes of the answers to one request in two forms."""

    def __init__(self, server: LoopbackServer, client: type[WireModel], *, stream: bool) -> None:
        self._server = server
        self._client = client
        self._stream = stream

    async def told(self, whole: Any, *events: Any) -> AssistantMessage:
        """The message that it becomes, in the form that is asked for: `whole`, or `events`."""
        return answer(await self._call(whole, *events))

    async def failed(self, whole: Any, *events: Any) -> str:
        """The same, of what is no message."""
        return failure(await self._call(whole, *events)).message

    async def _call(self, whole: Any, *events: Any) -> list[Any]:
        if self._stream:
            self._server.send(*(b"data: %s\n\n" % json.dumps(event).encode() for event in events))
        else:
            self._server.send(json.dumps(whole).encode(), content_type="application/json")
        return await call(self._client("m", base_url=self._server.base_url), request(stream=self._stream))


@pytest.fixture(params=[True, False], ids=["streamed", "in one piece"])
def openai(request: pytest.FixtureRequest) -> Iterator[Asked]:
    with LoopbackOpenAI() as server:
        yield Asked(server, OpenAIModel, stream=request.param)


@pytest.fixture(params=[True, False], ids=["streamed", "in one piece"])
def anthropic(request: pytest.FixtureRequest) -> Iterator[Asked]:
    with LoopbackAnthropic() as server:
        yield Asked(server, AnthropicModel, stream=request.param)


# OpenAI


def chosen(message: Json, **fields: Any) -> tuple[Json, Json]:
    """A response with that message, and the same as an event of a stream."""
    stop = {"finish_reason": "stop"}
    return (
        {"choices": [stop | {"message": message}], **fields},
        {"choices": [stop | {"delta": message}], **fields},
    )


NULLS: Json = {
    "index": None,
    "id": "c1",
    "type": None,
    "extra_content": None,
    "function": {"name": "read", "arguments": '{"path": "a", "lines": null}'},
}


async def test_nulls_are_as_if_they_were_not_there(openai: Asked) -> None:
    message = {"content": "I look.", "reasoning": "Hm.", "tool_calls": [None, NULLS], "refusal": None}
    odd = {"index": None, "error": None, "logprobs": None}
    pairs = [{"choices": [each["choices"][0] | odd, None], "error": None} for each in chosen(message)]
    assert (await openai.told(*pairs)).content == CONTENT


@pytest.mark.parametrize(
    ("odd", "usage"),
    [
        ({"prompt_tokens": "9", "completion_tokens": 2.0}, Usage(5, 2, 4)),
        ({"prompt_tokens_details": []}, Usage(9, 2)),
        ({"prompt_tokens_details": {"cached_tokens": "some"}}, Usage(9, 2)),
        ({"prompt_tokens": None, "completion_tokens": [2]}, Usage(None, None, 4)),
        ({"prompt_tokens": -9, "completion_tokens": 10**400}, Usage(None, None, 4)),
        ({"cost": -1}, Usage(5, 2, 4)),
        ({"cost": 10**400}, Usage(5, 2, 4)),
    ],
)
async def test_usage_that_is_none_costs_no_answer(openai: Asked, odd: Json, usage: Usage) -> None:
    message = await openai.told(*chosen({"content": "Hi"}, usage=COUNTS | odd))
    assert (message.text, message.usage) == ("Hi", usage)


@pytest.mark.parametrize("odd", [[], "none", 0, [COUNTS]])
async def test_usage_of_another_kind_costs_no_answer(openai: Asked, odd: Any) -> None:
    message = await openai.told(*chosen({"content": "Hi"}, usage=odd))
    assert (message.text, message.usage) == ("Hi", Usage())


async def test_usage_may_be_in_the_choice(openai: Asked) -> None:
    whole, event = chosen({"content": "Hi"})
    for each in (whole, event):
        each["choices"][0]["usage"] = COUNTS
    assert (await openai.told(whole, event)).usage == Usage(5, 2, 4)


@pytest.mark.parametrize(
    ("said", "args"),
    [(None, {}), ("", {}), ("null", {}), ({"a": 1}, {"a": 1}), ('"{\\"a\\": 1}"', {"a": 1}), ('{"a": 1}\n', {"a": 1})],
)
async def test_arguments_come_in_many_forms(openai: Asked, said: Any, args: Json) -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "read", "arguments": said}}
    assert (await openai.told(*chosen({"tool_calls": [call]}))).tool_calls == [ToolCall("c1", "read", args)]


@pytest.mark.parametrize(
    "message", [{"content": 5}, {"content": {"text": "Hi"}}, {"tool_calls": "read"}, {"tool_calls": [{"id": []}]}]
)
async def test_words_and_calls_that_cannot_be_read_are_a_failure(openai: Asked, message: Json) -> None:
    assert await openai.failed(*chosen({"content": "Hi"} | message)) in {
        "openai:m: its stream is damaged",
        "openai:m: its answer is not a chat completion in OpenAI's format",
    }


# Anthropic


def blocks(*content: Json, **fields: Any) -> tuple[Json, ...]:
    """A response with that content, and the events of the same as a stream."""
    starts = [{"type": "content_block_start", "index": n, "content_block": each} for n, each in enumerate(content)]
    begin = {"type": "message_start", "message": {"id": None, "stop_reason": None} | fields}
    stop = {"type": "message_delta", "index": None, "delta": {"stop_reason": "tool_use"}, "usage": None}
    whole = {"id": None, "content": [*content], "stop_reason": "tool_use", "error": None} | fields
    return whole, begin, *starts, stop


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": None}
SAID = {"type": "text", "text": "I look.", "citations": None}
CALL = {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a", "lines": None}, "caller": None}


async def test_nulls_of_blocks_are_as_if_they_were_not_there(anthropic: Asked) -> None:
    assert (await anthropic.told(*blocks(THOUGHT, SAID, CALL))).content == CONTENT


@pytest.mark.parametrize("name", ["text", "thinking", "partial_json", "signature", "citation", "stop_reason"])
async def test_null_in_a_delta_adds_nothing(name: str) -> None:
    begun = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "!", name: None}}
    words = "Hi" if name == "text" else "Hi!"
    with LoopbackAnthropic() as server:
        message = await Asked(server, AnthropicModel, stream=True).told(None, begun, delta, blocks()[-1])
    assert message.text == words


@pytest.mark.parametrize("odd", [[], "none", {"input_tokens": {}}, {"input_tokens": -1}, {"input_tokens": 10**400}])
async def test_counts_that_are_none_cost_no_answer(anthropic: Asked, odd: Any) -> None:
    message = await anthropic.told(*blocks(SAID, usage=odd))
    assert (message.text, message.usage) == ("I look.", Usage())


async def test_calls_without_ids_of_their_own_are_given_some(anthropic: Asked) -> None:
    message = await anthropic.told(*blocks(CALL | {"id": None}, CALL | {"id": ""}))
    first, second = [each.id for each in message.tool_calls]
    assert first
    assert second
    assert first != second


@pytest.mark.parametrize("content", [[], None])
async def test_answer_with_nothing_in_it_is_a_failure(content: Any) -> None:
    with LoopbackAnthropic() as server:
        told = await Asked(server, AnthropicModel, stream=False).failed({"content": content})
    assert told == "anthropic:m: its answer is empty"


async def test_answer_in_one_piece_that_does_not_say_why_it_ends_is_whole() -> None:
    with LoopbackAnthropic() as server:
        message = await Asked(server, AnthropicModel, stream=False).told({"content": [SAID]})
    assert (message.text, message.stop_reason) == ("I look.", "end")


# Both


@pytest.mark.parametrize("make", [LoopbackOpenAI, LoopbackAnthropic])
@pytest.mark.parametrize("lead", [b"\xef\xbb\xbf", b"\r\n \n"])
async def test_what_comes_before_an_answer_does_no_harm(make: type[LoopbackServer], lead: bytes) -> None:
    client = OpenAIModel if make is LoopbackOpenAI else AnthropicModel
    with make() as server:
        said = AssistantMessage([Text("Hello")])
        server.send(lead, server.wire.whole(said), content_type="application/json")
        server.send(lead, *server.wire.streamed(said))
        for stream in (False, True):
            told = await call(client("m", base_url=server.base_url), request(stream=stream))
            assert answer(told).text == "Hello"


async def test_thousands_of_nulls_are_given_up() -> None:
    nulls = [{"index": number, "delta": None, "usage": {"cost": 1, "prompt_tokens": []}} for number in range(5_000)]
    with LoopbackOpenAI() as server:
        told = await Asked(server, OpenAIModel, stream=True).failed(None, {"choices": nulls})
    assert told == "openai:m: its stream is damaged"


async def test_body_that_is_no_text_says_nothing() -> None:
    with LoopbackOpenAI() as server:
        server.fail(502, b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcbH\xcd\xc9\xc9\x07\x00\x86\xa6\x106\x05")
        told = failure(await call(OpenAIModel("m", base_url=server.base_url)))
    assert told.message == "openai:m: Bad Gateway (HTTP 502)"


async def test_thought_tokens_and_writes_for_an_hour_are_counted_apart(
    loopback_openai: LoopbackOpenAI, loopback_anthropic: LoopbackAnthropic
) -> None:
    counts = {"prompt_tokens": 9, "completion_tokens": 7, "completion_tokens_details": {"reasoning_tokens": 5}}
    whole = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": counts}
    assert (await Asked(loopback_openai, OpenAIModel, stream=False).told(whole)).usage == Usage(9, 7, reasoning=5)
    written = {"cache_creation_input_tokens": 30, "cache_creation": {"ephemeral_1h_input_tokens": 20}}
    whole = {"content": [{"type": "text", "text": "x"}], "usage": {"input_tokens": 1, "output_tokens": 2, **written}}
    usage = (await Asked(loopback_anthropic, AnthropicModel, stream=False).told(whole)).usage
    assert usage == Usage(1, 2, cache_write=30, cache_write_1h=20)
