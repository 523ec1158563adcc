"""What Gemini is sent, and that what it gave comes back to it unchanged."""

import base64
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from tests.models.calls import answer, call, request

from denizen.messages import AssistantMessage, AssistantPart, Image, Opaque, Text, Thinking, ToolCall, ToolResult
from denizen.messages import UserMessage as User
from denizen.models.gemini import GeminiModel
from denizen.ports import ModelRequest, Schema
from denizen.testing import LoopbackGemini

OLD, NEW = "gemini-2.5-flash", "gemini-3.5-flash"
HI = User([Text("Hi")], "m1")
OK = AssistantMessage([Text("ok")])
FIELD = {"type": "object", "properties": {"n": {"type": "integer", "exclusiveMinimum": 1}}, "required": ["n"]}
CLEAN = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
READ = Schema("read", "Read a file.", FIELD)
ANOTHERS = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="


def model(server: LoopbackGemini, name: str = NEW) -> GeminiModel:
    return GeminiModel(name, api_key="key-0123456789", base_url=server.base_url)


async def sent(server: LoopbackGemini, asked: ModelRequest, name: str = NEW) -> Any:
    """The body that the server gets."""
    server.say(OK)
    answer(await call(model(server, name), asked))
    return server.requests[-1].json


async def contents(server: LoopbackGemini, *messages: Any, name: str = NEW) -> list[Any]:
    """The turns that the server gets."""
    return (await sent(server, request(*messages), name))["contents"]


@pytest.mark.parametrize(
    ("name", "stream", "path"),
    [
        (NEW, True, f"/v1beta/models/{NEW}:streamGenerateContent"),
        (NEW, False, f"/v1beta/models/{NEW}:generateContent"),
        ("tunedModels/a b", False, "/v1beta/tunedModels/a b:generateContent"),
    ],
)
async def test_path_names_the_model_and_how_it_answers(
    loopback_gemini: LoopbackGemini, name: str, path: str, *, stream: bool
) -> None:
    await sent(loopback_gemini, request(stream=stream), name)
    received = loopback_gemini.requests[-1]
    assert (received.path, received.query) == (path, "alt=sse" if stream else "")
    assert received.headers["x-goog-api-key"] == "key-0123456789"


async def test_whole_request(loopback_gemini: LoopbackGemini) -> None:
    options = {"temperature": 0.5, "top_p": 0.9, "top_k": 5, "seed": 1, "stop": ["END"], "presence_penalty": 0.1}
    body = await sent(loopback_gemini, request(system="Be brief.", tools=(READ,), max_tokens=100, options=options))
    assert body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "read", "description": "Read a file.", "parametersJsonSchema": CLEAN},
                ]
            }
        ],
        "generationConfig": {
            "maxOutputTokens": 100,
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 5,
            "seed": 1,
            "stopSequences": ["END"],
            "presencePenalty": 0.1,
        },
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
    }


async def test_further_fields_of_its_api_are_added(loopback_gemini: LoopbackGemini) -> None:
    extra = {"tools": [{"googleSearch": {}}], "generationConfig": {"topP": 0.5}, "cachedContent": "cachedContents/1"}
    body = await sent(loopback_gemini, request(tools=(READ,), options={"extra_body": extra}))
    assert [[*tool] for tool in body["tools"]] == [["functionDeclarations"], ["googleSearch"]]
    assert body["generationConfig"] == {"maxOutputTokens": 8192, "topP": 0.5}
    assert body["cachedContent"] == "cachedContents/1"


@pytest.mark.parametrize(
    ("name", "with_tools", "now", "held", "tools"),
    [
        (OLD, False, False, True, False),
        (OLD, True, False, False, True),
        (OLD, True, True, True, False),  # it takes only one of them
        (NEW, True, False, True, True),
    ],
)
async def test_schema_of_the_answer(
    loopback_gemini: LoopbackGemini, name: str, *, with_tools: bool, now: bool, held: bool, tools: bool
) -> None:
    asked = request(tools=(READ,) if with_tools else (), output_schema=FIELD, answers_now=now)
    body = await sent(loopback_gemini, asked, name)
    config = body["generationConfig"]
    assert (config.get("responseMimeType"), config.get("responseJsonSchema")) == (
        ("application/json", CLEAN) if held else (None, None)
    )
    assert ("tools" in body) == tools


