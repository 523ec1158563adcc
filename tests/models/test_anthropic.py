"""What goes to Anthropic, and what comes back from there."""

import base64
import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from tests.models.calls import answer, call, failure, request

from denizen.events import Finished, Retrying, ThinkingDelta, ToolCallDelta, ToolCallEnd
from denizen.messages import (
    AssistantMessage,
    AssistantPart,
    Image,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from denizen.models.anthropic import AnthropicModel
from denizen.models.providers import Provider
from denizen.ports import ModelRequest, Schema
from denizen.testing import LoopbackAnthropic

OK = AssistantMessage([Text("ok")])
HI = UserMessage([Text("Hi")], "m1")
READ = Schema("read", "Read a file.", {"type": "object", "properties": {}})
GREP = Schema("grep", "Search.", {"type": "object", "properties": {}})
MARK = {"type": "ephemeral"}
NAME = "anthropic:claude-sonnet-4-5"


def model(
    server: LoopbackAnthropic, name: str = "claude-sonnet-4-5", provider: Provider | None = None
) -> AnthropicModel:
    return AnthropicModel(name, provider, api_key="key-0123456789", base_url=server.base_url)


async def sent(server: LoopbackAnthropic, asked: ModelRequest, name: str = "claude-sonnet-4-5") -> Any:
    """The body that the server gets."""
    server.say(OK)
    answer(await call(model(server, name), asked))
    return server.requests[-1].json


def unmarked(messages: Sequence[Any]) -> list[Any]:
    """The messages without their cache markers."""
    for message in messages:
        for block in message["content"]:
            block.pop("cache_control", None)
    return [*messages]


# Requests


async def test_request_says_what_is_asked(loopback_anthropic: LoopbackAnthropic) -> None:
    body = await sent(loopback_anthropic, request(system="Be brief.", max_tokens=99))
    assert body == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 99,
        "stream": True,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": MARK}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": MARK}]}],
    }
    [received] = loopback_anthropic.requests
    assert received.path == "/v1/messages"
    assert received.headers["x-api-key"] == "key-0123456789"
    assert received.headers["anthropic-version"] == "2023-06-01"


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
async def test_base_url_is_taken_with_or_without_its_version(
    loopback_anthropic: LoopbackAnthropic, suffix: str
) -> None:
    loopback_anthropic.say(OK)
    await call(AnthropicModel("m", base_url=loopback_anthropic.base_url + suffix))
    assert loopback_anthropic.requests[0].path == "/v1/messages"


async def test_tools_system_and_the_last_two_turns_of_the_user_are_cached(
    loopback_anthropic: LoopbackAnthropic,
) -> None:
    messages = [HI, AssistantMessage([Text("Yes?")]), HI, AssistantMessage([Text("Yes?")]), HI]
    body = await sent(loopback_anthropic, request(*messages, system="Be brief.", tools=(READ, GREP)))
    marked = [["cache_control" in block for block in message["content"]] for message in body["messages"]]
    assert marked == [[False], [False], [True], [False], [True]]
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]
    assert json.dumps(body).count("cache_control") == 4


async def test_results_come_first_and_are_one_message_with_what_the_user_said(
    loopback_anthropic: LoopbackAnthropic,
) -> None:
    calls = AssistantMessage([ToolCall("c1", "read", {"path": "a"}), ToolCall("c2", "grep", {})])
    results = [
        ToolResult("c1", "read", [Text("A")]),
        UserMessage([Text("Quick!")]),
        ToolResult("c2", "grep", [Text("B")]),
    ]
    body = await sent(loopback_anthropic, request(HI, calls, *results))
    assert unmarked(body["messages"])[1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "c2", "name": "grep", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "A"}]},
                {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "B"}]},
                {"type": "text", "text": "Quick!"},
            ],
        },
    ]


async def test_results_may_hold_pictures_errors_or_nothing(loopback_anthropic: LoopbackAnthropic) -> None:
    picture = Image("image/png", b"\x89PNG\x00")
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(picture.data).decode()}
    results = [
        ToolResult("c1", "view", [Text("see"), picture]),
        ToolResult("c2", "bash", [Text("no")], is_error=True),
        ToolResult("c3", "bash", []),
    ]
    calls = AssistantMessage([ToolCall(f"c{number}", "view", {}) for number in (1, 2, 3)])
    body = await sent(loopback_anthropic, request(HI, calls, *results))
    assert unmarked(body["messages"])[2]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "c1",
            "content": [{"type": "text", "text": "see"}, {"type": "image", "source": source}],
        },
        {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "no"}], "is_error": True},
        {"type": "tool_result", "tool_use_id": "c3"},
    ]


