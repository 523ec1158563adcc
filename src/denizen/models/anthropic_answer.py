"""An answer of Anthropic Messages, put together from a stream or read in one piece.

https://platform.claude.com/docs/en/api/messages, https://platform.claude.com/docs/en/build-with-claude/streaming
"""

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
    Opaque,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from denizen.models.failures import WINDOW_FULL, ModelIdentity
from denizen.models.parsing import Count, arguments, decode, word

_MODEL_BLOCKS: Final = {"compaction", "mcp_tool_use", "redacted_thinking", "server_tool_use"}
"""Blocks that the model itself makes; others hold results of the provider's tools."""
_DEFAULT_VALUES: Final[tuple[Any, ...]] = (
    None,
    [],
    {"type": "direct"},
)  # the last for calls that the model makes itself
_STOPS: Final[Mapping[str, StopReason]] = {
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}


class BlockDelta(msgspec.Struct, gc=False):
    """Some more of a block, or of the message."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    signature: str = ""
    citation: Any = None
    stop_reason: str | None = None


class _Written(msgspec.Struct, gc=False):
    ephemeral_1h_input_tokens: Count | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_creation: _Written | None = None

    def usage(self) -> Usage:
        """The same in our terms."""
        return Usage(
            self.input_tokens,
            self.output_tokens,
            self.cache_read_input_tokens,
            self.cache_creation_input_tokens,
            cache_write_1h=self.cache_creation.ephemeral_1h_input_tokens if self.cache_creation else None,
        )


class _Message(msgspec.Struct, gc=False):
    id: str = ""
    content: list[dict[str, Any]] | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None
    error: Any = None


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    index: int = 0
    delta: BlockDelta | None = None
    content_block: dict[str, Any] | None = None
    message: _Message | None = None
    usage: _Usage | None = None
    error: Any = None


_EVENT: Final = msgspec.json.Decoder(_Event)
_MESSAGE: Final = msgspec.json.Decoder(_Message)


class AnthropicAnswer:
    """The answer: `complete` once it is known why it stopped, `done` when nothing more is to come."""

    def __init__(self, identity: ModelIdentity) -> None:
        self.done = False
        self._identity = identity
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
        """Whether the provider paused between its own tools, without a call of an agent's tool."""
        return self._stop == "pause_turn" and not any(block.kind == "tool_use" for block in self._blocks.values())

    def read(self, body: bytes) -> None:
        """The whole answer, when it came in one piece."""
        try:
            message = decode(_MESSAGE, body)
        except ValueError as error:
            raise self._identity.failure("its answer is not a message in Anthropic's format") from error
        if message.error is not None:
            raise self._identity.refused(message.error)
        if message.stop_reason is None and not message.content:
            raise self._identity.failure("its answer is empty", "timeout")
        self._begin(message, [])
        self._stop = self._stop or "end_turn"

    def message(self) -> AssistantMessage:
        """The answer so far."""
        content = [part for block in self._blocks.values() for part in block.parts(self._identity)]
        reason = _STOPS.get(self._stop or "", "end")
        if reason == "end" and any(isinstance(part, ToolCall) for part in content):
            reason = "tool_calls"
        return AssistantMessage(content, self._identity.model, self._usage.usage(), reason)

    def feed(self, payloads: Sequence[bytes]) -> list[StreamEvent]:
        """The events that the next payloads of the stream add."""
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
                raise self._identity.damaged(payload) from error
            if self.done:
                break
        return news

    def _turn(self, event: _Event, payload: bytes, news: list[StreamEvent]) -> None:
        """Take in what isn't a piece of a block."""
        if event.error is not None:
            raise self._identity.refused(payload)
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
            case "" if failure := self._identity.refused_in_event(payload):
                raise failure

    def _begin(self, message: _Message, news: list[StreamEvent]) -> None:
        """A message starts, maybe with blocks. A gateway that lost its provider may start another one in its place."""
        if self._id and message.id != self._id and self._blocks:
            withdrawn = "".join(block.text for block in self._blocks.values() if block.kind == "text")
            news.append(
                Retrying(1, "timeout", self._identity.profile_id, withdrawn=withdrawn, model=self._identity.model)
            )
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
            raise self._identity.window_full()
        self._stop = stop or self._stop
        for name in _Usage.__struct_fields__ if usage else ():
            if (count := getattr(usage, name)) is not None:
                setattr(self._usage, name, count)


class Block:
    """A block as it grows: how it started, the pieces of its text or JSON, and fields that came one by one."""

    __slots__ = ("_made", "_pieces", "_start", "kind")

    def __init__(self, start: dict[str, Any]) -> None:
        self.kind = word(start, "type")
        self._start = start
        if self.kind == "tool_use" and not word(start, "id"):
            start["id"] = f"toolu_{secrets.token_hex(12)}"
        self._pieces = [word(start, self.kind)] if self.kind in {"text", "thinking"} else []
        self._made: ToolCall | None = None

    @property
    def text(self) -> str:
        """Its words, thoughts or JSON so far."""
        return "".join(self._pieces)

    def extend(self, delta: BlockDelta, payload: bytes, news: list[StreamEvent]) -> None:
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
                    news.append(ToolCallDelta(word(self._start, "id"), word(self._start, "name"), delta.partial_json))
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
        """The events that end the block."""
        match self.kind:
            case "text" if self.text:
                return [TextEnd(self.text)]
            case "thinking":
                return [ThinkingEnd(self.text)]
            case "tool_use":
                return [ToolCallEnd(self._call())]
        return []

    def parts(self, identity: ModelIdentity) -> list[AssistantPart]:
        """The block as message parts; fields without a place there follow as an `Opaque` without a type."""
        match self.kind:
            case "text":
                return [Text(self.text), *self._rest(identity, "citations")] if self.text else []
            case "thinking":
                return [Thinking(self.text, identity.signed(word(self._start, "signature")))]
            case "tool_use":
                return [self._call(), *self._rest(identity, "caller", "toolset_name")]
        block = self._start | {"input": arguments(self.text)} if self.text else self._start
        return [Opaque(identity.author, block, untrusted=self.kind not in _MODEL_BLOCKS)]

    def _rest(self, identity: ModelIdentity, *names: str) -> list[AssistantPart]:
        rest = {name: self._start[name] for name in names if self._start.get(name) not in _DEFAULT_VALUES}
        return [Opaque(identity.author, rest)] if rest else []

    def _call(self) -> ToolCall:
        if self._made is None:
            given = self._start.get("input")
            args = arguments(self.text) if self.text else given if isinstance(given, dict) else {}
            self._made = ToolCall(word(self._start, "id"), word(self._start, "name"), args)
        return self._made
