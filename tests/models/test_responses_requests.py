"""What goes to servers that speak OpenAI's Responses API."""

import base64
import hashlib
import json
from typing import Any

import pytest
from tests.models.calls import answer, call, failure, request

from denizen.messages import (
    AssistantMessage,
    AssistantPart,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)
from denizen.models.providers import provider_named
from denizen.models.responses import ResponsesModel
from denizen.ports import ModelRequest, Schema
from denizen.testing import LoopbackResponses

READ = Schema("read", "Read a file.", {"type": "object", "properties": {}})
ANSWER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
HI = UserMessage([Text("Hi")], "m1")
PICTURE = Image("image/png", b"\x89PNG\x00")
URL = f"data:image/png;base64,{base64.b64encode(PICTURE.data).decode()}"
SHOWN = {"type": "input_image", "image_url": URL, "detail": "auto"}


def model(server: LoopbackResponses, name: str = "gpt-5", provider: str = "openai") -> ResponsesModel:
    return ResponsesModel(name, provider_named(provider), api_key="key-0123456789", base_url=server.base_url)


async def sent(server: LoopbackResponses, asked: ModelRequest, name: str = "gpt-5", provider: str = "openai") -> Any:
    """The body that the server gets."""
    server.say("ok")
    answer(await call(model(server, name, provider), asked))
    return server.requests[-1].json


async def items(server: LoopbackResponses, *messages: Message) -> Any:
    """What the server gets of these messages."""
    return (await sent(server, request(*messages)))["input"]


async def test_request_says_what_is_asked(loopback_responses: LoopbackResponses) -> None:
    body = await sent(loopback_responses, request(system="Be brief.", max_tokens=99, tools=(READ,)))
    assert body == {
        "model": "gpt-5",
        "max_output_tokens": 99,
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.",
        "tools": [
            {
                "type": "function",
                "name": "read",
                "description": "Read a file.",
                "parameters": READ.parameters,
                "strict": False,
            }
        ],
        "input": [{"role": "user", "content": "Hi"}],
    }
    [received] = loopback_responses.requests
    assert received.path == "/v1/responses"
    assert received.headers["Authorization"] == "Bearer key-0123456789"


async def test_history_is_sent_as_items(loopback_responses: LoopbackResponses) -> None:
    assert await items(
        loopback_responses,
        UserMessage([Text("See"), PICTURE]),
        AssistantMessage([Thinking("hm", "c2ln"), Text("I "), Text("look"), ToolCall("c1", "read", {"path": "ä"})]),
        UserMessage([Text("Quick!")]),
        ToolResult("c1", "read", [Text("one"), PICTURE], is_error=True),
        AssistantMessage([ToolCall("c2", "view", {}), ToolCall("c3", "view", {})]),
        ToolResult("c2", "view", []),
        ToolResult("c3", "view", [Text("two")]),
        AssistantMessage([], stop_reason="aborted"),
        UserMessage([Text(""), Text("Thanks")]),
    ) == [
        {"role": "user", "content": [{"type": "input_text", "text": "See"}, SHOWN]},
        {"role": "assistant", "content": "I look"},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path":"ä"}'},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "one"}, SHOWN]},
        {"role": "user", "content": "Quick!"},
        {"type": "function_call", "call_id": "c2", "name": "view", "arguments": "{}"},
        {"type": "function_call", "call_id": "c3", "name": "view", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c2", "output": "(nothing)"},
        {"type": "function_call_output", "call_id": "c3", "output": "two"},
        {"role": "user", "content": "Thanks"},
    ]


async def test_what_others_left_in_a_conversation_is_left_out(loopback_responses: LoopbackResponses) -> None:
    foreign: list[AssistantPart] = [
        Opaque("anthropic", {"type": "server_tool_use", "id": "s1"}),
        Opaque("openai/anthropic", {"type": "redacted_thinking", "data": "eA=="}),  # a proxy has several formats
        Opaque("openai/gemini", {"executableCode": {"code": "1"}}),
        Opaque("openai/chat", {"reasoning_details": [{"type": "reasoning.text"}]}),
        Text("Yes."),
        Opaque("anthropic", {"citations": []}),
        Opaque("openai/anthropic", {"citations": [{"type": "page_location"}]}),
        Opaque("openai/gemini", {"thoughtSignature": "eA=="}),
        ToolCall("toolu_" + "x" * 100, "read", {}),
        Opaque("openai/chat", {"extra_content": {"google": {}}}),
    ]
    said, called, result = await items(
        loopback_responses, AssistantMessage(foreign), ToolResult("toolu_" + "x" * 100, "read", [Text("A")])
    )
    assert said == {"role": "assistant", "content": "Yes."}
    assert called.keys() == {"type", "call_id", "name", "arguments"}
    assert called["call_id"] == result["call_id"]
    assert len(called["call_id"]) == 64


@pytest.mark.parametrize("name", ["extra_content", "reasoning_details", "annotations"])
async def test_fields_of_chat_completions_in_older_sessions_are_left_out(
    loopback_responses: LoopbackResponses, name: str
) -> None:
    kept = AssistantMessage([ToolCall("c1", "read", {}), Opaque("openai", {name: [{"google": {}}]})])
    [called] = await items(loopback_responses, kept)
    assert called == {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"}


async def test_fields_whose_part_is_gone_go_nowhere_else(loopback_responses: LoopbackResponses) -> None:
    gone: list[AssistantPart] = [
        ToolCall("c1", "read", {}),
        Opaque("openai", {"id": "fc_1"}),
        Opaque("openai", {"id": "msg_1"}),
    ]
    [called] = await items(loopback_responses, AssistantMessage(gone))
    assert called["id"] == "fc_1"


async def test_result_of_a_custom_tool_is_sent_as_its_call_was_made(loopback_responses: LoopbackResponses) -> None:
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "sql", "input": "SELECT 1"}
    called = AssistantMessage([ToolCall("c1", "sql", {"input": "SELECT 1"}), Opaque("openai", item)])
    assert await items(loopback_responses, called, ToolResult("c1", "sql", [Text("1")])) == [
        item,
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "1"},
    ]