async def test_ids_of_other_providers_are_put_in_allowed_letters(loopback_anthropic: LoopbackAnthropic) -> None:
    messages = [
        HI,
        AssistantMessage([ToolCall("functions.read:0", "read", {})]),
        ToolResult("functions.read:0", "read", []),
    ]
    body = await sent(loopback_anthropic, request(*messages))
    used, result = body["messages"][1]["content"][0], body["messages"][2]["content"][0]
    assert used["id"] == result["tool_use_id"] == "functions_read_0"


@pytest.mark.parametrize(
    "content", [[], [Text("")], [Text(" \n")], [Thinking("hm")], [Opaque("openai", {"type": "x"})]]
)
async def test_answers_without_anything_to_send_are_left_out(
    loopback_anthropic: LoopbackAnthropic, content: list[AssistantPart]
) -> None:
    body = await sent(loopback_anthropic, request(HI, AssistantMessage(content), HI))
    assert [message["role"] for message in body["messages"]] == ["user", "user"]


async def test_options_go_along_as_they_are(loopback_anthropic: LoopbackAnthropic) -> None:
    options = {
        "temperature": 0.5,
        "top_p": None,
        "stop": ["END"],
        "extra_body": {"thinking": {"type": "enabled"}, "tools": [{"type": "web_search"}], "max_tokens": 7},
    }
    body = await sent(loopback_anthropic, request(options=options, tools=(READ,)))
    assert body["temperature"] == 0.5
    assert body["stop_sequences"] == ["END"]
    assert body["thinking"] == {"type": "enabled"}
    assert body["max_tokens"] == 7
    assert [tool.get("name") or tool["type"] for tool in body["tools"]] == ["read", "web_search"]
    assert not {"top_p", "stop", "extra_body"} & body.keys()


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("claude-sonnet-4-5", True),
        ("claude-opus-4-1-20250805", True),
        ("claude-haiku-6", True),
        ("claude-sonnet-4-20250514", False),
        ("claude-3-7-sonnet-latest", False),
    ],
)
async def test_schema_of_the_answer_goes_to_models_that_know_it(
    loopback_anthropic: LoopbackAnthropic, name: str, *, takes: bool
) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
    body = await sent(loopback_anthropic, request(output_schema=schema), name)
    closed = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    assert body.get("output_config") == ({"format": {"type": "json_schema", "schema": closed}} if takes else None)


# What only the provider understands

SEARCHED = [
    {"type": "thinking", "thinking": "Let me search.", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "x"},
    {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "denizen"}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srv_1",
        "content": [{"type": "web_search_result", "page_age": None}],
    },
    {"type": "text", "text": "An inhabitant.", "citations": [{"type": "char_location", "cited_text": "An inhabitant"}]},
    {
        "type": "tool_use",
        "id": "c1",
        "name": "read",
        "input": {},
        "caller": {"type": "code_execution", "tool_id": "srv_1"},
    },
    {"type": "of_tomorrow", "anything": [1, 2]},
]


async def received(server: LoopbackAnthropic, *blocks: Any, stream: bool = True) -> AssistantMessage:
    """The message that these blocks become."""
    server.say(AssistantMessage([Opaque("anthropic", block) for block in blocks], stop_reason="tool_calls"))
    return answer(await call(model(server), request(stream=stream)))


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "in one piece"])
async def test_every_block_goes_back_unchanged_and_in_place(
    loopback_anthropic: LoopbackAnthropic, *, stream: bool
) -> None:
    message = await received(loopback_anthropic, *SEARCHED, stream=stream)
    assert message.text == "An inhabitant."
    assert message.tool_calls == [ToolCall("c1", "read", {})]
    assert message.content[0] == Thinking("Let me search.", "c2ln")
    body = await sent(loopback_anthropic, request(HI, message, ToolResult("c1", "read", [])))
    assert body["messages"][1] == {"role": "assistant", "content": SEARCHED}


async def test_blocks_survive_being_stored(loopback_anthropic: LoopbackAnthropic) -> None:
    message = await received(loopback_anthropic, *SEARCHED)
    stored = msgspec.json.decode(msgspec.json.encode(message), type=AssistantMessage)
    body = await sent(loopback_anthropic, request(HI, stored, ToolResult("c1", "read", [])))
    assert body["messages"][1]["content"] == SEARCHED


async def test_another_provider_gets_words_and_calls_alone(loopback_anthropic: LoopbackAnthropic) -> None:
    message = await received(loopback_anthropic, *SEARCHED)
    loopback_anthropic.say(OK)
    await call(model(loopback_anthropic, "m", Provider("proxy", api="anthropic")), request(HI, message, HI))
    assert loopback_anthropic.requests[-1].json["messages"][1]["content"] == [
        {"type": "text", "text": "An inhabitant."},
        {"type": "tool_use", "id": "c1", "name": "read", "input": {}},
    ]


