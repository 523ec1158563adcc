"""The recorded streams: what a provider sent, and the message that its own SDK makes of it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from denizen.messages import AssistantMessage, Opaque, Text, Thinking, ToolCall
from denizen.models.anthropic import AnthropicModel
from denizen.models.openai import OpenAIModel
from denizen.models.providers import Provider, provider_named
from denizen.models.responses import ResponsesModel
from denizen.models.wire import WireModel

DATA = Path(__file__).parents[1] / "data"
HOSTS = {
    "api.anthropic.com": "anthropic",
    "api.openai.com": "openai",
    "openrouter.ai": "openrouter",
    "api.groq.com": "groq",
    "api.deepseek.com": "deepseek",
    "api.mistral.ai": "mistral",
    "api.x.ai": "xai",
    "localhost:8080": "llamacpp",
}
CLIENTS: Mapping[str, type[WireModel]] = {
    "anthropic-messages": AnthropicModel,
    "openai-chat": OpenAIModel,
    "openai-responses": ResponsesModel,
}
STOPS = {
    "end_turn": "end",
    "stop_sequence": "end",
    "stop": "end",
    "tool_use": "tool_calls",
    "tool_calls": "tool_calls",
    "length": "length",
}


@dataclass(frozen=True, slots=True)
class Recording:
    """A response as it was recorded; `golden` is what the SDK makes of it, where it makes something."""

    index: int
    file: str
    n: int
    api: str
    host: str
    model: str
    status: int
    golden: Mapping[str, Any] | None = None
    folder: str = "cassettes"

    def __str__(self) -> str:
        return f"{self.index}-{Path(self.file).stem[:60]}"

    @property
    def provider(self) -> Provider:
        """Who sent it; a host that we have no entry for speaks the plain format."""
        if self.api == "anthropic-messages":
            return provider_named("anthropic")
        return provider_named(HOSTS.get(self.host, self.host or "unknown"))

    @property
    def response(self) -> Mapping[str, Any]:
        """Status, headers and body, as recorded."""
        return self._interaction["response"]

    @property
    def request(self) -> Any:
        """What had been asked, as far as it is known."""
        return (self._interaction["request"] or {}).get("body")

    @property
    def _interaction(self) -> Mapping[str, Any]:
        return next(each for each in _interactions(self.folder, self.file) if each["n"] == self.n)

    @property
    def body(self) -> bytes:
        """What came over the wire."""
        return self.response["body"].encode()

    def model_at(self, base_url: str) -> WireModel:
        """A client for it."""
        return CLIENTS[self.api](self.model or "model", self.provider, api_key="secret-key", base_url=base_url)


def recordings(folder: str = "cassettes") -> list[Recording]:
    """All of a folder, with their golden messages."""
    golden = {line["index"]: line.get("golden") for line in _lines(folder, "golden.jsonl")}
    return [
        Recording(
            line["index"],
            line["file"],
            line["n"],
            line["api"],
            line["host"] or "",
            line["model"] or "",
            line["status"],
            golden.get(line["index"]),
            folder,
        )
        for line in _lines(folder, "MANIFEST.jsonl")
    ]


def _lines(folder: str, name: str) -> Iterator[Mapping[str, Any]]:
    with (DATA / folder / name).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


@cache
def _interactions(folder: str, file: str) -> list[Mapping[str, Any]]:
    return json.loads((DATA / folder / file).read_text(encoding="utf-8"))["interactions"]


# A message as plain data, to be compared


def told(message: AssistantMessage, recording: Recording) -> Mapping[str, Any]:
    """What a message says, in the terms of the golden ones."""
    usage = message.usage
    parts = [each for part in message.content if (each := _part(part))]
    return {
        "parts": parts if recording.api == "anthropic-messages" else _in_kinds(message),
        "stop": message.stop_reason,
        "sent": None if usage.input is None else usage.input + (usage.cache_read or 0) + (usage.cache_write or 0),
        "answered": usage.output,
        "cache_read": usage.cache_read,
    }


def _in_kinds(message: AssistantMessage) -> list[object]:
    """Thoughts, words, calls: the format has no order among them."""
    thoughts = "".join(part.text for part in message.content if isinstance(part, Thinking))
    calls = [_part(call) for call in message.tool_calls]
    return [each for each in (("thinking", thoughts, "") if thoughts else None, message.text, *calls) if each]


def _part(part: object) -> object:
    match part:
        case Text(text):
            return text
        case Thinking(text, signature):
            return ("thinking", text, signature)
        case ToolCall(id, name, args):
            return (id, name, args)
        case Opaque(data={"type": "compaction"}):
            return {"type": "compaction"}  # the SDK loses what is in it
        case Opaque(data={"type": _} as data):
            return _without_nulls(data)
    return None  # further fields of a part, or of the message


def golden_of(recording: Recording) -> Mapping[str, Any]:
    """The golden message in the same terms."""
    assert recording.golden
    said = _anthropic if recording.api == "anthropic-messages" else _openai
    return said(recording.golden, recording.provider)


def _anthropic(golden: Mapping[str, Any], _: Provider) -> Mapping[str, Any]:
    usage = golden["usage"]
    cached = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    return {
        "parts": [each for block in golden["content"] if (each := _golden_block(block))],
        "stop": STOPS[golden["stop_reason"]],
        "sent": usage["input_tokens"] + sum(tokens or 0 for tokens in cached),
        "answered": usage["output_tokens"],
        "cache_read": cached[0],
    }


def _golden_block(block: Mapping[str, Any]) -> object:
    match block:
        case {"type": "text", "text": text}:
            return text
        case {"type": "thinking"}:
            return ("thinking", block["thinking"], block.get("signature", ""))
        case {"type": "tool_use"}:
            return (block["id"], block["name"], block["input"])
    return _without_nulls(block)


def _openai(golden: Mapping[str, Any], provider: Provider) -> Mapping[str, Any]:
    thoughts, text = _unlisted(golden["text"])
    thoughts = golden["reasoning"] or thoughts
    calls = [(call["id"], call["name"], json.loads(call["arguments"] or "{}")) for call in golden["tool_calls"]]
    usage = golden["usage"] or {}
    return {
        "parts": [each for each in (("thinking", thoughts, "") if thoughts else None, text, *calls) if each],
        "stop": STOPS[golden["finish_reason"]],
        "sent": usage.get("prompt_tokens"),
        "answered": _answered(usage, provider),
        "cache_read": (usage.get("prompt_tokens_details") or usage).get("cached_tokens"),
    }


def _answered(usage: Mapping[str, Any], provider: Provider) -> int | None:
    """xAI counts the tokens of thoughts apart; they are paid for like the others."""
    thoughts = (
        (usage.get("completion_tokens_details") or {}).get("reasoning_tokens") if provider.reasoning_is_extra else 0
    )
    return usage["completion_tokens"] + (thoughts or 0) if usage else None


def _unlisted(text: str) -> tuple[str, str]:
    """Thoughts and text. Mistral's content may be lists, which OpenAI's SDK doesn't know: here they are as JSON."""
    thoughts, spoken = "", ""
    while text.startswith('[{"type": "thinking"'):
        parts, end = json.JSONDecoder().raw_decode(text)
        thoughts += "".join(inner["text"] for part in parts for inner in part.get("thinking", ()))
        spoken += "".join(part.get("text", "") for part in parts)
        text = text[end:]
    return thoughts, spoken + text


def _without_nulls(data: Any) -> Any:
    """The SDK leaves fields out that are null."""
    match data:
        case dict():
            return {name: _without_nulls(value) for name, value in data.items() if value is not None}
        case list():
            return [_without_nulls(each) for each in data]
    return data
