"""Messages in Anthropic Messages."""

from collections.abc import Iterator
from typing import Final

import msgspec

from denizen.messages import AssistantMessage, AssistantPart, Opaque, Text, Thinking, ToolCall
from denizen.testing.wire import Json, Wire, event, words

_STOPS: Final = {"end": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "refusal": "refusal"}


def _block(part: AssistantPart) -> Json:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Thinking(text, signature):
            return {"type": "thinking", "thinking": text, "signature": signature}
        case ToolCall(id, name, args):
            return {"type": "tool_use", "id": id, "name": name, "input": args}
        case Opaque(data=data):
            return data


def _blocks(message: AssistantMessage) -> list[Json]:
    """Its blocks; fields that we keep behind a block are in it again."""
    blocks: list[Json] = []
    for part in message.content:
        if isinstance(part, Opaque) and "type" not in part.data:
            blocks[-1] = blocks[-1] | part.data
        else:
            blocks.append(_block(part))
    return blocks


def _head(message: AssistantMessage, content: list[Json], stop: str | None) -> Json:
    usage = message.usage
    counts = {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
    }
    told = {name: count for name, count in counts.items() if count is not None}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "loopback"}
    return {**head, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": told}


def _whole(message: AssistantMessage) -> bytes:
    return msgspec.json.encode(_head(message, _blocks(message), _STOPS.get(message.stop_reason, "end_turn")))


def _streamed(message: AssistantMessage) -> list[bytes]:
    return [event(data, data["type"]) for data in _told(message)]


def _told(message: AssistantMessage) -> Iterator[Json]:
    whole = _head(message, [], None)
    yield {"type": "message_start", "message": whole}
    yield {"type": "ping"}
    for index, block in enumerate(_blocks(message)):
        start, deltas = _deltas(block)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": _STOPS.get(message.stop_reason, "end_turn"), "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": whole["usage"]}
    yield {"type": "message_stop"}


def _deltas(block: Json) -> tuple[Json, list[Json]]:
    """What a block starts with, and what is added to it."""
    match block:
        case {"type": "text", "text": text}:
            cited = [{"type": "citations_delta", "citation": each} for each in block.get("citations", ())]
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": word} for word in words(text)] + cited
        case {"type": "thinking", "thinking": text, "signature": signature}:
            thought = [{"type": "thinking_delta", "thinking": word} for word in words(text)]
            return block | {"thinking": "", "signature": ""}, [
                *thought,
                {"type": "signature_delta", "signature": signature},
            ]
        case {"type": "tool_use", "input": args}:
            pieces = words(msgspec.json.encode(args).decode())
            return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return block, []


def _error(status: int, sentence: str) -> Json:
    kinds = {400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error"}
    kinds |= {404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error"}
    return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": sentence}}


ANTHROPIC: Final = Wire("", _whole, _streamed, _error)
