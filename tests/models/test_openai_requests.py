"""What goes to servers that speak OpenAI's format, and to each provider as it wants it."""

import base64

import pytest
from tests.models.calls import request
from tests.models.chat import HI, sent

from denizen.messages import AssistantMessage, Image, Opaque, Text, Thinking, ToolCall, ToolResult, UserMessage
from denizen.models.providers import PROVIDERS, provider_named
from denizen.ports import Schema
from denizen.testing import LoopbackOpenAI

READ = Schema("read", "Read a file.", {"type": "object", "properties": {}})
ANSWER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


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


async def test_history_is_sent_in_the_format_s_roles(loopback_openai: LoopbackOpenAI) -> None:
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
        ("unheard-of", True, False),
        ("unheard-of", False, True),
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
        assert bool(provider.key_variable) != (provider.local or name == "vertex")  # which has Google's credentials
    assert provider_named("llama.cpp") is PROVIDERS["llamacpp"]


async def test_what_responses_left_is_left_out(loopback_openai: LoopbackOpenAI) -> None:
    said = AssistantMessage(
        [
            Thinking("hm"),
            Opaque("openai", {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}),
            Text("I look"),
            Opaque("openai", {"id": "msg_1", "phase": "commentary"}),
            ToolCall("c1", "read", {}),
            Opaque("openai", {"id": "fc_1"}),
        ],
        "openai:m",
    )
    body = await sent(loopback_openai, request(HI, said, ToolResult("c1", "read", [Text("A")])))
    called = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    assert body["messages"][1] == {"role": "assistant", "content": "I look", "tool_calls": [called]}
