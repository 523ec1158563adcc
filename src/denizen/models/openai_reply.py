"""An answer of OpenAI Chat Completions, put together from a stream or read in one piece.

https://platform.openai.com/docs/api-reference/chat-streaming, and what other providers make of it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from denizen.events import StreamEvent, TextDelta, TextEnd, ThinkingDelta, ThinkingEnd
from denizen.messages import AssistantMessage, AssistantPart, Opaque, StopReason, Text, Thinking, ToolCall
from denizen.models.complaint import Origin
from denizen.models.openai_calls import Call, CallDelta
from denizen.models.openai_chunk import CHUNK, Choice, Chunk, Counts, Delta, Part
from denizen.models.parsing import decode
from denizen.models.sse import EventStream

_STOPS: Final[Mapping[str, StopReason]] = {
    "length": "length",
    "model_length": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
}
_GROWING: Final = frozenset({"text", "summary", "data"})


class OpenAIReply:
    """The answer: `complete` once it is known why it stopped, `done` when nothing more is to come."""

    def __init__(self, origin: Origin, *, thoughts_extra: bool = False) -> None:
        self.done = False
        self._origin = origin
        self._thoughts_extra = thoughts_extra
        self._events = EventStream()
        self._parts: list[Text | Thinking | Call] = []
        self._kind: type[Text | Thinking] = Text
        self._pieces: list[str] = []
        self._details: dict[tuple[Any, Any], dict[str, Any]] = {}
        self._extra: Any = None
        self._stop: str | None = None
        self._refused = False
        self._usage = Counts()

    @property
    def complete(self) -> bool:
        """Whether it is whole. A stream that ends properly without a reason has said something, at least."""
        return self._stop is not None or (self.done and bool(self._parts or self._pieces))

    def feed(self, data: bytes) -> list[StreamEvent]:
        """What the next bytes of the stream bring."""
        news: list[StreamEvent] = []
        for payload in self._events.feed(data):
            self._take(payload, news)
        return news

    def close(self) -> list[StreamEvent]:
        """What an unfinished last event brings."""
        news: list[StreamEvent] = []
        for payload in self._events.close():
            self._take(payload, news)
        return news

    def read(self, body: bytes) -> None:
        """The whole answer, when it came in one piece."""
        try:
            chunk = decode(CHUNK, body)
        except ValueError as error:
            raise self._origin.failure("its answer is not a chat completion in OpenAI's format") from error
        self._add(chunk, body, [])
        self._stop = self._stop or "stop"

    def message(self) -> AssistantMessage:
        """The answer so far."""
        self._end([])
        provider = self._origin.provider
        fields = {"reasoning_details": [*self._details.values()], "extra_content": self._extra}
        kept = {name: value for name, value in fields.items() if value}
        content: list[AssistantPart] = [Opaque(provider, kept)] if kept else []
        for part in self._parts:
            content.extend(part.parts(provider) if isinstance(part, Call) else [part])
        return AssistantMessage(
            content, self._origin.model, self._usage.usage(thoughts_extra=self._thoughts_extra), self._reason(content)
        )

    def _take(self, payload: bytes, news: list[StreamEvent]) -> None:
        if self.done or payload.startswith(b"[DONE]"):
            self.done = True
            self._end(news)
            return
        try:
            chunk = decode(CHUNK, payload)
        except ValueError as error:
            raise self._origin.failure("its stream is damaged", "timeout") from error
        self._add(chunk, payload, news)

    def _add(self, chunk: Chunk, payload: bytes, news: list[StreamEvent]) -> None:
        if chunk.error is not None:
            raise self._origin.complained(chunk.error)
        if chunk.usage is not None:
            self._usage = chunk.usage
        elif chunk.choices is None:
            raise self._origin.complained(msgspec.json.decode(payload))
        for choice in chunk.choices or ():
            if choice.index == 0:
                self._choose(choice, news)

    def _choose(self, choice: Choice, news: list[StreamEvent]) -> None:
        if choice.error is not None:
            raise self._origin.complained(choice.error)
        if delta := choice.delta or choice.message:
            self._grow(delta, news)
        if choice.finish_reason:
            self._stop = choice.finish_reason
            self._end(news)

    def _grow(self, delta: Delta, news: list[StreamEvent]) -> None:
        if thoughts := delta.reasoning_content or delta.reasoning:
            self._say(Thinking, thoughts, news)
        if delta.content:
            self._speak(delta.content, news)
        if delta.refusal:
            self._refused = True
            self._say(Text, delta.refusal, news)
        for piece in delta.tool_calls or ():
            self._call(piece, news)
        if delta.reasoning_details:
            self._detail(delta.reasoning_details)
        self._extra = delta.extra_content or self._extra

    def _speak(self, content: str | list[Part], news: list[StreamEvent]) -> None:
        if isinstance(content, str):
            self._say(Text, content, news)
            return
        for part in content:
            if thoughts := part.thoughts():
                self._say(Thinking, thoughts, news)
            elif part.text:
                self._say(Text, part.text, news)

    def _say(self, kind: type[Text | Thinking], text: str, news: list[StreamEvent]) -> None:
        if kind is not self._kind:
            self._end_run(news)
            self._kind = kind
        self._pieces.append(text)
        news.append(TextDelta(text) if kind is Text else ThinkingDelta(text))

    def _call(self, piece: CallDelta, news: list[StreamEvent]) -> None:
        """Add it to the latest call that takes it; else it begins a new one."""
        call = next((part for part in reversed(self._parts) if isinstance(part, Call) and part.takes(piece)), None)
        if call is None:
            self._end_run(news)
            call = Call(piece)
            self._parts.append(call)
        call.extend(piece, news)

    def _detail(self, details: Any) -> None:
        """Pieces of the same detail become one; they go back as a whole."""
        for detail in details if isinstance(details, list) else ():
            kept = self._details.setdefault((detail.get("type"), detail.get("index")), {})
            for name, value in detail.items():
                grows = name in _GROWING and isinstance(kept.get(name), str) and isinstance(value, str)
                kept[name] = kept[name] + value if grows else kept.get(name) if value is None else value

    def _end_run(self, news: list[StreamEvent]) -> None:
        """The words or thoughts so far are a part."""
        if text := "".join(self._pieces):
            self._parts.append(self._kind(text))
            news.append(TextEnd(text) if self._kind is Text else ThinkingEnd(text))
        self._pieces = []

    def _end(self, news: list[StreamEvent]) -> None:
        self._end_run(news)
        for part in self._parts:
            if isinstance(part, Call):
                news.extend(part.ended())

    def _reason(self, content: Sequence[AssistantPart]) -> StopReason:
        reason = "refusal" if self._refused else _STOPS.get(self._stop or "", "end")
        called = any(isinstance(part, ToolCall) for part in content)
        return "tool_calls" if called and reason == "end" else reason
