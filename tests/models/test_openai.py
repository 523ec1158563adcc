"""What comes back from servers that speak OpenAI's format, quirks included."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.models.calls import answer, call, failure, request
from tests.models.chat import HI, model, sent

from denizen.events import TextDelta, ThinkingDelta, ToolCallDelta, ToolCallEnd
from denizen.messages import AssistantMessage, AssistantPart, Opaque, Text, Thinking, ToolCall, ToolResult, Usage
from denizen.testing import LoopbackOpenAI, Step


async def received(server: LoopbackOpenAI, *chunks: Any, provider: str = "openai") -> AssistantMessage:
    """The message that these chunks become."""
    server.send(*events(*chunks))
    return answer(await call(model(server, provider)))


def events(*chunks: Any) -> list[bytes]:
    return [b"data: %s\n\n" % json.dumps(each).encode() for each in chunks] + [b"data: [DONE]\n\n"]


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def piece(arguments: Any = None, **fields: Any) -> dict[str, Any]:
    """A piece of a tool call."""
    name = fields.pop("name", None)
    return delta(tool_calls=[fields | {"function": {"name": name, "arguments": arguments}}])


STOP = delta("stop")


# Answers


async def test_words_and_thoughts_come_in_their_order(loopback_openai: LoopbackOpenAI) -> None:
    told = [
        delta(role="assistant", content=""),
        delta(reasoning_content="h"),
        delta(reasoning="m"),
        delta(content="He"),
        delta(content="y", reasoning_content=None),
        delta(reasoning="?"),
        delta(content="!"),
        STOP,
    ]
    message = await received(loopback_openai, *told)
    assert message.content == [Thinking("hm"), Text("Hey"), Thinking("?"), Text("!")]
    assert message.model == "openai:m"


async def test_content_may_be_a_list(loopback_openai: LoopbackOpenAI) -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    parts = [thought, {"type": "text", "text": "Yes"}, {"type": "reference", "reference_ids": [1]}]
    assert (await received(loopback_openai, delta(content=parts), STOP)).content == [Thinking("hm"), Text("Yes")]


async def test_refusal_is_text_and_a_reason_to_stop(loopback_openai: LoopbackOpenAI) -> None:
    message = await received(loopback_openai, delta(refusal="I can't."), STOP)
    assert (message.text, message.stop_reason) == ("I can't.", "refusal")


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("stop", "end"),
        ("length", "length"),
        ("content_filter", "refusal"),
        ("content_filter: RECITATION", "refusal"),
        ("sensitive", "refusal"),
        ("eos", "end"),
        ("tool_calls", "end"),
    ],
)
async def test_reason_to_stop_is_reported(loopback_openai: LoopbackOpenAI, told: str, reason: str) -> None:
    assert (await received(loopback_openai, delta(content="x"), delta(told))).stop_reason == reason


async def test_answer_with_calls_stopped_for_them_whatever_the_server_says(loopback_openai: LoopbackOpenAI) -> None:
    message = await received(loopback_openai, piece("{}", index=0, id="c1", name="read"), STOP)
    assert message.stop_reason == "tool_calls"


async def test_end_s_mark_may_be_missing(loopback_openai: LoopbackOpenAI) -> None:
    loopback_openai.send(*events(delta(content="x"), STOP)[:-1])
    assert answer(await call(model(loopback_openai))).text == "x"


async def test_reason_to_stop_may_be_missing_where_the_end_is_marked(loopback_openai: LoopbackOpenAI) -> None:
    assert (await received(loopback_openai, delta(content="x"))).text == "x"


async def test_end_without_a_word_is_no_answer(loopback_openai: LoopbackOpenAI) -> None:
    loopback_openai.send(*events())
    assert failure(await call(model(loopback_openai))).kind == "timeout"


async def test_connection_lost_after_the_answer_does_no_harm(loopback_openai: LoopbackOpenAI) -> None:
    loopback_openai.send(*events(delta(content="x"), STOP)[:-1], Step.HANG_UP)
    assert answer(await call(model(loopback_openai))).text == "x"


async def test_only_the_first_choice_counts(loopback_openai: LoopbackOpenAI) -> None:
    second = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": None}]}
    assert (await received(loopback_openai, delta(content="yes"), second, STOP)).text == "yes"


async def test_error_in_a_choice_is_a_failure(loopback_openai: LoopbackOpenAI) -> None:
    broken = {"choices": [{"delta": {}, "finish_reason": "error", "error": {"code": 502, "message": "Upstream"}}]}
    loopback_openai.send(*events(delta(content="x"), broken))
    error = failure(await call(model(loopback_openai)))
    assert (error.kind, error.status) == ("timeout", 502)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("error", ""),
        ("insufficient_system_resource", " (insufficient_system_resource)"),  # DeepSeek
        ("network_error", " (network_error)"),  # Z.ai
        ("abort", " (abort)"),  # vLLM
        ("function_call_filter: MALFORMED_FUNCTION_CALL", " (function_call_filter: MALFORMED_FUNCTION_CALL)"),  # Gemini
    ],
)
async def test_answer_broken_off_is_a_failure(loopback_openai: LoopbackOpenAI, told: str, why: str) -> None:
    loopback_openai.send(*events(delta(content="x"), delta(told)))
    error = failure(await call(model(loopback_openai)))
    assert (error.kind, error.message) == ("timeout", f"openai:m: it broke its answer off{why}")


# Tool calls, as the many servers send them

WHOLE = [ToolCall("c1", "read", {"a": 1}), ToolCall("c2", "grep", {"b": 2})]


@pytest.mark.parametrize(
    "pieces",
    [
        [  # as OpenAI does
            piece("", index=0, id="c1", name="read"),
            piece('{"a"', index=0),
            piece(": 1}", index=0),
            piece("", index=1, id="c2", name="grep"),
            piece('{"b": 2}', index=1),
        ],
        [  # interleaved
            piece("", index=0, id="c1", name="read"),
            piece("", index=1, id="c2", name="grep"),
            piece('{"b"', index=1),
            piece('{"a": 1}', index=0),
            piece(": 2}", index=1),
        ],
        [piece('{"a": 1}', id="c1", name="read"), piece('{"b": 2}', id="c2", name="grep")],  # no index
        [piece('{"a": 1}', index=0, id="c1", name="read"), piece('{"b": 2}', index=0, id="c2", name="grep")],  # Gemini
        [  # id and name in every piece
            piece('{"a"', index=0, id="c1", name="read"),
            piece(": 1}", index=0, id="c1", name="read"),
            piece('{"b": 2}', index=1, id="c2", name="grep"),
        ],
        [piece({"a": 1}, index=0, id="c1", name="read"), piece({"b": 2}, index=1, id="c2", name="grep")],  # no text
        [  # empty ids in the later pieces
            piece('{"a"', index=0, id="c1", name="read"),
            piece(": 1}", index=0, id="", name=""),
            piece('{"b": 2}', index=1, id="c2", name="grep"),
        ],
    ],
)
async def test_pieces_of_calls_find_together(loopback_openai: LoopbackOpenAI, pieces: Sequence[Any]) -> None:
    loopback_openai.send(*events(*pieces, delta("tool_calls")))
    told = await call(model(loopback_openai))
    assert answer(told).tool_calls == WHOLE
    assert [event.call for event in told if isinstance(event, ToolCallEnd)] == WHOLE
    assert {event.id for event in told if isinstance(event, ToolCallDelta)} == {"c1", "c2"}


async def test_calls_without_ids_are_given_one(loopback_openai: LoopbackOpenAI) -> None:
    pieces = [piece('{"a": 1}', index=0, name="read"), piece('{"a": 1}', index=0, name="read")]  # as Ollama did
    first, second = (await received(loopback_openai, *pieces, STOP)).tool_calls
    assert (first.name, first.args) == (second.name, second.args) == ("read", {"a": 1})
    assert first.id
    assert first.id != second.id


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "in one piece"])
async def test_calls_with_the_same_id_are_two(loopback_openai: LoopbackOpenAI, *, stream: bool) -> None:
    functions = [{"name": "read", "arguments": '{"a": 1}'}, {"name": "grep", "arguments": '{"b": 2}'}]
    calls = [{"id": "c", "function": function} for function in functions]
    if stream:
        loopback_openai.send(
            *events(*(piece(**each["function"], id="c", index=n) for n, each in enumerate(calls)), STOP)
        )
    else:
        choice = {"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}
        loopback_openai.send(json.dumps({"choices": [choice]}).encode(), content_type="application/json")
    message = answer(await call(model(loopback_openai), request(stream=stream)))
    assert message.tool_calls == [ToolCall("c", "read", {"a": 1}), ToolCall("c", "grep", {"b": 2})]


async def test_name_repeated_without_an_id_goes_on_with_the_call(loopback_openai: LoopbackOpenAI) -> None:
    pieces = [piece('{"a"', index=0, name="read"), piece(": 1}", index=0, name="read")]
    [only] = (await received(loopback_openai, *pieces, STOP)).tool_calls
    assert only.args == {"a": 1}


async def test_arguments_that_are_no_object_are_kept_as_they_are(loopback_openai: LoopbackOpenAI) -> None:
    message = await received(loopback_openai, piece('{"a": ', index=0, id="c1", name="read"), delta("length"))
    assert message.tool_calls == [ToolCall("c1", "read", {"invalid_json": '{"a": '})]
    assert message.stop_reason == "length"


# What only the provider understands


async def test_reasoning_details_go_back_whole_to_their_provider(loopback_openai: LoopbackOpenAI) -> None:
    details = [
        {"type": "reasoning.text", "text": "Let ", "index": 0, "format": "x", "signature": None},
        {"type": "reasoning.text", "text": "me", "index": 0},
        {"type": "reasoning.text", "signature": "c2ln", "index": 0},
        {"type": "reasoning.encrypted", "data": "e", "index": 0, "id": "c1"},
    ]
    chunks = [delta(reasoning=each.get("text"), reasoning_details=[each]) for each in details]
    calls = piece("{}", index=0, id="c1", name="read")
    message = await received(loopback_openai, *chunks, calls, STOP, provider="openrouter")
    assert [part.text for part in message.content if isinstance(part, Thinking)] == ["Let me"]
    asked = request(HI, message, ToolResult("c1", "read", []))
    body = await sent(loopback_openai, asked, "openrouter")
    assert body["messages"][1]["reasoning_details"] == [
        {"type": "reasoning.text", "text": "Let me", "index": 0, "format": "x", "signature": "c2ln"},
        {"type": "reasoning.encrypted", "data": "e", "index": 0, "id": "c1"},
    ]
    assert "reasoning_details" not in (await sent(loopback_openai, asked, "openai"))["messages"][1]


ENCRYPTED = [
    {"type": "reasoning.encrypted", "data": "one", "id": "c1", "index": 0},
    {"type": "reasoning.encrypted", "data": "two", "id": "c2", "index": 0},
]
SUMMARIES = [{"type": "reasoning.summary", "summary": "One."}, {"type": "reasoning.summary", "summary": "Two."}]


async def test_details_with_ids_of_their_own_stay_apart(loopback_openai: LoopbackOpenAI) -> None:
    chunks = [delta(content="x", reasoning_details=[each]) for each in ENCRYPTED]
    message = await received(loopback_openai, *chunks, STOP, provider="openrouter")
    assert message.content[0] == Opaque("openrouter", {"reasoning_details": ENCRYPTED})


async def test_details_of_an_answer_in_one_piece_are_not_put_together(loopback_openai: LoopbackOpenAI) -> None:
    choice = {"message": {"content": "x", "reasoning_details": SUMMARIES}, "finish_reason": "stop"}
    loopback_openai.send(json.dumps({"choices": [choice]}).encode(), content_type="application/json")
    message = answer(await call(model(loopback_openai, "openrouter"), request(stream=False)))
    assert message.content == [Opaque("openrouter", {"reasoning_details": SUMMARIES}), Text("x")]


async def test_citations_are_kept_once_and_not_sent_back(loopback_openai: LoopbackOpenAI) -> None:
    cited = [{"type": "url_citation", "url_citation": {"url": f"https://{name}.example"}} for name in "ab"]
    listed = {"citations": ["https://c.example"]}
    chunks = [delta(content="x", annotations=cited[:1]) | listed, delta(annotations=cited) | listed]
    message = await received(loopback_openai, *chunks, STOP)
    pages = Opaque("openai/chat", {"annotations": [*listed["citations"], *cited]}, untrusted=True)
    assert message.content == [Text("x"), pages]
    assert "example" not in str((await sent(loopback_openai, request(HI, message, HI)))["messages"])


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "in one piece"])
async def test_what_came_with_a_call_goes_back_with_it(loopback_openai: LoopbackOpenAI, *, stream: bool) -> None:
    extra = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    content: list[AssistantPart] = [ToolCall("c1", "read", {}), Opaque("gemini", extra), ToolCall("c2", "read", {})]
    loopback_openai.say(AssistantMessage(content, stop_reason="tool_calls"))
    message = answer(await call(model(loopback_openai, "gemini"), request(stream=stream)))
    assert message.content == content
    body = await sent(loopback_openai, request(HI, message, ToolResult("c1", "read", [])), "gemini")
    assert [each.get("extra_content") for each in body["messages"][1]["tool_calls"]] == [extra["extra_content"], None]
    assert "extra_content" not in body["messages"][1]


# Usage


@pytest.mark.parametrize(
    ("told", "usage", "provider"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5}, Usage(10, 5), "openai"),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(6, 5, 4),
            "x",
        ),
        ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": None}, Usage(10, 5), "x"),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
                "cost": 0.25,
            },
            Usage(3, 5, 4, 3, 0.25),
            "openrouter",
        ),
        ({"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.25, "is_byok": True}, Usage(10, 5), "openrouter"),
        ({"prompt_tokens": 10, "completion_tokens": 5, "cost": {"total_cost": 1}}, Usage(10, 5), "perplexity"),
        ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 9}, Usage(1, 5, 9), "deepseek"),
        ({"prompt_tokens": 10, "completion_tokens": 5, "cached_tokens": 9}, Usage(1, 5, 9), "moonshot"),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 7}},
            Usage(10, 12, reasoning=7),
            "xai",
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 3}},
            Usage(10, 5, reasoning=3),
            "openai",
        ),
        ({}, Usage(), "openai"),
    ],
)
async def test_usage_is_reported_in_our_terms(
    loopback_openai: LoopbackOpenAI, told: dict[str, Any], usage: Usage, provider: str
) -> None:
    chunks = (delta(content="x"), STOP, {"choices": [], "usage": told})
    assert (await received(loopback_openai, *chunks, provider=provider)).usage == usage


async def test_usage_may_come_with_the_last_words_or_not_at_all(loopback_openai: LoopbackOpenAI) -> None:
    usage = {"usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    assert (await received(loopback_openai, delta(content="x"), STOP | usage)).usage == Usage(1, 2)
    assert (await received(loopback_openai, delta(content="x"), STOP)).usage == Usage()


async def test_deltas_are_passed_on_as_they_come(loopback_openai: LoopbackOpenAI) -> None:
    loopback_openai.send(*events(delta(reasoning="h"), delta(content="He"), delta(content="y"), STOP))
    told = await call(model(loopback_openai))
    assert [event.delta for event in told if isinstance(event, TextDelta | ThinkingDelta)] == ["h", "He", "y"]