THOUGHTS: Sequence[tuple[str, Any, Any]] = [
    (OLD, "medium", {"thinkingBudget": 8_192, "includeThoughts": True}),
    (OLD, 100_000, {"thinkingBudget": 24_576, "includeThoughts": True}),
    (OLD, "none", {"thinkingBudget": 0}),
    (OLD, None, None),
    ("gemini-2.5-pro", "none", {"thinkingBudget": 128}),
    ("gemini-2.5-pro", 100_000, {"thinkingBudget": 32_768, "includeThoughts": True}),
    ("gemini-2.5-flash-lite", 100, {"thinkingBudget": 512, "includeThoughts": True}),
    (NEW, "high", {"thinkingLevel": "high", "includeThoughts": True}),
    (NEW, 3_000, {"thinkingLevel": "medium", "includeThoughts": True}),
    (NEW, "none", {"thinkingLevel": "minimal"}),
    ("gemini-3.1-pro-preview", "none", {"thinkingLevel": "low"}),
    ("gemini-flash-latest", "low", {"thinkingLevel": "low", "includeThoughts": True}),
    ("gemini-2.0-flash", "high", None),
    ("gemini-2.5-flash-image", "high", None),
    ("gemma-3-27b-it", "high", None),
]


@pytest.mark.parametrize(("name", "wish", "config"), THOUGHTS)
async def test_reasoning_is_sent_as_each_model_takes_it(
    loopback_gemini: LoopbackGemini, name: str, wish: Any, config: Any
) -> None:
    body = await sent(loopback_gemini, request(reasoning=wish), name)
    assert body["generationConfig"].get("thinkingConfig") == config


# History

SEARCHED: list[dict[str, Any]] = [
    {"text": "Let me search.", "thought": True, "thoughtSignature": "c2ln"},
    {"executableCode": {"language": "PYTHON", "code": "1+1", "id": "x"}, "thoughtSignature": "Y29kZQ=="},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2", "id": "x"}},
    {"toolCall": {"toolType": "FILE_SEARCH", "id": "y"}, "thoughtSignature": "dG9vbA=="},
    {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}},
    {"text": "Two,", "thoughtSignature": "dHdv"},
    {"text": " that is."},
    {"functionCall": {"id": "c1", "name": "read", "args": {}}, "thoughtSignature": "Y2FsbA=="},
    {"functionCall": {"name": "read", "args": {"n": 2}}},
    {"text": "", "thoughtSignature": "ZW5k"},
]
GROUNDED = {"groundingMetadata": {"webSearchQueries": ["two"]}}


async def received(server: LoopbackGemini, *parts: Any, stream: bool = True) -> AssistantMessage:
    """The message that these parts become."""
    blocks: list[AssistantPart] = [Opaque("google", part) for part in (*parts, GROUNDED)]
    server.say(AssistantMessage(blocks, stop_reason="tool_calls"))
    return answer(await call(model(server), request(stream=stream)))


def results(message: AssistantMessage) -> list[ToolResult]:
    return [ToolResult(each.id, each.name, [Text("seen")]) for each in message.tool_calls]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "in one piece"])
async def test_every_part_goes_back_unchanged_and_in_place(loopback_gemini: LoopbackGemini, *, stream: bool) -> None:
    message = await received(loopback_gemini, *SEARCHED, stream=stream)
    stored = msgspec.json.decode(msgspec.json.encode(message), type=AssistantMessage)
    assert stored.text == "Two, that is."
    assert [each.args for each in stored.tool_calls] == [{}, {"n": 2}]
    assert stored.content[-1] == Opaque("google", GROUNDED, untrusted=True)
    turns = await contents(loopback_gemini, HI, stored, *results(stored))
    assert turns[1] == {"role": "model", "parts": SEARCHED}
    assert turns[2]["parts"] == [
        {"functionResponse": {"id": "c1", "name": "read", "response": {"output": "seen"}}},
        {"functionResponse": {"name": "read", "response": {"output": "seen"}}},
    ]


async def test_thoughts_without_signature_stay_here(loopback_gemini: LoopbackGemini) -> None:
    message = await received(loopback_gemini, {"text": "Hm.", "thought": True}, {"text": "Yes."})
    assert message.content[:2] == [Thinking("Hm."), Text("Yes.")]
    assert (await contents(loopback_gemini, HI, message, HI))[1]["parts"] == [{"text": "Yes."}]


@pytest.mark.parametrize("sentence", ["Corrupted thought signature.", "Request has an invalid thought_signature"])
async def test_signatures_that_are_refused_are_left_out(loopback_gemini: LoopbackGemini, sentence: str) -> None:
    signed = Opaque("google", {"thoughtSignature": "b2xk"})
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    ran = Opaque("google", {**code, "thoughtSignature": "b2xk"})
    said = AssistantMessage([Thinking("hm", "b2xk"), ran, ToolCall("c1", "read", {}), signed])
    loopback_gemini.fail(400, sentence)
    body = await sent(loopback_gemini, request(HI, said, ToolResult("c1", "read", [Text("A")])))
    assert "b2xk" in str(loopback_gemini.requests[0].json)
    assert "b2xk" not in str(body)
    unsigned, called = body["contents"][1]["parts"]
    assert unsigned == code
    assert called["functionCall"]["name"] == "read"
    assert called["thoughtSignature"]