async def test_cache_key_tells_nothing_of_the_session(loopback_responses: LoopbackResponses) -> None:
    one = await sent(loopback_responses, request(session_key="agent:a:peer:direct:anna"))
    same = await sent(loopback_responses, request(session_key="agent:a:peer:direct:anna", system="New"))
    other = await sent(loopback_responses, request(session_key="agent:a:peer:direct:bert"))
    assert one["prompt_cache_key"] == same["prompt_cache_key"] != other["prompt_cache_key"]
    assert one["prompt_cache_key"] == hashlib.sha256(b"agent:a:peer:direct:anna").hexdigest()


async def test_answer_is_asked_for_in_its_schema(loopback_responses: LoopbackResponses) -> None:
    options = {"extra_body": {"text": {"verbosity": "low"}}}
    body = await sent(loopback_responses, request(output_schema=ANSWER, tools=(READ,), options=options))
    closed = ANSWER | {"additionalProperties": False}
    form = {"type": "json_schema", "name": "answer", "schema": closed, "strict": True}
    assert body["text"] == {"verbosity": "low", "format": form}


async def test_options_go_along_as_they_are(loopback_responses: LoopbackResponses) -> None:
    search = {"type": "web_search"}
    extra = {"store": True, "tools": [search], "include": ["web_search_call.action.sources"]}
    body = await sent(loopback_responses, request(tools=(READ,), options={"top_p": 0.5, "extra_body": extra}))
    assert (body["top_p"], body["store"]) == (0.5, True)
    assert [tool["type"] for tool in body["tools"]] == ["function", "web_search"]
    assert body["include"] == ["reasoning.encrypted_content", "web_search_call.action.sources"]


async def test_include_of_the_users_may_be_empty(loopback_responses: LoopbackResponses) -> None:
    body = await sent(loopback_responses, request(tools=(READ,), options={"extra_body": {"include": None}}))
    assert body["include"] is None


async def test_settings_without_a_field_are_left_out(loopback_responses: LoopbackResponses) -> None:
    penalties = {"presence_penalty": 0.5, "frequency_penalty": 0.5}
    options = {"temperature": 1, "seed": 7, "stop": ["."], "top_k": 5, "extra_body": {"top_k": 9}, **penalties}
    body = await sent(loopback_responses, request(options=options))
    assert body.keys() & options.keys() == {"temperature", "top_k"}
    assert body["top_k"] == 9  # as the user insists


