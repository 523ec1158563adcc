"""What goes to servers that speak OpenAI's format, and what comes back from them, quirks included."""

import base64
import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.models.calls import answer, call, failure, request

from denizen.events import TextDelta, ThinkingDelta, ToolCallDelta, ToolCallEnd
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
from denizen.models.openai import OpenAIModel
from denizen.models.providers import PROVIDERS, provider_named
from denizen.ports import ModelRequest, Schema
from denizen.testing import LoopbackOpenAI, Step

OK = AssistantMessage([Text("ok")])
HI = UserMessage([Text("Hi")], "m1")
READ = Schema("read", "Read a file.", {"type": "object", "properties": {}})
ANSWER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def model(server: LoopbackOpenAI, provider: str = "openai", name: str = "m") -> OpenAIModel:
    return OpenAIModel(name, provider_named(provider), api_key="key-0123456789", base_url=server.base_url)


async def sent(server: LoopbackOpenAI, asked: ModelRequest, provider: str = "openai", name: str = "m") -> Any:
    """The body that the server gets."""
    server.say(OK)
    answer(await call(model(server, provider, name), asked))
    return server.requests[-1].json


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

# Requests


async def test_request_says_what_is_asked(loopback_openai: LoopbackOpenAI) -> None:
    body = await sent(loopback_openai, request(system="Be brief.", max_tokens=99, tools=(READ,)))
    assert body == {
        "model": "m",
        "max_completion_tokens": 99,
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {"name": "read", "description": "Read a file.", "parameters": READ.parameters},
            }
        ],
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
    }
    [received] = loopback_openai.requests
    assert received.path == "/v1/chat/completions"
    assert received.headers["Authorization"] == "Bearer key-0123456789"


async def test_usage_of_a_stream_is_asked_for_in_streams_alone(loopback_openai: LoopbackOpenAI) -> None:
    assert "stream_options" not in await sent(loopback_openai, request(stream=False))


async def test_history_is_told_in_the_format_s_roles(loopback_openai: LoopbackOpenAI) -> None:
    picture = Image("image/png", b"\x89PNG\x00")
    url = {"url": f"data:image/png;base64,{base64.b64encode(picture.data).decode()}"}
    body = await sent(
        loopback_openai,
        request(
            UserMessage([Text("See"), picture]),
            AssistantMessage([Thinking("hm", "c2ln"), Text("I "), Text("look"), ToolCall("c1", "read", {"path": "ä"})]),
            ToolResult("c1", "read", [Text("A")], is_error=True),
            AssistantMessage([ToolCall("c2", "view", {}), ToolCall("c3", "view", {})]),
            ToolResult("c2", "view", [Text("one"), picture]),
            UserMessage([Text("Quick!")]),
            ToolResult("c3", "view", [picture]),
            AssistantMessage([Text("Done")]),
            UserMessage([Text(""), Text("Thanks")]),
        ),
    )
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": url}]},
        {
            "role": "assistant",
            "content": "I look",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path":"ä"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "A"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c2", "type": "function", "function": {"name": "view", "arguments": "{}"}},
                {"id": "c3", "type": "function", "function": {"name": "view", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c2", "content": "one"},
        {"role": "tool", "tool_call_id": "c3", "content": "(the picture is below)"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "The picture from view:"},
                {"type": "image_url", "image_url": url},
                {"type": "text", "text": "The picture from view:"},
                {"type": "image_url", "image_url": url},
            ],
        },
        {"role": "user", "content": "Quick!"},
        {"role": "assistant", "content": "Done"},
        {"role": "user", "content": "Thanks"},
    ]


async def test_answers_without_anything_to_send_are_left_out(loopback_openai: LoopbackOpenAI) -> None:
    empty = [
        AssistantMessage([]),
        AssistantMessage([Thinking("hm")]),
        AssistantMessage([Opaque("anthropic", {"a": 1})]),
    ]
    body = await sent(loopback_openai, request(HI, *empty, ToolResult("c1", "bash", []), UserMessage([])))
    assert body["messages"] == [
        {"role": "user", "content": "Hi"},
        {"role": "tool", "tool_call_id": "c1", "content": "(nothing)"},
    ]


async def test_options_go_along_as_they_are(loopback_openai: LoopbackOpenAI) -> None:
    options = {"temperature": 0.5, "top_p": None, "stop": ["END"], "extra_body": {"reasoning_effort": "low"}}
    body = await sent(loopback_openai, request(options=options))
    assert (body["temperature"], body["stop"], body["reasoning_effort"]) == (0.5, ["END"], "low")
    assert not {"top_p", "extra_body"} & body.keys()


async def test_half_a_character_does_not_stop_a_request(loopback_openai: LoopbackOpenAI) -> None:
    body = await sent(loopback_openai, request(UserMessage([Text("name: \udcff")])))
    assert body["messages"][0]["content"] == "name: ?"


# Providers


async def test_limit_of_the_answer_is_called_as_each_provider_calls_it(loopback_openai: LoopbackOpenAI) -> None:
    for name in ("openai", "groq"):
        assert "max_completion_tokens" in await sent(loopback_openai, request(), name)
    for name in ("openrouter", "ollama", "vllm", "unheard-of"):
        assert "max_tokens" in await sent(loopback_openai, request(), name)


async def test_mistral_is_sent_what_it_takes(loopback_openai: LoopbackOpenAI) -> None:
    messages = [HI, AssistantMessage([ToolCall("call_0123", "read", {}), ToolCall("abcDEF123", "read", {})])]
    results = [ToolResult("call_0123", "read", [Text("A")]), ToolResult("abcDEF123", "read", [Text("B")])]
    body = await sent(loopback_openai, request(*messages, *results), "mistral")
    assert "stream_options" not in body
    used = [each["id"] for each in body["messages"][1]["tool_calls"]]
    assert used == [each["tool_call_id"] for each in body["messages"][2:]]
    assert used[1] == "abcDEF123"
    assert len(used[0]) == 9
    assert used[0].isalnum()