async def test_history_of_others_goes_through(loopback_gemini: LoopbackGemini) -> None:
    content: list[AssistantPart] = [
        Thinking("hm", "c2ln"),
        Opaque("anthropic", {"type": "redacted_thinking", "data": "x"}),
        Text("I look."),
        ToolCall("functions.read:0", "read", {}),
        Opaque("openrouter", {"thoughtSignature": "eA=="}),
        Opaque("google", {"extra_content": {"google": {"thought_signature": "eA=="}}}),
        Opaque("google", {"type": "redacted_thinking", "data": "eA=="}),
        Opaque("google", {"type": "reasoning", "id": "rs_1", "summary": []}),
        Opaque("google", {"id": "msg_1", "phase": "commentary"}),
        ToolCall("call_2", "read", {}),
    ]
    message = AssistantMessage(content, "anthropic:claude-sonnet-5-5", stop_reason="tool_calls")
    turns = await contents(loopback_gemini, HI, message, *results(message))
    calls = [{"functionCall": {"id": each.id, "name": "read", "args": {}}} for each in message.tool_calls]
    assert turns[1]["parts"] == [{"text": "I look."}, calls[0] | {"thoughtSignature": ANOTHERS}, calls[1]]
    turns = await contents(loopback_gemini, HI, message, *results(message), name=OLD)
    assert turns[1]["parts"] == [{"text": "I look."}, *calls]


async def test_answer_without_anything_to_send_leaves_one_turn_of_the_user(loopback_gemini: LoopbackGemini) -> None:
    nothing = AssistantMessage([Thinking("hm")], stop_reason="aborted")
    told = [each for word in ("a", "b", "c") for each in (User([Text(word)]), nothing)]
    assert await contents(loopback_gemini, *told) == [{"role": "user", "parts": [{"text": word} for word in "abc"]}]


async def test_results_come_first_and_in_the_order_of_their_calls(loopback_gemini: LoopbackGemini) -> None:
    calls = AssistantMessage([ToolCall("c1", "read", {}), ToolCall("c2", "grep", {})])
    told = [ToolResult("c1", "read", [Text("A")]), User([Text("Quick!")]), ToolResult("c2", "grep", [], is_error=True)]
    turns = await contents(loopback_gemini, HI, calls, *told)
    assert turns[2] == {
        "role": "user",
        "parts": [
            {"functionResponse": {"id": "c1", "name": "read", "response": {"output": "A"}}},
            {"functionResponse": {"id": "c2", "name": "grep", "response": {"error": ""}}},
            {"text": "Quick!"},
        ],
    }


async def test_pictures(loopback_gemini: LoopbackGemini) -> None:
    picture = Image("image/png", b"\x89PNG\x00")
    inline = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(picture.data).decode()}}
    calls = AssistantMessage([ToolCall("c1", "view", {}), ToolCall("c2", "view", {})])
    told = [ToolResult(id, "view", [Text("see"), picture]) for id in ("c1", "c2")]
    shown = User([Text("This"), picture, Text("and that")])
    first, _, last = await contents(loopback_gemini, shown, calls, *told)
    assert first["parts"] == [{"text": "This"}, inline, {"text": "and that"}]
    assert [part["functionResponse"]["parts"] for part in last["parts"]] == [[inline], [inline]]
    _, _, last = await contents(loopback_gemini, shown, calls, *told, name=OLD)
    assert ["functionResponse" in part for part in last["parts"]] == [True, True, False, False, False, False]
    assert last["parts"][2:4] == [{"text": "What view shows:"}, inline]


async def test_tokens_are_counted_by_the_provider(loopback_gemini: LoopbackGemini) -> None:
    client = model(loopback_gemini)
    loopback_gemini.send(b'{"totalTokens": 31}', content_type="application/json")
    assert await client.count_tokens(request(HI, system="Be brief.")) == 31
    await client.close()
    received = loopback_gemini.requests[-1]
    assert received.path == f"/v1beta/models/{NEW}:countTokens"
    counted = received.json["generateContentRequest"]
    assert counted["model"] == f"models/{NEW}"
    assert counted["contents"] == [{"role": "user", "parts": [{"text": "Hi"}]}]
