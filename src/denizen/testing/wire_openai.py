"""Messages in OpenAI Chat Completions."""

from collections.abc import Iterator
from typing import Final

import msgspec

from denizen.messages import AssistantMessage, Opaque, Thinking, ToolCall
from denizen.testing.wire import Json, Wire, event, words

_STOPS: Final = {"end": "stop", "tool_calls": "tool_calls", "length": "length", "refusal": "content_filter"}


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
            case _:
                pass
    return wire | {"tool_calls": calls} if calls else wire


def _usage(message: AssistantMessage) -> Json | None:
    usage = message.usage
    if usage.input is None:
        return None
    sent = usage.input + (usage.cache_read or 0) + (usage.cache_write or 0)
    details = {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write}
    return {"prompt_tokens": sent, "completion_tokens": usage.output, "prompt_tokens_details": details}


_HEAD: Final[Json] = {"id": "chatcmpl-1", "created": 1767225600, "model": "loopback"}


def _whole(message: AssistantMessage) -> bytes:
    choice = {"index": 0, "message": _message(message), "finish_reason": _STOPS.get(message.stop_reason, "stop")}
    usage = _usage(message)
    return msgspec.json.encode({**_HEAD, "object": "chat.completion", "choices": [choice], "usage": usage})


def _streamed(message: AssistantMessage) -> list[bytes]:
    deltas = [{"role": "assistant", "content": ""}, *_deltas(_message(message))]
    choices: list[Json] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": _STOPS.get(message.stop_reason, "stop")})
    chunks = [_chunk([choice], None) for choice in choices]
    if usage := _usage(message):
        chunks.append(_chunk([], usage))
    return [*map(event, chunks), b"data: [DONE]\n\n"]


def _chunk(choices: list[Json], usage: Json | None) -> Json:
    return {**_HEAD, "object": "chat.completion.chunk", "choices": choices, "usage": usage}


def _deltas(whole: Json) -> Iterator[Json]:
    for name in ("reasoning_content", "content"):
        yield from ({name: word} for word in words(whole.pop(name, None) or ""))
    for index, call in enumerate(whole.pop("tool_calls", ())):
        function = call["function"]
        yield {"tool_calls": [call | {"index": index, "function": function | {"arguments": ""}}]}
        for piece in words(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
    if rest := {name: value for name, value in whole.items() if name != "role"}:
        yield rest


def _error(status: int, sentence: str) -> Json:
    kinds = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
    return {"error": {"message": sentence, "type": "error", "param": None, "code": kinds.get(status)}}


OPENAI: Final = Wire("/v1", _whole, _streamed, _error)
