"""The recorded answers of Gemini: what came over the wire, and what Google's own SDK makes of it."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from denizen.messages import AssistantMessage, Opaque, Text, Thinking, ToolCall
from denizen.models.gemini import GeminiModel
from denizen.models.gemini_answer import ANSWER_FIELDS, MADE_ID_PREFIX, PART_FIELDS

DATA = Path(__file__).parents[1] / "data" / "cassettes_gemini"
LONG = 2_000
"""Characters of a string that the golden lines hold; of a longer one they hold the hash."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GeminiRecording:
    """A response as it was recorded; `golden` is what the SDK makes of it, where it makes something."""

    index: int
    file: str
    n: int
    model: str
    status: int
    stream: bool
    golden: Mapping[str, Any] | None

    def __str__(self) -> str:
        return f"{self.index}-{Path(self.file).stem[:60]}"

    @property
    def response(self) -> Mapping[str, Any]:
        """Status, headers and body, as recorded."""
        interactions = json.loads((DATA / self.file).read_text(encoding="utf-8"))["interactions"]
        return next(each for each in interactions if each["n"] == self.n)["response"]

    @property
    def content_type(self) -> str:
        """As recorded; a few recordings lack it."""
        usual = "text/event-stream" if self.stream else "application/json"
        return self.response["headers"].get("content-type", usual)

    @property
    def body(self) -> bytes:
        """What came over the wire."""
        return self.response["body"].encode()

    def model_at(self, base_url: str) -> GeminiModel:
        """A client for it."""
        return GeminiModel(self.model or "model", api_key="secret-key", base_url=base_url)


def gemini_recordings() -> list[GeminiRecording]:
    """All of them, with their golden messages."""
    golden = {line["index"]: line.get("golden") for line in _lines("golden.jsonl")}
    return [
        GeminiRecording(
            line["index"],
            line["file"],
            line["n"],
            line["model"] or "",
            line["status"],
            line["stream"],
            golden[line["index"]],
        )
        for line in _lines("MANIFEST.jsonl")
    ]


def _lines(name: str) -> Iterator[Mapping[str, Any]]:
    with (DATA / name).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


# A message as plain data, to be compared


def told(message: AssistantMessage) -> Json:
    """What a message says, in the terms of the golden ones."""
    parts: list[Json] = []
    about: Json = {}
    why = message.stop_reason == "refusal" and _last_text(message)  # added here
    for part in message.content:
        if part is why:
            continue
        match part:
            case Text(text):
                _join(parts, {"type": "text", "text": text})
            case Thinking(text, signature):
                _join(parts, {"type": "thought", "text": text} | _signed(signature))
            case ToolCall(id, name, args):
                parts.append(
                    {"type": "call", "id": None if id.startswith(MADE_ID_PREFIX) else id, "name": name, "args": args}
                )
            case Opaque(data={"text": "", "thoughtSignature": signature}):
                _join(parts, {"type": "text", "text": ""} | _signed(signature))
            case Opaque(data=data) if data.keys() & {*ANSWER_FIELDS}:
                about = {_snake(name): _plain(value) for name, value in data.items()}
            case Opaque(data=data) if data.keys() <= PART_FIELDS:
                parts[-1] |= _signed(data["thoughtSignature"])
            case Opaque(data=data):
                rest = {name: value for name, value in data.items() if name != "thoughtSignature"}
                parts.append({"type": "block", "part": _plain(rest)} | _signed(data.get("thoughtSignature", "")))
    usage = message.usage
    return {
        "parts": parts,
        "stop": message.stop_reason,
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        **about,
    }


def golden_of(golden: Mapping[str, Any]) -> Json:
    """The golden message in the same terms."""
    usage = golden["usage"] or {}
    sent, answered = usage.get("input"), [usage.get("output"), usage.get("thoughts")]
    cached = usage.get("cached")
    calls = any(part["type"] == "call" for part in golden["parts"])
    blocked = (golden.get("prompt_feedback") or {}).get("block_reason")
    return {
        "parts": [part | _signed(part.get("signature", "")) for part in golden["parts"]],
        "stop": "refusal" if blocked else _stop(golden["stop"]) or ("tool_calls" if calls else "end"),
        "input": None if sent is None else sent - (cached or 0) + (usage.get("tool_use") or 0),
        "output": None if answered == [None, None] else sum(count or 0 for count in answered),
        "cache_read": cached,
        **{name: golden[name] for name in map(_snake, ANSWER_FIELDS) if golden.get(name)},
    }


def _last_text(message: AssistantMessage) -> Text | None:
    return next((part for part in reversed(message.content) if isinstance(part, Text)), None)


def _stop(reason: str | None) -> str:
    return {"MAX_TOKENS": "length", "SAFETY": "refusal", "RECITATION": "refusal"}.get(reason or "", "")


def _join(parts: list[Json], part: Json) -> None:
    """Add a part; the golden messages join it with one of its kind before it that isn't signed yet."""
    last = parts[-1] if parts else {}
    if last.get("type") == part["type"] and "signature" not in last:
        parts[-1] = last | part | {"text": last["text"] + part["text"]}
    else:
        parts.append(part)


def _signed(signature: str) -> Json:
    """The signature in the letters of the golden messages."""
    return {"signature": signature.replace("-", "+").replace("_", "/")} if signature else {}


def _plain(value: Any) -> Any:
    """A value as the SDK names and stores it."""
    match value:
        case dict():
            return {_snake(name): _plain(each) for name, each in value.items() if each is not None}
        case list():
            return [_plain(each) for each in value]
        case str() if len(value) > LONG:
            base64 = re.fullmatch(r"[\w+/=]+", value)  # the SDK writes that in other letters
            same = value.replace("+", "-").replace("/", "_") if base64 else value
            return {"sha256": hashlib.sha256(same.encode()).hexdigest(), "len": len(value)}
    return value


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name.replace("citationSources", "citations"))
