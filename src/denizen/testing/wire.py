"""Messages as the providers' own servers would send them: in one piece, or as the events of a stream."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from denizen.messages import AssistantMessage, Opaque, Text, Thinking, ToolCall

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wire:
    """One provider's wire format. `prefix` is the path of its base URL; `error` makes the body of a failure."""

    prefix: str
    whole: Callable[[AssistantMessage], bytes]
    streamed: Callable[[AssistantMessage], Sequence[bytes]]
    error: Callable[[int, str], Json]


def pieces_of(text: str) -> list[str]:
    """A text in pieces, as a model streams it: words, each with the space before it."""
    first, *rest = text.split(" ")
    return [piece for piece in (first, *(f" {word}" for word in rest)) if piece]


def event(data: Json, name: str = "") -> bytes:
    """An event of a stream."""
    head = f"event: {name}\n" if name else ""
    return b"%sdata: %s\n\n" % (head.encode(), msgspec.json.encode(data))


# Anthropic Messages

_ANTHROPIC_STOPS: Final = {"end": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "refusal": "refusal"}


def _blocks(message: AssistantMessage) -> list[Json]:
    """Its blocks; fields that we keep after a block are in it again."""
    blocks: list[Json] = []
    for part in message.content:
        match part:
            case Text(text):
                blocks.append({"type": "text", "text": text})
            case Thinking(text, signature):
                blocks.append({"type": "thinking", "thinking": text, "signature": signature})
            case ToolCall(id, name, args):
                blocks.append({"type": "tool_use", "id": id, "name": name, "input": args})
            case Opaque(data={"type": _} as block):
                blocks.append(block)
            case Opaque(data=rest):
                blocks[-1] = blocks[-1] | rest
    return blocks


def _head(message: AssistantMessage, content: list[Json], stop: str | None) -> Json:
    usage = message.usage
    counts = {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
    }
    known = {name: count for name, count in counts.items() if count is not None}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "loopback"}
    return {**head, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": known}


def _anthropic_whole(message: AssistantMessage) -> bytes:
    return msgspec.json.encode(_head(message, _blocks(message), _ANTHROPIC_STOPS.get(message.stop_reason, "end_turn")))


def _anthropic_streamed(message: AssistantMessage) -> list[bytes]:
    whole = _head(message, [], None)
    events: list[Json] = [{"type": "message_start", "message": whole}, {"type": "ping"}]
    for index, block in enumerate(_blocks(message)):
        start, deltas = _block_deltas(block)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": _ANTHROPIC_STOPS.get(message.stop_reason, "end_turn"), "stop_sequence": None}
    events += [{"type": "message_delta", "delta": delta, "usage": whole["usage"]}, {"type": "message_stop"}]
    return [event(data, data["type"]) for data in events]


def _block_deltas(block: Json) -> tuple[Json, list[Json]]:
    """The start of a block, and its deltas."""
    match block:
        case {"type": "text", "text": text}:
            cited = [{"type": "citations_delta", "citation": each} for each in block.get("citations", ())]
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces_of(text)]
            return {"type": "text", "text": ""}, deltas + cited
        case {"type": "thinking", "thinking": text, "signature": signature}:
            thought = [{"type": "thinking_delta", "thinking": word} for word in pieces_of(text)]
            return block | {"thinking": "", "signature": ""}, [
                *thought,
                {"type": "signature_delta", "signature": signature},
            ]
        case {"type": "tool_use", "input": args}:
            pieces = pieces_of(msgspec.json.encode(args).decode())
            return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return block, []