async def test_thoughts_of_others_stay_away(loopback_anthropic: LoopbackAnthropic) -> None:
    thought = AssistantMessage([Thinking("hm", "c2ln"), Text("Yes.")], "deepseek:deepseek-chat")
    unsigned = AssistantMessage([Thinking("hm"), Text("Yes.")], NAME)
    body = await sent(loopback_anthropic, request(HI, thought, HI, unsigned, HI))
    assert [len(message["content"]) for message in body["messages"]] == [1, 1, 1, 1, 1]


BOUND = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


def thought_in(body: Any) -> list[str]:
    """The signatures of the thoughts that a request holds."""
    blocks = [block for message in body["messages"] for block in message["content"]]
    return [block.get("signature") or block["data"] for block in blocks if "thinking" in block["type"]]


async def test_thoughts_are_left_out_once_the_conversation_before_them_changed(
    loopback_anthropic: LoopbackAnthropic,
) -> None:
    client = model(loopback_anthropic, "claude-sonnet-5-5")
    hidden = Opaque("anthropic", {"type": "redacted_thinking", "data": "b2xk"})
    old = AssistantMessage([Thinking("hm", "c2ln"), hidden, Text("Yes.")], NAME)
    new = AssistantMessage([Thinking("so", "bmV3"), Text("No.")], NAME)
    other = AssistantMessage([Thinking("well", "b3RoZXI="), Text("Oh.")], NAME)
    loopback_anthropic.fail(400, BOUND)
    loopback_anthropic.say(OK, OK, OK)
    assert answer(await call(client, request(HI, old, HI, session_key="work"))).text == "ok"
    answer(await call(client, request(HI, old, HI, new, HI, session_key="work")))
    answer(await call(client, request(HI, other, HI, session_key="play")))
    held = [thought_in(received.json) for received in loopback_anthropic.requests]
    assert held == [["c2ln", "b2xk"], [], ["bmV3"], ["b3RoZXI="]]


async def test_refused_thought_that_was_not_sent_fails_the_call(loopback_anthropic: LoopbackAnthropic) -> None:
    loopback_anthropic.fail(400, BOUND)
    assert "Invalid `signature`" in str(failure(await call(model(loopback_anthropic))))
    assert len(loopback_anthropic.requests) == 1


# Answers


async def test_usage_leaves_out_what_the_provider_does_not_say(loopback_anthropic: LoopbackAnthropic) -> None:
    for usage in (Usage(1, 2), Usage(1, 2, 3, 4), Usage(0, 0, 0, 0)):
        loopback_anthropic.say(AssistantMessage([Text("ok")], usage=usage))
        assert answer(await call(model(loopback_anthropic))).usage == usage


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("max_tokens", "length"),
        ("refusal", "refusal"),
        ("of_tomorrow", "end"),
    ],
)
async def test_reason_to_stop_is_reported(loopback_anthropic: LoopbackAnthropic, told: str, reason: str) -> None:
    stream = b"".join(loopback_anthropic.wire.streamed(OK)).replace(b"end_turn", told.encode())
    loopback_anthropic.send(stream)
    assert answer(await call(model(loopback_anthropic))).stop_reason == reason


async def test_answer_names_its_model(loopback_anthropic: LoopbackAnthropic) -> None:
    loopback_anthropic.say(OK)
    assert answer(await call(model(loopback_anthropic))).model == NAME


def events(
    *blocks: tuple[dict[str, Any], Sequence[dict[str, Any]]], stop: str = "tool_use", ended: bool = True
) -> bytes:
    """A stream of blocks, each with how it starts and what is added."""
    told: list[Any] = [{"type": "message_start", "message": {"id": "1", "usage": {"input_tokens": 1}}}]
    for index, (start, deltas) in enumerate(blocks):
        told.append({"type": "content_block_start", "index": index, "content_block": start})
        told += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        told += [{"type": "content_block_stop", "index": index}] if ended else []
    told.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 2}})
    told.append({"type": "message_stop"})
    return b"".join(b"event: %s\ndata: %s\n\n" % (each["type"].encode(), json.dumps(each).encode()) for each in told)


