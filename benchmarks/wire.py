"""The replies of the loopback server as bytes made once, in every wire format, buffered and streamed."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from benchmarks.scene import ANSWER, CHUNKS, CITY, MODEL, TICKET, TOOL_NAME

SERIAL = "00000000"  # stands in the prebuilt bytes where the number of the reply goes
_ARGUMENTS = json.dumps({"city": CITY})
_WORDS = [f"word{n % 100:02d} " for n in range(CHUNKS)]
_NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP response, cut where its serial number goes: engines merge messages that share an id."""

    pieces: Sequence[bytes]

    def fresh(self) -> bytes:
        """The response with an id nobody had before."""
        return self.numbered(b"%08d" % next(_NUMBERS))

    def numbered(self, number: bytes) -> bytes:
        """The response with this number, eight digits long."""
        return number.join(self.pieces)


def _buffered(body: object) -> Reply:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    return Reply((head.encode() + data).split(SERIAL.encode()))


def _streamed(events: Iterable[str]) -> Reply:
    """Every event is an HTTP chunk of its own, as providers send them."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    chunks = (b"%x\r\n%s\r\n" % (len(data), data) for data in (event.encode() for event in events))
    return Reply((head + b"".join(chunks) + b"0\r\n\r\n").split(SERIAL.encode()))


def _openai_call(name: str, arguments: str) -> dict[str, object]:
    return {"id": f"call_{SERIAL}", "type": "function", "function": {"name": name, "arguments": arguments}}


_OPENAI_USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
_OPENAI_HEAD = {"id": f"chatcmpl-{SERIAL}", "created": 1760000000, "model": MODEL}


def _openai(message: dict[str, object], finish: str) -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return _buffered({**_OPENAI_HEAD, "object": "chat.completion", "choices": [choice], "usage": _OPENAI_USAGE})


def _openai_event(delta: dict[str, object], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({**_OPENAI_HEAD, 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"


def _openai_stream(deltas: Iterable[dict[str, object]], finish: str) -> Reply:
    usage = {**_OPENAI_HEAD, "object": "chat.completion.chunk", "choices": [], "usage": _OPENAI_USAGE}
    last = [_openai_event({}, finish), f"data: {json.dumps(usage)}\n\n", "data: [DONE]\n\n"]
    return _streamed([_openai_event({"role": "assistant", "content": ""}), *map(_openai_event, deltas), *last])


def _openai_call_deltas(name: str, arguments: str) -> list[dict[str, object]]:
    return [{"tool_calls": [{"index": 0, **_openai_call(name, arguments)}]}]


def _text_deltas(words: Iterable[str]) -> list[dict[str, object]]:
    return [{"content": word} for word in words]


_ANTHROPIC_MESSAGE = {"id": f"msg_{SERIAL}", "type": "message", "role": "assistant", "model": MODEL}
_ANTHROPIC_USAGE = {"input_tokens": 100, "output_tokens": 10}


def _anthropic_call(arguments: dict[str, str]) -> dict[str, object]:
    return {"type": "tool_use", "id": f"toolu_{SERIAL}", "name": TOOL_NAME, "input": arguments}


def _anthropic(block: dict[str, object], stop: str) -> Reply:
    tail = {"stop_reason": stop, "stop_sequence": None, "usage": _ANTHROPIC_USAGE}
    return _buffered({**_ANTHROPIC_MESSAGE, "content": [block], **tail})


def _event(kind: str, **fields: object) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def _anthropic_stream(block: dict[str, object], deltas: Iterable[dict[str, str]], stop: str) -> Reply:
    start = {**_ANTHROPIC_MESSAGE, "content": [], "stop_reason": None, "usage": _ANTHROPIC_USAGE}
    return _streamed(
        [
            _event("message_start", message=start),
            _event("content_block_start", index=0, content_block=block),
            *(_event("content_block_delta", index=0, delta=delta) for delta in deltas),
            _event("content_block_stop", index=0),
            _event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage={"output_tokens": 10}),
            _event("message_stop"),
        ]
    )


def _anthropic_words(words: Iterable[str]) -> Reply:
    deltas = ({"type": "text_delta", "text": word} for word in words)
    return _anthropic_stream({"type": "text", "text": ""}, deltas, "end_turn")


def _gemini_event(part: dict[str, object], finish: dict[str, str] | None = None) -> str:
    candidate = {"content": {"parts": [part], "role": "model"}, **(finish or {}), "index": 0}
    details = [{"modality": "TEXT", "tokenCount": 100}]
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "promptTokensDetails": details}
    head = {"modelVersion": MODEL, "responseId": SERIAL}
    return f"data: {json.dumps({'candidates': [candidate], 'usageMetadata': usage, **head})}\r\n\r\n"


def _gemini_stream(parts: Iterable[dict[str, object]]) -> Reply:
    return _streamed([*map(_gemini_event, parts), _gemini_event({"text": ""}, {"finishReason": "STOP"})])


def _gemini_words(words: Iterable[str]) -> Reply:
    return _gemini_stream({"text": word} for word in words)


_RESPONSE = {"id": f"resp_{SERIAL}", "object": "response", "created_at": 1760000000, "model": MODEL}
_RESPONSE_USAGE = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}


def _said(text: str) -> dict[str, object]:
    content = [{"type": "output_text", "text": text, "annotations": []}] if text else []
    return {"type": "message", "id": f"msg_{SERIAL}", "role": "assistant", "status": "completed", "content": content}


def _called(name: str, arguments: str) -> dict[str, object]:
    return {"type": "function_call", "call_id": f"call_{SERIAL}", "name": name, "arguments": arguments}


def _response(item: dict[str, object]) -> dict[str, object]:
    return {**_RESPONSE, "status": "completed", "output": [item], "usage": _RESPONSE_USAGE}


def _responses_stream(start: dict[str, object], words: Iterable[str], item: dict[str, object]) -> Reply:
    place = {"output_index": 0, "item_id": f"msg_{SERIAL}"}
    return _streamed(
        [
            _event("response.created", response={**_RESPONSE, "status": "in_progress", "output": []}),
            _event("response.output_item.added", output_index=0, item=start),
            *(_event("response.output_text.delta", **place, content_index=0, delta=word) for word in words),
            _event("response.output_item.done", output_index=0, item=item),
            _event("response.completed", response=_response(item)),
        ]
    )


def _responses_words(words: Sequence[str]) -> Reply:
    return _responses_stream(_said(""), words, _said("".join(words)))


def _responses_call(name: str, arguments: str) -> Reply:
    return _responses_stream(_called(name, ""), (), _called(name, arguments))


@dataclass(frozen=True, slots=True)
class Replies:
    """What the server can say in one wire format.

    `finish` is for engines that answer by calling a tool; `echo` says the ticket that is its number.
    """

    call: Reply
    answer: Reply
    finish: Reply
    words: Reply
    echo: Reply


_ECHO = f"{TICKET}{SERIAL}"
_FINISH = json.dumps({"answer": ANSWER})
OPENAI = Replies(
    call=_openai({"content": None, "tool_calls": [_openai_call(TOOL_NAME, _ARGUMENTS)]}, "tool_calls"),
    answer=_openai({"content": ANSWER}, "stop"),
    finish=_openai({"content": None, "tool_calls": [_openai_call("final_answer", _FINISH)]}, "tool_calls"),
    words=_openai({"content": "".join(_WORDS)}, "stop"),
    echo=_openai({"content": _ECHO}, "stop"),
)
OPENAI_STREAMED = Replies(
    call=_openai_stream(_openai_call_deltas(TOOL_NAME, _ARGUMENTS), "tool_calls"),
    answer=_openai_stream(_text_deltas([ANSWER]), "stop"),
    finish=_openai_stream(_openai_call_deltas("final_answer", _FINISH), "tool_calls"),
    words=_openai_stream(_text_deltas(_WORDS), "stop"),
    echo=_openai_stream(_text_deltas([_ECHO]), "stop"),
)
ANTHROPIC = Replies(
    call=_anthropic(_anthropic_call({"city": CITY}), "tool_use"),
    answer=_anthropic({"type": "text", "text": ANSWER}, "end_turn"),
    finish=_anthropic({"type": "text", "text": ANSWER}, "end_turn"),
    words=_anthropic({"type": "text", "text": "".join(_WORDS)}, "end_turn"),
    echo=_anthropic({"type": "text", "text": _ECHO}, "end_turn"),
)
ANTHROPIC_STREAMED = Replies(
    call=_anthropic_stream(_anthropic_call({}), [{"type": "input_json_delta", "partial_json": _ARGUMENTS}], "tool_use"),
    answer=_anthropic_words([ANSWER]),
    finish=_anthropic_words([ANSWER]),
    words=_anthropic_words(_WORDS),
    echo=_anthropic_words([_ECHO]),
)
GEMINI_STREAMED = Replies(
    call=_gemini_stream([{"functionCall": {"name": TOOL_NAME, "args": {"city": CITY}}}]),
    answer=_gemini_words([ANSWER]),
    finish=_gemini_words([ANSWER]),
    words=_gemini_words(_WORDS),
    echo=_gemini_words([_ECHO]),
)
RESPONSES_STREAMED = Replies(
    call=_responses_call(TOOL_NAME, _ARGUMENTS),
    answer=_responses_words([ANSWER]),
    finish=_responses_call("final_answer", _FINISH),
    words=_responses_words(_WORDS),
    echo=_responses_words([_ECHO]),
)