def _anthropic_error(status: int, sentence: str) -> Json:
    kinds = {400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error"}
    kinds |= {404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error"}
    return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": sentence}}


ANTHROPIC: Final = Wire("", _anthropic_whole, _anthropic_streamed, _anthropic_error)


# OpenAI Chat Completions

_OPENAI_STOPS: Final = {"end": "stop", "tool_calls": "tool_calls", "length": "length", "refusal": "content_filter"}


def _message(message: AssistantMessage) -> Json:
    wire: Json = {"role": "assistant", "content": message.text or None}
    calls: list[Json] = []
    for part in message.content:
        match part:
            case Thinking(text):
                wire["reasoning_content"] = wire.get("reasoning_content", "") + text
            case ToolCall(id, name, args):
                function = {"name": name, "arguments": msgspec.json.encode(args).decode()}
                calls.append({"id": id, "type": "function", "function": function})
            case Opaque(data=data):
                (calls[-1] if "extra_content" in data and calls else wire).update(data)
    return wire | {"tool_calls": calls} if calls else wire


def _usage(message: AssistantMessage) -> Json | None:
    usage = message.usage
    if usage.input is None:
        return None
    details = {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write}
    return {"prompt_tokens": usage.sent, "completion_tokens": usage.output, "prompt_tokens_details": details}


_OPENAI_HEAD: Final[Json] = {"id": "chatcmpl-1", "created": 1767225600, "model": "loopback"}


def _openai_whole(message: AssistantMessage) -> bytes:
    choice = {"index": 0, "message": _message(message), "finish_reason": _OPENAI_STOPS.get(message.stop_reason, "stop")}
    usage = _usage(message)
    return msgspec.json.encode({**_OPENAI_HEAD, "object": "chat.completion", "choices": [choice], "usage": usage})


def _openai_streamed(message: AssistantMessage) -> list[bytes]:
    deltas = [{"role": "assistant", "content": ""}, *_message_deltas(_message(message))]
    choices: list[Json] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": _OPENAI_STOPS.get(message.stop_reason, "stop")})
    chunks = [_chunk([choice], None) for choice in choices]
    if usage := _usage(message):
        chunks.append(_chunk([], usage))
    return [*map(event, chunks), b"data: [DONE]\n\n"]


def _chunk(choices: list[Json], usage: Json | None) -> Json:
    return {**_OPENAI_HEAD, "object": "chat.completion.chunk", "choices": choices, "usage": usage}


def _message_deltas(whole: Json) -> Iterator[Json]:
    for name in ("reasoning_content", "content"):
        yield from ({name: word} for word in pieces_of(whole.pop(name, None) or ""))
    for index, call in enumerate(whole.pop("tool_calls", ())):
        function = call["function"]
        yield {"tool_calls": [call | {"index": index, "function": function | {"arguments": ""}}]}
        for piece in pieces_of(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
    if rest := {name: value for name, value in whole.items() if name != "role"}:
        yield rest


def _openai_error(status: int, sentence: str) -> Json:
    kinds = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
    return {"error": {"message": sentence, "type": "error", "param": None, "code": kinds.get(status)}}


OPENAI: Final = Wire("/v1", _openai_whole, _openai_streamed, _openai_error)


# OpenAI Responses


def _items(message: AssistantMessage) -> list[Json]:
    """Its items; fields that we keep after an item are in it again."""
    items: list[Json] = []
    for part in message.content:
        match part:
            case Text(text):
                content: list[Json] = [{"type": "output_text", "text": text}]
                items.append({"type": "message", "role": "assistant", "status": "completed", "content": content})
            case Thinking(text):
                items.append({"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]})
            case ToolCall(id, name, args):
                arguments = msgspec.json.encode(args).decode()
                items.append({"type": "function_call", "call_id": id, "name": name, "arguments": arguments})
            case Opaque(data={"type": "reasoning"} as item) if items and items[-1]["type"] == "reasoning":
                items[-1] = item
            case Opaque(data={"type": _} as item):
                items.append(item)
            case Opaque(data=rest):
                items[-1] = items[-1] | rest
    return items


def _response(message: AssistantMessage, items: list[Json], *, done: bool) -> Json:
    usage, status = message.usage, "completed" if done else "in_progress"
    wire: Json = {"id": "resp_1", "object": "response", "model": "loopback", "output": items, "error": None}
    if done and message.stop_reason in {"length", "refusal"}:
        status = "incomplete"
        reason = "max_output_tokens" if message.stop_reason == "length" else "content_filter"
        wire["incomplete_details"] = {"reason": reason}
    if done and usage.input is not None:
        details = {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write}
        wire["usage"] = {"input_tokens": usage.sent, "output_tokens": usage.output, "input_tokens_details": details}
    return wire | {"status": status}


def _responses_whole(message: AssistantMessage) -> bytes:
    return msgspec.json.encode(_response(message, _items(message), done=True))


def _responses_streamed(message: AssistantMessage) -> list[bytes]:
    items = _items(message)
    events: list[Json] = [{"type": "response.created", "response": _response(message, [], done=False)}]
    for place, item in enumerate(items):
        start, kind, text = _item_deltas(item)
        events.append({"type": "response.output_item.added", "output_index": place, "item": start})
        events += ({"type": kind, "output_index": place, "delta": piece} for piece in pieces_of(text))
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    whole = _response(message, items, done=True)
    events.append({"type": f"response.{whole['status']}", "response": whole})
    return [event(data | {"sequence_number": number}, data["type"]) for number, data in enumerate(events)]


def _item_deltas(item: Json) -> tuple[Json, str, str]:
    """The start of an item, the type of its delta events, and their text."""
    match item:
        case {"type": "message", "content": [{"text": str(text)}]}:
            return item | {"content": []}, "response.output_text.delta", text
        case {"type": "reasoning", "summary": [{"text": str(text)}]}:
            return item | {"summary": []}, "response.reasoning_summary_text.delta", text
        case {"type": "function_call", "arguments": str(text)}:
            return item | {"arguments": ""}, "response.function_call_arguments.delta", text
    return item, "", ""


RESPONSES: Final = Wire("/v1", _responses_whole, _responses_streamed, _openai_error)