def args(*pieces: str) -> list[dict[str, Any]]:
    return [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


CALL = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ((), {}),
        (("",), {}),
        (('{"pa', 'th": "ä"}'), {"path": "ä"}),
        (('{"path": "a\nb"}',), {"path": "a\nb"}),
        (('{"big": 123456789012345678901234567890}',), {"big": 123456789012345678901234567890}),
        ((r'{"half": "\ud83d"}',), {"half": "\ufffd"}),
        (('{"path": ',), {"invalid_json": '{"path": '}),
        (('["a"]',), {"invalid_json": '["a"]'}),
        (("[" * 100_000,), {"invalid_json": "[" * 100_000}),
    ],
)
async def test_arguments_are_read_and_what_cannot_be_read_is_kept(
    loopback_anthropic: LoopbackAnthropic, pieces: Sequence[str], expected: dict[str, Any]
) -> None:
    loopback_anthropic.send(events((CALL, args(*pieces))))
    told = await call(model(loopback_anthropic))
    assert answer(told).tool_calls == [ToolCall("c1", "read", expected)]
    assert [event.call.args for event in told if isinstance(event, ToolCallEnd)] == [expected]
    assert "".join(event.delta for event in told if isinstance(event, ToolCallDelta)) == "".join(pieces)


async def test_call_cut_off_by_the_limit_says_so(loopback_anthropic: LoopbackAnthropic) -> None:
    loopback_anthropic.send(events((CALL, args('{"path": "a')), stop="max_tokens", ended=False))
    message = answer(await call(model(loopback_anthropic)))
    assert message.stop_reason == "length"
    assert message.tool_calls == [ToolCall("c1", "read", {"invalid_json": '{"path": "a'})]


async def test_answer_with_calls_stopped_for_them_whatever_the_server_says(
    loopback_anthropic: LoopbackAnthropic,
) -> None:
    loopback_anthropic.send(events((CALL, args("{}")), stop="end_turn"))
    assert answer(await call(model(loopback_anthropic))).stop_reason == "tool_calls"


async def test_answer_begun_anew_takes_back_what_had_streamed(loopback_anthropic: LoopbackAnthropic) -> None:
    begun = events(*[({"type": "text", "text": ""}, [{"type": "text_delta", "text": "old "}])] * 3)
    begun = begun[: begun.index(b"event: message_delta")]
    anew = events(({"type": "text", "text": ""}, [{"type": "text_delta", "text": "new"}]), stop="end_turn")
    loopback_anthropic.send(begun, anew.replace(b'"id": "1"', b'"id": "2"'))
    told = await call(model(loopback_anthropic))
    assert answer(told).content == [Text("new")]
    assert [event.withdrawn for event in told if isinstance(event, Retrying)] == ["old old old "]


async def test_provider_that_pauses_amid_its_tools_is_asked_to_go_on(loopback_anthropic: LoopbackAnthropic) -> None:
    searching = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
    cached = b'"output_tokens": 2, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 4'
    begun = events((searching, []), stop="pause_turn").replace(b'"output_tokens": 2', cached)
    loopback_anthropic.send(begun)
    said = ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "Found."}])
    loopback_anthropic.send(events((found, []), said, stop="end_turn").replace(b'"output_tokens": 2', cached))
    told = await call(model(loopback_anthropic))
    message = answer(told)
    assert message.content == [
        Opaque("anthropic", searching),
        Opaque("anthropic", found, untrusted=True),
        Text("Found."),
    ]
    assert (message.stop_reason, message.usage) == ("end", Usage(2, 4, 60, 8))
    assert len([event for event in told if isinstance(event, Finished)]) == 1
    first, second = (received.json["messages"] for received in loopback_anthropic.requests)
    assert second == [*first, {"role": "assistant", "content": [searching]}]


async def test_provider_is_not_asked_to_go_on_for_ever(loopback_anthropic: LoopbackAnthropic) -> None:
    for _ in range(20):
        loopback_anthropic.send(events(({"type": "text", "text": "x"}, []), stop="pause_turn"))
    assert answer(await call(model(loopback_anthropic))).text == "x" * 11


async def test_unknown_kinds_of_deltas_are_kept(loopback_anthropic: LoopbackAnthropic) -> None:
    start = {"type": "of_tomorrow", "content": None, "count": 1}
    deltas = [{"type": "x_delta", "content": "a"}, {"type": "x_delta", "content": "b", "count": 2, "new": [1]}]
    loopback_anthropic.send(events((start, deltas), stop="end_turn"))
    message = answer(await call(model(loopback_anthropic)))
    block = {"type": "of_tomorrow", "content": "ab", "count": 2, "new": [1]}
    assert message.content == [Opaque("anthropic", block, untrusted=True)]


async def test_blocks_that_were_not_announced_are_taken(loopback_anthropic: LoopbackAnthropic) -> None:
    stream = events(({"type": "text", "text": ""}, [{"type": "thinking_delta", "thinking": "hm"}]), stop="end_turn")
    loopback_anthropic.send(stream.replace(b"content_block_start", b"content_block_omitted"))
    told = await call(model(loopback_anthropic))
    assert [event.delta for event in told if isinstance(event, ThinkingDelta)] == ["hm"]
    assert answer(told).content == [Thinking("hm")]
