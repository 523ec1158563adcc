"""Answers of Gemini that the recordings don't have: odd stops, calls in pieces, lists, what proxies make of streams."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.models.calls import answer, call, failure, request

from denizen.events import Failed, StreamEvent, TextDelta, TextEnd, ThinkingEnd, ToolCallDelta, ToolCallEnd
from denizen.messages import AssistantMessage, Opaque, Text, Thinking, Usage
from denizen.models.gemini import GeminiModel
from denizen.testing import LoopbackGemini


def chunk(*parts: Any, stop: str = "", **fields: Any) -> dict[str, Any]:
    """An event, or a whole response."""
    candidate = {"content": {"role": "model", "parts": [*parts]}, **({"finishReason": stop} if stop else {})}
    return {"candidates": [candidate], **fields}


def stream(*chunks: Any, end: bytes = b"\n\n") -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + end for each in chunks)


async def heard(server: LoopbackGemini, body: bytes, content_type: str = "text/event-stream") -> list[StreamEvent]:
    """The events that a body becomes."""
    server.send(body, content_type=content_type)
    asked = request(stream=content_type == "text/event-stream")
    return await call(GeminiModel("gemini-3.5-flash", api_key="key", base_url=server.base_url), asked)


async def read(server: LoopbackGemini, *chunks: Any) -> AssistantMessage:
    return answer(await heard(server, stream(*chunks)))


HALF = chunk({"text": "Half"})


@pytest.mark.parametrize(
    "reason",
    [
        *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"),
        *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
    ],
)
async def test_withheld_answer_is_a_refusal_that_says_why(loopback_gemini: LoopbackGemini, reason: str) -> None:
    events = await heard(loopback_gemini, stream(HALF, chunk(stop=reason)))
    message = answer(events)
    assert message.stop_reason == "refusal"
    assert message.text == f"Half\n\n[withheld by google: {reason}]"
    assert "".join(event.delta for event in events if isinstance(event, TextDelta)) == message.text


async def test_refusal_has_the_providers_own_words(loopback_gemini: LoopbackGemini) -> None:
    withheld = {"candidates": [{"finishReason": "RECITATION", "finishMessage": "A poem."}]}
    assert (await read(loopback_gemini, withheld)).text == "[withheld by google: RECITATION: A poem.]"
    blocked = {"promptFeedback": {"blockReason": "BLOCKLIST", "blockReasonMessage": "A word."}}
    message = await read(loopback_gemini, blocked)
    assert (message.text, message.stop_reason) == ("[withheld by google: BLOCKLIST: A word.]", "refusal")


async def test_refusal_that_is_repeated_is_said_once(loopback_gemini: LoopbackGemini) -> None:
    blocked = {"promptFeedback": {"blockReason": "BLOCKLIST"}}
    assert (await read(loopback_gemini, blocked, blocked)).text == "[withheld by google: BLOCKLIST]"


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "OTHER", "UNEXPECTED_TOOL_CALL"])
async def test_answer_that_is_botched_is_asked_for_again(loopback_gemini: LoopbackGemini, reason: str) -> None:
    last = {"candidates": [{"finishReason": reason, "finishMessage": "call:read{n:"}]}
    error = failure(await heard(loopback_gemini, stream(HALF, last)))
    assert error.kind == "timeout"
    assert error.message == f"google:gemini-3.5-flash: it broke its answer off ({reason}: call:read{{n:)"


@pytest.mark.parametrize("reason", ["STOP", "FINISH_REASON_UNSPECIFIED", "OF_TOMORROW"])
async def test_other_stops_are_ends(loopback_gemini: LoopbackGemini, reason: str) -> None:
    message = await read(loopback_gemini, HALF, chunk(stop=reason))
    assert (message.content, message.stop_reason) == ([Text("Half")], "end")


def partial(*pieces: dict[str, Any], more: bool = True) -> dict[str, Any]:
    return chunk({"functionCall": {"partialArgs": [*pieces], **({"willContinue": True} if more else {})}})


BEGUN = chunk({"functionCall": {"name": "write", "willContinue": True}, "thoughtSignature": "c2ln"})
PIECES = [
    {"jsonPath": "$.rows[0].name", "stringValue": "a", "willContinue": True},
    {"jsonPath": "$.rows[0].name", "stringValue": "b"},
    {"jsonPath": "$.rows[0]['in stock']", "boolValue": False},
    {"jsonPath": "$.rows[1]", "nullValue": "NULL_VALUE"},
    {"jsonPath": "$.count", "numberValue": 0},
    {"jsonPath": "$.unit", "stringValue": "kg"},
    {"jsonPath": "$.unit", "stringValue": "g"},
]


async def test_arguments_of_a_call_may_come_one_by_one(loopback_gemini: LoopbackGemini) -> None:
    chunks = [BEGUN, *(partial(piece) for piece in PIECES), partial(more=False), chunk(stop="STOP")]
    events = await heard(loopback_gemini, stream(*chunks))
    message = answer(events)
    [made] = message.tool_calls
    assert made.args == {"rows": [{"name": "ab", "in stock": False}, None], "count": 0, "unit": "g"}
    assert message.content[1:] == [Opaque("google", {"thoughtSignature": "c2ln"})]
    assert [event.call for event in events if isinstance(event, ToolCallEnd)] == [made]
    told = "".join(event.delta for event in events if isinstance(event, ToolCallDelta))
    assert json.loads(told) == made.args


@pytest.mark.parametrize("path", ["", "$", "$.a.b", "$[0]", "$.rows[7]"])
async def test_arguments_without_a_place_damage_the_stream(loopback_gemini: LoopbackGemini, path: str) -> None:
    first = {"jsonPath": "$.a", "stringValue": "x"}
    chunks = [BEGUN, partial(first, {"jsonPath": path, "stringValue": "y"}), chunk(stop="STOP")]
    error = failure(await heard(loopback_gemini, stream(*chunks)))
    assert (error.kind, error.message) == ("timeout", "google:gemini-3.5-flash: its stream is damaged")


@pytest.mark.parametrize(
    ("args", "expected"), [(None, {}), ({}, {}), ([1], {"invalid_json": "[1]"}), ("x", {"invalid_json": '"x"'})]
)
async def test_arguments_that_are_none_are_kept(loopback_gemini: LoopbackGemini, args: Any, expected: Any) -> None:
    [made] = (await read(loopback_gemini, chunk({"functionCall": {"name": "f", "args": args}}, stop="STOP"))).tool_calls
    assert made.args == expected


async def test_calls_without_ids_get_their_own(loopback_gemini: LoopbackGemini) -> None:
    part = {"functionCall": {"name": "f"}}
    message = await read(loopback_gemini, chunk(part, part), chunk(part, stop="STOP"))
    assert len({each.id for each in message.tool_calls}) == 3
    assert message.stop_reason == "tool_calls"


async def test_parts_end_where_another_kind_begins(loopback_gemini: LoopbackGemini) -> None:
    chunks = [chunk({"text": "Hm", "thought": True}), chunk({"text": ".", "thought": True}), HALF, chunk(stop="STOP")]
    events = await heard(loopback_gemini, stream(*chunks))
    assert answer(events).content == [Thinking("Hm."), Text("Half")]
    assert [event.text for event in events if isinstance(event, ThinkingEnd | TextEnd)] == ["Hm.", "Half"]


async def test_only_the_first_candidate_counts(loopback_gemini: LoopbackGemini) -> None:
    second = {"index": 1, "content": {"parts": [{"text": "Second"}]}, "finishReason": "SAFETY"}
    both = chunk({"text": "First"}, stop="STOP")
    both["candidates"].append(second)
    assert (await read(loopback_gemini, both)).content == [Text("First")]


COUNTS: Sequence[tuple[dict[str, int], Usage]] = [
    ({}, Usage()),
    ({"promptTokenCount": 5}, Usage(5)),
    ({"promptTokenCount": 5, "thoughtsTokenCount": 7}, Usage(5, 7, reasoning=7)),
    ({"promptTokenCount": 50, "cachedContentTokenCount": 40, "candidatesTokenCount": 3}, Usage(10, 3, 40)),
    ({"promptTokenCount": 5, "toolUsePromptTokenCount": 9, "candidatesTokenCount": 3}, Usage(14, 3)),
    ({"promptTokenCount": -1, "candidatesTokenCount": 3}, Usage(None, 3)),
]


@pytest.mark.parametrize(("counts", "usage"), COUNTS)
async def test_usage(loopback_gemini: LoopbackGemini, counts: dict[str, int], usage: Usage) -> None:
    first = chunk({"text": "x"}, usageMetadata={"promptTokenCount": 1})
    assert (await read(loopback_gemini, first, chunk(stop="STOP", usageMetadata=counts))).usage == usage


# Frames


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
async def test_lines_may_end_in_any_way(loopback_gemini: LoopbackGemini, end: bytes) -> None:
    body = stream(HALF, chunk({"text": " and half"}, stop="STOP"), end=end)
    assert answer(await heard(loopback_gemini, body)).text == "Half and half"


LISTED = [chunk({"text": "Hm", "thought": True}), HALF, chunk({"functionCall": {"name": "f"}}), chunk(stop="STOP")]


async def test_stream_that_comes_as_a_list(loopback_gemini: LoopbackGemini) -> None:
    """As without `alt=sse`, which a proxy may have lost."""
    body = b"[" + b"\n,\r\n".join(json.dumps(each).encode() for each in LISTED) + b"]"
    loopback_gemini.send(body, content_type="application/json")
    client = GeminiModel("gemini-3.5-flash", api_key="key", base_url=loopback_gemini.base_url)
    message = answer(await call(client, request(stream=True)))
    assert [*map(type, message.content[:2])] == [Thinking, Text]
    assert (len(message.tool_calls), message.stop_reason) == (1, "tool_calls")


@pytest.mark.parametrize("kept", range(1, len(LISTED)))
async def test_list_that_is_cut_is_a_failure(loopback_gemini: LoopbackGemini, kept: int) -> None:
    pieces = [json.dumps(each).encode() for each in LISTED[:kept]]
    for body in (b"[" + b",".join(pieces), b"[" + b",".join(pieces) + b"]", b"[" + b",".join(pieces)[:-9]):
        assert failure(await heard(loopback_gemini, body, "application/json")).kind == "timeout"


async def test_error_in_a_list(loopback_gemini: LoopbackGemini) -> None:
    error = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    for body in ([error], [*LISTED[:1], error]):
        told = failure(await heard(loopback_gemini, json.dumps(body).encode(), "application/json"))
        assert (told.kind, told.status) == ("timeout", 503)


async def test_error_inside_a_stream(loopback_gemini: LoopbackGemini) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2.5s"}]
    error = {"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED", "details": details}}
    events = await heard(loopback_gemini, stream(HALF, error))
    assert isinstance(events[-1], Failed)
    told = failure(events)
    assert (told.kind, told.status, told.retry_after) == ("rate_limit", 429, 2.5)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"null", b"[]", b'"hi"', b"{", b'{"candidates": []}', b'{"candidates": [{}]}']
)
async def test_body_without_an_answer_is_a_failure(loopback_gemini: LoopbackGemini, body: bytes) -> None:
    told = await heard(loopback_gemini, body, "application/json")
    assert isinstance(told[-1], Failed)