@pytest.mark.parametrize(("provider", "name"), [("mistral", "m"), ("openrouter", "mistralai/devstral-medium")])
async def test_mistral_hears_an_answer_between_results_and_the_user(
    loopback_openai: LoopbackOpenAI, provider: str, name: str
) -> None:
    called = AssistantMessage([ToolCall("abcDEF123", "read", {})])
    result = ToolResult("abcDEF123", "read", [Text("A"), Image("image/png", b"x")])
    body = await sent(loopback_openai, request(HI, called, result, HI), provider, name)
    assert [each["role"] for each in body["messages"]] == ["user", "assistant", "tool", "assistant", "user", "user"]
    body = await sent(loopback_openai, request(HI, called, result, HI), "openai")
    assert [each["role"] for each in body["messages"]] == ["user", "assistant", "tool", "user", "user"]
    plain = ToolResult("abcDEF123", "read", [Text("A")])
    body = await sent(loopback_openai, request(HI, called, plain), provider, name)
    assert [each["role"] for each in body["messages"]] == ["user", "assistant", "tool"]


async def test_deepseek_gets_the_thoughts_back_that_led_to_its_calls(loopback_openai: LoopbackOpenAI) -> None:
    own = AssistantMessage([Thinking("hm"), ToolCall("c1", "read", {})], "deepseek:m")
    foreign = AssistantMessage([Thinking("hm"), ToolCall("c2", "read", {})], "openai:m")
    said = AssistantMessage([Thinking("hm"), Text("Done")], "deepseek:m")
    body = await sent(loopback_openai, request(HI, own, ToolResult("c1", "read", []), foreign, said, HI), "deepseek")
    assert [each.get("reasoning_content") for each in body["messages"] if each["role"] == "assistant"] == [
        "hm",
        None,
        None,
    ]


async def test_openrouter_caches_claude_s_prompts_on_request(loopback_openai: LoopbackOpenAI) -> None:
    assert (await sent(loopback_openai, request(), "openrouter", "anthropic/claude-sonnet-4.5"))["cache_control"]
    assert "cache_control" not in await sent(loopback_openai, request(), "openrouter", "openai/gpt-5")


@pytest.mark.parametrize(
    ("provider", "with_tools", "told"),
    [
        ("openai", True, True),
        ("openai", False, True),
        ("ollama", True, False),
        ("ollama", False, True),
        ("deepseek", False, False),
        ("unheard-of", False, False),
    ],
)
async def test_schema_of_the_answer_goes_where_it_is_understood(
    loopback_openai: LoopbackOpenAI, provider: str, *, with_tools: bool, told: bool
) -> None:
    asked = request(output_schema=ANSWER, tools=(READ,) if with_tools else ())
    body = await sent(loopback_openai, asked, provider)
    closed = ANSWER | {"additionalProperties": False}
    expected = {"type": "json_schema", "json_schema": {"name": "answer", "schema": closed, "strict": True}}
    assert body.get("response_format") == (expected if told else None)


async def test_schema_with_optional_fields_is_not_strict(loopback_openai: LoopbackOpenAI) -> None:
    schema = ANSWER | {"required": []}
    body = await sent(loopback_openai, request(output_schema=schema))
    assert body["response_format"]["json_schema"] == {"name": "answer", "schema": schema, "strict": False}


def test_every_provider_is_complete() -> None:
    assert set(PROVIDERS) >= {
        "anthropic", "openai", "openrouter", "groq", "deepseek", "mistral", "gemini", "together", "xai",
        "ollama", "lmstudio", "vllm", "llamacpp",
    }  # fmt: skip
    for name, provider in PROVIDERS.items():
        assert provider.name == name
        assert provider.base_url.startswith("http://127.0.0.1" if provider.local else "https://")
        assert bool(provider.key_variable) != provider.local
    assert provider_named("llama.cpp") is PROVIDERS["llamacpp"]


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
async def test_reason_to_stop_is_told(loopback_openai: LoopbackOpenAI, told: str, reason: str) -> None:
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


async def test_connection_lost_behind_the_answer_does_no_harm(loopback_openai: LoopbackOpenAI) -> None:
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
            Usage(10, 12),
            "xai",
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 3}},
            Usage(10, 5),
            "openai",
        ),
        ({}, Usage(), "openai"),
    ],
)
async def test_usage_is_told_in_our_terms(
    loopback_openai: LoopbackOpenAI, told: dict[str, Any], usage: Usage, provider: str
) -> None:
    chunks = (delta(content="x"), STOP, {"choices": [], "usage": told})
    assert (await received(loopback_openai, *chunks, provider=provider)).usage == usage


async def test_usage_may_come_with_the_last_words_or_not_at_all(loopback_openai: LoopbackOpenAI) -> None:
    usage = {"usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    assert (await received(loopback_openai, delta(content="x"), STOP | usage)).usage == Usage(1, 2)
    assert (await received(loopback_openai, delta(content="x"), STOP)).usage == Usage()


async def test_deltas_are_told_as_they_come(loopback_openai: LoopbackOpenAI) -> None:
    loopback_openai.send(*events(delta(reasoning="h"), delta(content="He"), delta(content="y"), STOP))
    told = await call(model(loopback_openai))
    assert [event.delta for event in told if isinstance(event, TextDelta | ThinkingDelta)] == ["h", "He", "y"]