@pytest.mark.parametrize(
    ("name", "wish", "reasoning"),
    [
        ("gpt-5.2", "high", {"effort": "high", "summary": "auto"}),
        ("gpt-5.2", 5000, {"effort": "medium", "summary": "auto"}),
        ("gpt-5.2", "none", {"effort": "none"}),
        ("gpt-5-mini", "none", {"effort": "minimal"}),
        ("gpt-5-codex", "none", {"effort": "low"}),
        ("o3", "none", {"effort": "low"}),
        ("gpt-5-pro", "low", {"effort": "high", "summary": "auto"}),
        ("gpt-5.2-pro", "low", {"effort": "medium", "summary": "auto"}),
        ("gpt-5.2", None, None),
        ("gpt-4o", "high", None),
    ],
)
async def test_wish_to_think_is_translated(
    loopback_responses: LoopbackResponses, name: str, wish: Any, reasoning: Any
) -> None:
    body = await sent(loopback_responses, request(reasoning=wish), name)
    assert body.get("reasoning") == reasoning
    assert ("include" in body) == (name != "gpt-4o")


async def test_thoughts_that_led_to_nothing_are_left_out(loopback_responses: LoopbackResponses) -> None:
    thought = Opaque("openai", {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"})
    cut_off = AssistantMessage([thought, Text("One"), thought, thought], stop_reason="length")
    sent = await items(loopback_responses, HI, cut_off, HI, AssistantMessage([thought]), HI)
    hello = {"role": "user", "content": "Hi"}
    assert sent == [hello, thought.data, {"role": "assistant", "content": "One"}, hello, hello]


# Refusals that a request can be written around


@pytest.mark.parametrize(
    ("sentence", "gone"),
    [
        ("Encrypted content is not supported with this model.", "include"),
        ("Unknown parameter: 'include'", "include"),
        ("Unknown parameter: 'prompt_cache_key'", "prompt_cache_key"),
        ("'text.format' of type 'json_schema' is not supported with this model.", "text"),
    ],
)
async def test_field_that_is_refused_is_not_sent_again(
    loopback_responses: LoopbackResponses, sentence: str, gone: str
) -> None:
    asked = model(loopback_responses)
    for _ in range(2):
        loopback_responses.fail(400, sentence)
    loopback_responses.say("ok")
    events = [event async for event in asked.stream(request(output_schema=ANSWER, session_key="work"))]
    await asked.close()
    bodies = [received.json for received in loopback_responses.requests]
    assert gone in bodies[0]
    if gone == "text":  # first JSON without a schema, then words alone
        assert bodies[1]["text"] == {"format": {"type": "json_object"}}
        assert gone not in bodies[2]
        assert answer(events).text == "ok"
    else:
        assert gone not in bodies[1]
        assert failure(events).status == 400


async def test_account_that_gets_no_summaries_gets_its_answer(loopback_responses: LoopbackResponses) -> None:
    sentence = "Your organization must be verified to generate reasoning summaries."
    loopback_responses.fail(400, sentence)
    assert (await sent(loopback_responses, request(reasoning="low")))["reasoning"] == {"effort": "low"}


async def test_thoughts_that_another_account_encrypted_are_left_out(loopback_responses: LoopbackResponses) -> None:
    def thought(code: str) -> Opaque:
        return Opaque("openai", {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": code})

    client = model(loopback_responses)
    said = AssistantMessage([thought("gAAA"), Text("Hello"), Opaque("openai", {"id": "msg_1"})])
    other = AssistantMessage([thought("gAAB"), Text("Hello")])
    loopback_responses.fail(400, "The encrypted content gAAA could not be verified.")
    loopback_responses.say("ok", "ok")
    for reply in (said, other):
        answer([event async for event in client.stream(request(HI, reply, HI, session_key="work"))])
    await client.close()
    first, again, later = (received.json["input"] for received in loopback_responses.requests)
    assert first[1] == thought("gAAA").data
    assert [again[1]["id"], len(again)] == ["msg_1", 3]
    assert later[1] == thought("gAAB").data


async def test_tokens_are_counted_by_the_provider(loopback_responses: LoopbackResponses) -> None:
    client = model(loopback_responses)
    counted = {"object": "response.input_tokens", "input_tokens": 31}
    loopback_responses.send(json.dumps(counted).encode(), content_type="application/json")
    assert await client.count_tokens(request(HI, system="Be brief.", tools=(READ,))) == 31
    received = loopback_responses.requests[-1]
    asked = await sent(loopback_responses, request(HI, system="Be brief.", tools=(READ,)))
    await client.close()
    assert received.path == "/v1/responses/input_tokens"
    assert received.json == {name: asked[name] for name in ("model", "instructions", "tools", "input")}


async def test_a_server_that_does_not_count_is_asked_once(loopback_responses: LoopbackResponses) -> None:
    client = model(loopback_responses)
    loopback_responses.fail(404, "no such path")
    assert [await client.count_tokens(request(HI)) for _ in range(2)] == [None, None]
    await client.close()
    assert len(loopback_responses.requests) == 1
