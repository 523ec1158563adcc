"""The wire formats: a provider of each, what it says that only it understands, and what its requests may hold."""

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from denizen.messages import AssistantMessage, Opaque, Text, Thinking, ToolCall
from denizen.testing import LoopbackAnthropic, LoopbackGemini, LoopbackOpenAI, LoopbackResponses
from denizen.testing.loopback import LoopbackServer

PICTURE: Final = b"\x89PNG\r\n\x1a\n?"
PICTURE_CODE: Final = base64.b64encode(PICTURE).decode()


@dataclass(frozen=True)
class Format:
    """A format by one of its providers.

    `answer` calls `look` after thoughts and blocks of its own. `own` is what of it must be in its later requests and
    in no other's; `check` raises AssertionError for a request that isn't in the format. `overloaded` are the events
    by which a stream that has begun may end in a failure.
    """

    model: str
    api: str
    server: type[LoopbackServer]
    answer: AssistantMessage
    own: Sequence[str]
    check: Callable[[Any], None]
    overloaded: Sequence[bytes]

    @property
    def provider(self) -> str:
        """Its name."""
        return self.model.partition(":")[0]


def _check_anthropic(body: Any) -> None:
    """https://platform.claude.com/docs/en/api/messages"""
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    open_calls: set[str] = set()
    for message in body["messages"]:
        assert message["content"]
        results = {block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"}
        assert results == open_calls
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        assert all(re.fullmatch("[a-zA-Z0-9_-]+", each) for each in calls)
        open_calls = set(calls)
        for block in message["content"]:
            assert block["type"] in _BLOCKS[message["role"]]
            assert block["type"] != "thinking" or block["signature"]
            assert block["type"] != "text" or block["text"].strip()


_BLOCKS: Final = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
}


def _check_chat(body: Any) -> None:
    """https://platform.openai.com/docs/api-reference/chat/create"""
    open_calls: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_calls.pop(0)
            assert isinstance(message["content"], str)
            assert message["content"]
            continue
        assert not open_calls
        if message["role"] == "assistant":
            assert message.keys() <= {"role", "content", "tool_calls", "reasoning_details"}
            open_calls = [call["id"] for call in message.get("tool_calls", ())]
            assert all(call["function"]["name"] == "look" for call in message.get("tool_calls", ()))
        elif isinstance(message["content"], list):
            assert {part["type"] for part in message["content"]} <= {"text", "image_url", "file"}
    assert not open_calls


def _check_responses(body: Any) -> None:
    """https://platform.openai.com/docs/api-reference/responses/create"""
    open_calls: list[str] = []
    for item in body["input"]:
        match item:
            case {"type": "function_call_output", "call_id": call_id, "output": output}:
                open_calls.remove(call_id)
                assert output
            case {"type": "function_call", "call_id": call_id, "name": "look", "arguments": str()}:
                assert len(call_id) <= 64
                open_calls.append(call_id)
            case {"role": "user" | "assistant", "content": content}:
                assert content
            case _:
                assert item["type"] == "reasoning"
        assert not open_calls or item.get("role") != "user"
    assert not open_calls


def _check_gemini(body: Any) -> None:
    """https://ai.google.dev/api/generate-content"""
    roles = [content["role"] for content in body["contents"]]
    assert roles == ["user", "model"] * (len(roles) // 2) + ["user"]
    calls: list[Any] = []
    for content in body["contents"]:
        assert content["parts"]
        results = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        assert [(each.get("id"), each["name"]) for each in results] == calls
        called = [part for part in content["parts"] if "functionCall" in part]
        assert all("thoughtSignature" in part for part in called[:1])
        calls = [(part["functionCall"].get("id"), part["functionCall"]["name"]) for part in called]
        for part in content["parts"]:
            assert part.keys() & _PARTS[content["role"]]


_PARTS: Final = {
    "user": {"text", "inlineData", "functionResponse"},
    "model": {"text", "functionCall", "executableCode", "codeExecutionResult"},
}


FORMATS: Final[Sequence[Format]] = (
    Format(
        "anthropic:claude-sonnet-4-5",
        "anthropic",
        LoopbackAnthropic,
        AssistantMessage(
            [
                Thinking("Claude wonders.", "Y2xhdWRl"),
                Opaque("anthropic", {"type": "redacted_thinking", "data": "only Claude reads this"}),
                Text("I look."),
                ToolCall("toolu_01", "look", {"at": "é"}),
            ],
            stop_reason="tool_calls",
        ),
        ("Claude wonders.", "Y2xhdWRl", "only Claude reads this"),
        _check_anthropic,
        (b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',),
    ),
    Format(
        "openrouter:moonshotai/kimi-k2",
        "chat",
        LoopbackOpenAI,
        AssistantMessage(
            [
                Opaque(
                    "openrouter",
                    {"reasoning_details": [{"type": "reasoning.encrypted", "data": "only the router reads this"}]},
                ),
                Thinking("Kimi wonders."),
                Text("I look."),
                ToolCall("functions.look:0", "look", {"at": "é"}),
            ],
            stop_reason="tool_calls",
        ),
        ("only the router reads this",),
        _check_chat,
        (b'data: {"error":{"code":503,"message":"Overloaded"},"choices":[{"index":0,"delta":{}}]}\n\n',),
    ),
    Format(
        "openai:gpt-5.3-codex",
        "responses",
        LoopbackResponses,
        AssistantMessage(
            [
                Thinking("Codex wonders."),
                Opaque(
                    "openai",
                    {
                        "type": "reasoning",
                        "id": "rs_1",
                        "summary": [{"type": "summary_text", "text": "Codex wonders."}],
                        "encrypted_content": "only OpenAI reads this",
                    },
                ),
                Text("I look."),
                Opaque("openai", {"id": "msg_1", "phase": "commentary"}),
                ToolCall("call_1", "look", {"at": "é"}),
                Opaque("openai", {"id": "fc_1"}),
            ],
            stop_reason="tool_calls",
        ),
        ("Codex wonders.", "only OpenAI reads this", "msg_1", "commentary", "fc_1"),
        _check_responses,
        (
            b'event: error\ndata: {"type":"error","code":"server_error","message":"Overloaded"}\n\n',
            b'data: {"type":"response.failed","response":{"error":{"code":"server_error","message":"Overloaded"}}}\n\n',
        ),
    ),
    Format(
        "google:gemini-3-pro-preview",
        "gemini",
        LoopbackGemini,
        AssistantMessage(
            [
                Thinking("Gemini wonders.", "Z2VtaW5p"),
                Opaque("google", {"executableCode": {"language": "PYTHON", "code": "only_gemini_runs(this)"}}),
                Opaque(
                    "google", {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "only Gemini reads this"}}
                ),
                Text("I look."),
                ToolCall("", "look", {"at": "é"}),
                Opaque("google", {"thoughtSignature": "b25seUdlbWluaQ=="}),
            ],
            stop_reason="tool_calls",
        ),
        ("Gemini wonders.", "Z2VtaW5p", "only_gemini_runs(this)", "only Gemini reads this", "b25seUdlbWluaQ=="),
        _check_gemini,
        (b'data: {"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}\r\n\r\n',),
    ),
)
"""One row for each; what is said in one goes on in all others (`test_crossing.py`)."""
