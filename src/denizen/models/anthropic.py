"""Anthropic Messages: requests, and answers put together from a stream or read in one piece.

https://platform.claude.com/docs/en/api/messages, https://platform.claude.com/docs/en/build-with-claude/streaming
"""

import base64
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from denizen.events import (
    Retrying,
    StreamEvent,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEnd,
)
from denizen.messages import (
    AssistantMessage,
    AssistantPart,
    Image,
    Message,
    Opaque,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from denizen.models.encoding import Encoded, encode_json
from denizen.models.failures import WINDOW_FULL, Origin
from denizen.models.parsing import Count, arguments, decode
from denizen.models.providers import PROVIDERS
from denizen.models.reasoning import anthropic_fields
from denizen.models.wire import WireModel, closed, with_options
from denizen.ports import ModelRequest

VERSION: Final = "2023-06-01"
_CACHED: Final = {"type": "ephemeral"}
_MARK: Final = b',"cache_control":' + encode_json(_CACHED)
_TAIL: Final = len(b"}]}")  # what closes a run: its last block, the content, the message
_TAKES_SCHEMAS: Final = re.compile(r"claude-[a-z]+-(4-[1-9](?!\d)|[5-9])")
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")

Json = dict[str, Any]


class AnthropicModel(WireModel):
    """A model of Anthropic's Messages API, or of a server that speaks it.

    The prompt's tools, system text and last two turns of the user are marked for the provider's cache: what one call
    writes there the next one reads.
    """

    path = "/v1/messages"
    usual = PROVIDERS["anthropic"]

    def _credentials(self, api_key: str) -> Mapping[str, str]:
        version = {"anthropic-version": VERSION}
        return {"x-api-key": api_key, **version} if api_key else version

    def _new_answer(self) -> "AnthropicAnswer":
        return AnthropicAnswer(self._origin)

    def _head(self, request: ModelRequest) -> bytes:
        fields: Json = {"model": self.model, "max_tokens": request.max_tokens, "stream": request.stream}
        if request.system.strip():
            fields["system"] = [_text(request.system) | {"cache_control": _CACHED}]
        if request.tools:
            fields["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                for tool in request.tools
            ]
            fields["tools"][-1]["cache_control"] = _CACHED
        if request.output_schema and _TAKES_SCHEMAS.match(self.model) and (schema := closed(request.output_schema)):
            fields["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        thoughts = anthropic_fields(self.model, request.reasoning or "none", request.max_tokens)
        if config := thoughts.pop("output_config", None):
            fields["output_config"] = fields.get("output_config", {}) | config
        fields = with_options(fields | thoughts, request.options)
        if thoughts:  # these can't be chosen then
            fields = {name: value for name, value in fields.items() if name not in {"temperature", "top_k"}}
        if "stop" in fields:
            fields["stop_sequences"] = fields.pop("stop")
        return encode_json(fields)[:-1] + b',"messages":['

    def _latest(self, encoded: Encoded) -> list[bytes]:
        """The last two runs of the user are marked."""
        runs, texts = encoded.runs, [*encoded.texts]
        latest = range(max(-len(runs), -4), 0)  # of four, at least two are the user's
        for place in [place for place in latest if not runs[place].assistant][-2:]:
            texts[place] = texts[place][:-_TAIL] + _MARK + texts[place][-_TAIL:]
        return texts

    def _run(self, run: Sequence[Message]) -> bytes:
        role = "assistant" if isinstance(run[0], AssistantMessage) else "user"
        results_first = sorted(run, key=lambda message: not isinstance(message, ToolResult))
        blocks = [block for message in results_first for block in self._blocks(message)]
        return encode_json({"role": role, "content": blocks}) if blocks else b""

    def _blocks(self, message: Message) -> list[Json]:
        if isinstance(message, ToolResult):
            block: Json = {"type": "tool_result", "tool_use_id": _own_id(message.call_id)}
            if content := _said(message.content):
                block["content"] = content
            return [block | {"is_error": True} if message.is_error else block]
        if not isinstance(message, AssistantMessage):
            return _said(message.content)
        ours = message.model.partition(":")[0] in {"", self.provider.name}
        blocks: list[Json] = []
        for part in message.content:
            match part:
                case Text(text) if text.strip():
                    blocks.append(_text(text))
                case Thinking(text, signature) if signature and ours:
                    blocks.append({"type": "thinking", "thinking": text, "signature": signature})
                case ToolCall(id, name, args):
                    blocks.append({"type": "tool_use", "id": _own_id(id), "name": name, "input": args})
                case Opaque(self.provider.name, {"type": _} as data):
                    blocks.append(data)
                case Opaque(self.provider.name, dict(data)) if blocks:  # fields of the block before it
                    blocks[-1] = blocks[-1] | data
                case _:
                    pass
        return blocks


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _said(parts: Sequence[Text | Image]) -> list[Json]:
    """Its blocks; empty words aren't allowed."""
    blocks: list[Json] = []
    for part in parts:
        if isinstance(part, Image):
            data = base64.b64encode(part.data).decode()
            source = {"type": "base64", "media_type": part.media_type, "data": data}
            blocks.append({"type": "image", "source": source})
        elif part.text.strip():
            blocks.append(_text(part.text))
    return blocks


def _own_id(id: str) -> str:
    """An id that another provider may have made, in letters that are allowed here."""
    return _FOREIGN.sub("_", id)


# Answers

_USUAL: Final[tuple[Any, ...]] = (None, [], {"type": "direct"})  # the last for calls that the model makes itself
_STOPS: Final[Mapping[str, StopReason]] = {
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}


class Delta(msgspec.Struct, gc=False):
    """Some more of a block, or of the message."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    signature: str = ""
    citation: Any = None
    stop_reason: str | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None


class _Message(msgspec.Struct, gc=False):
    id: str = ""
    content: list[dict[str, Any]] | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None
    error: Any = None


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    index: int = 0
    delta: Delta | None = None
    content_block: dict[str, Any] | None = None
    message: _Message | None = None
    usage: _Usage | None = None
    error: Any = None


_EVENT: Final = msgspec.json.Decoder(_Event)
_MESSAGE: Final = msgspec.json.Decoder(_Message)


class AnthropicAnswer:
    """The answer: `complete` once it is known why it stopped, `done` when nothing more is to come."""

    def __init__(self, origin: Origin) -> None:
        self.done = False
        self._origin = origin
        self._blocks: dict[int, Block] = {}
        self._id = ""
        self._stop: str | None = None
        self._usage = _Usage()

    @property
    def complete(self) -> bool:
        """Whether it is whole."""
        return self._stop is not None

    @property
    def paused(self) -> bool:
        """Whether the provider paused amid tools of its own, and none of ours is called."""
        return self._stop == "pause_turn" and not any(block.kind == "tool_use" for block in self._blocks.values())

    def read(self, body: bytes) -> None:
        """The whole answer, when it came in one piece."""
        try:
            message = decode(_MESSAGE, body)
        except ValueError as error:
            raise self._origin.failure("its answer is not a message in Anthropic's format") from error
        if message.error is not None:
            raise self._origin.refused(message.error)
        if message.stop_reason is None and not message.content:
            raise self._origin.failure("its answer is empty", "timeout")
        self._begin(message, [])
        self._stop = self._stop or "end_turn"

    def message(self) -> AssistantMessage:
        """The answer so far."""
        content = [part for block in self._blocks.values() for part in block.parts(self._origin.provider)]
        reason = _STOPS.get(self._stop or "", "end")
        if reason == "end" and any(isinstance(part, ToolCall) for part in content):
            reason = "tool_calls"
        usage = Usage(*(getattr(self._usage, name) for name in _Usage.__struct_fields__))
        return AssistantMessage(content, self._origin.model, usage, reason)

    def feed(self, payloads: Sequence[bytes]) -> list[StreamEvent]:
        """What the data of the next events of the stream brings."""
        news: list[StreamEvent] = []
        for payload in payloads:
            try:
                event = decode(_EVENT, payload)
                if event.type == "content_block_delta" and event.delta:
                    block = self._blocks.get(event.index)
                    if block is None:  # a server that doesn't announce its blocks is forgiven
                        block = self._blocks[event.index] = Block({"type": event.delta.type.removesuffix("_delta")})
                    block.extend(event.delta, payload, news)
                else:
                    self._turn(event, payload, news)
            except ValueError as error:
                raise self._origin.damaged(payload) from error
            if self.done:
                break
        return news

    def _turn(self, event: _Event, payload: bytes, news: list[StreamEvent]) -> None:
        """Take in what isn't a piece of a block."""
        if event.error is not None:
            raise self._origin.refused(payload)
        match event.type:
            case "content_block_start" if event.content_block:
                self._blocks[event.index] = Block(event.content_block)
            case "content_block_stop" if event.index in self._blocks:
                news.extend(self._blocks[event.index].ended())
            case "message_start" if event.message:
                self._begin(event.message, news)
            case "message_delta":
                self._progress(event.delta.stop_reason if event.delta else None, event.usage)
            case "message_stop":
                self.done = True
            case "" if failure := self._origin.refused_in_event(payload):
                raise failure

    def _begin(self, message: _Message, news: list[StreamEvent]) -> None:
        """A message starts, maybe with blocks. A gateway that lost its provider may start another one in its place."""
        if self._id and message.id != self._id and self._blocks:
            withdrawn = "".join(block.text for block in self._blocks.values() if block.kind == "text")
            news.append(Retrying(1, "timeout", self._origin.profile_id, withdrawn=withdrawn, model=self._origin.model))
            self._blocks.clear()
            self._stop = None
        self._id = message.id
        for index, start in enumerate(message.content or ()):
            self._blocks[index] = Block(start)
            news.extend(self._blocks[index].ended())
        self._progress(message.stop_reason, message.usage)

    def _progress(self, stop: str | None, usage: _Usage | None) -> None:
        """The counts are totals, and a later event need not repeat them all."""
        if stop == WINDOW_FULL:
            raise self._origin.window_full()
        self._stop = stop or self._stop
        for name in _Usage.__struct_fields__ if usage else ():
            if (count := getattr(usage, name)) is not None:
                setattr(self._usage, name, count)


class Block:
    """A block as it grows: how it started, the pieces of its text or JSON, and fields that came one by one."""

    __slots__ = ("_made", "_pieces", "_start", "kind")

    def __init__(self, start: dict[str, Any]) -> None:
        self.kind = _word(start, "type")
        self._start = start
        if self.kind == "tool_use" and not _word(start, "id"):
            start["id"] = f"toolu_{secrets.token_hex(12)}"
        self._pieces = [_word(start, self.kind)] if self.kind in {"text", "thinking"} else []
        self._made: ToolCall | None = None

    @property
    def text(self) -> str:
        """Its words, thoughts or JSON so far."""
        return "".join(self._pieces)

    def extend(self, delta: Delta, payload: bytes, news: list[StreamEvent]) -> None:
        """Add a delta."""
        match delta.type:
            case "text_delta":
                self._pieces.append(delta.text)
                news.append(TextDelta(delta.text))
            case "thinking_delta":
                self._pieces.append(delta.thinking)
                news.append(ThinkingDelta(delta.thinking))
            case "input_json_delta":
                self._pieces.append(delta.partial_json)
                if self.kind == "tool_use":
                    news.append(ToolCallDelta(_word(self._start, "id"), _word(self._start, "name"), delta.partial_json))
            case "signature_delta":
                self._start["signature"] = delta.signature
            case "citations_delta":
                self._start["citations"] = [*(self._start.get("citations") or []), delta.citation]
            case _:  # a kind that isn't known yet: text grows, anything else is replaced
                fields = msgspec.json.decode(payload)["delta"]
                for key in fields.keys() - {"type"}:
                    old, new = self._start.get(key), fields[key]
                    self._start[key] = old + new if isinstance(old, str) and isinstance(new, str) else new

    def ended(self) -> list[StreamEvent]:
        """That it is whole."""
        match self.kind:
            case "text" if self.text:
                return [TextEnd(self.text)]
            case "thinking":
                return [ThinkingEnd(self.text)]
            case "tool_use":
                return [ToolCallEnd(self._call())]
        return []

    def parts(self, provider: str) -> list[AssistantPart]:
        """What it is in our words; what these can't hold follows it as `Opaque` without a type."""
        match self.kind:
            case "text":
                return [Text(self.text), *self._rest(provider, "citations")] if self.text else []
            case "thinking":
                return [Thinking(self.text, _word(self._start, "signature"))]
            case "tool_use":
                return [self._call(), *self._rest(provider, "caller", "toolset_name")]
        return [Opaque(provider, self._start | {"input": arguments(self.text)} if self.text else self._start)]

    def _rest(self, provider: str, *names: str) -> list[AssistantPart]:
        rest = {name: self._start[name] for name in names if self._start.get(name) not in _USUAL}
        return [Opaque(provider, rest)] if rest else []

    def _call(self) -> ToolCall:
        if self._made is None:
            given = self._start.get("input")
            args = arguments(self.text) if self.text else given if isinstance(given, dict) else {}
            self._made = ToolCall(_word(self._start, "id"), _word(self._start, "name"), args)
        return self._made


def _word(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""
