"""Messages as Google's server would send them in Gemini's own format."""

from typing import Any, Final

import msgspec

from denizen.messages import AssistantMessage, Opaque, Text, Thinking, ToolCall
from denizen.testing.wire import Wire, event, pieces_of

Json = dict[str, Any]

_STOPS: Final = {"length": "MAX_TOKENS", "refusal": "SAFETY"}
_CODES: Final = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"} | {
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
_ABOUT: Final = {"citationMetadata", "groundingMetadata", "urlContextMetadata"}


def _parts(message: AssistantMessage) -> tuple[list[Json], Json]:
    """Its parts, with the fields that we keep after them, and what comes with the answer as a whole."""
    parts: list[Json] = []
    about: Json = {}
    for part in message.content:
        match part:
            case Text(text):
                parts.append({"text": text})
            case Thinking(text, signature):
                parts.append({"text": text, "thought": True} | ({"thoughtSignature": signature} if signature else {}))
            case ToolCall(id, name, args):
                parts.append({"functionCall": {"id": id, "name": name, "args": args}})
            case Opaque(data={"thoughtSignature": _} as fields) if len(fields) == 1:
                parts[-1] = parts[-1] | fields
            case Opaque(data=data):
                (about.update if data.keys() & _ABOUT else parts.append)(data)
    return parts, about


def _chunk(message: AssistantMessage, parts: list[Json], last: Json | None = None) -> Json:
    """A response, or an event of one; `last` is what only the last event has."""
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last is not None:
        candidate |= {"finishReason": _STOPS.get(message.stop_reason, "STOP"), **last}
    usage = message.usage
    counts = {
        "promptTokenCount": None if usage.input is None else usage.sent,
        "candidatesTokenCount": usage.output,
        "cachedContentTokenCount": usage.cache_read,
    }
    known = {name: count for name, count in counts.items() if count is not None}
    return {"candidates": [candidate], "usageMetadata": known, "modelVersion": "loopback", "responseId": "1"}


def _whole(message: AssistantMessage) -> bytes:
    return msgspec.json.encode(_chunk(message, *_parts(message)))


def _streamed(message: AssistantMessage) -> list[bytes]:
    parts, about = _parts(message)
    pieces: list[Json] = []
    for part in parts:
        if isinstance(text := part.get("text"), str) and "thoughtSignature" not in part:
            pieces += [part | {"text": piece} for piece in pieces_of(text)]
        else:
            pieces.append(part)
    events = [_chunk(message, [piece]) for piece in pieces]
    return [event(each) for each in (*events, _chunk(message, [{"text": ""}], about))]


def _error(status: int, sentence: str) -> Json:
    return {"error": {"code": status, "message": sentence, "status": _CODES.get(status, "UNKNOWN")}}


GEMINI: Final = Wire("/v1beta", _whole, _streamed, _error)
