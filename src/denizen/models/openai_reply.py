"""An answer of OpenAI Chat Completions, put together from a stream or read in one piece.

https://platform.openai.com/docs/api-reference/chat-streaming, and what other providers make of it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from denizen.events import StreamEvent, TextDelta, TextEnd, ThinkingDelta, ThinkingEnd
from denizen.messages import AssistantMessage, AssistantPart, Opaque, StopReason, Text, Thinking
from denizen.models.failures import WINDOW_FULL, Origin
from denizen.models.openai_calls import Call, CallDelta
from denizen.models.openai_chunk import CHUNK, Choice, Chunk, Counts, Delta, Part
from denizen.models.parsing import UNREADABLE, decode

_STOPS: Final[Mapping[str, StopReason]] = {
    "length": "length",
    "model_length": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
    "sensitive": "refusal",
}
_BROKEN_OFF: Final = frozenset(
    {
        "error",
        "abort",
        "network_error",
        "insufficient_system_resource",
        "malformed_function_call",
        "function_call_filter",
    }
)
"""Why DeepSeek, Gemini, Z.ai, vLLM and routers end an answer that isn't whole."""
_GROWING: Final = frozenset({"text", "summary", "data"})


class OpenAIReply:
    """The answer: `complete` once it is known why it stopped, `done` when nothing more is to come."""

    def __init__(self, origin: Origin, *, thoughts_extra: bool = False) -> None:
        self.done = False
        self.paused = False
        self._origin = origin
        self._thoughts_extra = thoughts_extra
        self._parts: list[Text | Thinking | Call] = []
        self._kind: type[Text | Thinking] = Text
        self._pieces: list[str] = []
        self._details: list[dict[str, Any]] = []
        self._extra: Any = None
        self._stop: str | None = None
        self._refused = False
        self._usage = Counts()

    @property
    def complete(self) -> bool:
        """Whether it is whole. A stream that ends properly without a reason has said something, at least."""
        return self._stop is not None or (self.done and bool(self._parts or self._pieces))

    def read(self, body: bytes) -> None:
        """The whole answer, when it came in one piece."""
        try:
            chunk = decode(CHUNK, body)
        except ValueError as error:
            raise self._origin.failure("its answer is not a chat completion in OpenAI's format") from error
        self._note(chunk, body)
        if not chunk.choices:
            raise self._origin.failure("its answer is empty", "timeout")
        for choice in chunk.choices:
            self._take_whole(choice)
        self._stop = self._stop or "stop"

    def message(self) -> AssistantMessage:
        """The answer so far."""
        self._end([])
        provider = self._origin.provider
        content: list[AssistantPart] = []
        for part in self._parts:
            content.extend(part.parts(provider) if isinstance(part, Call) else (part,))
        if self._details or self._extra:
            fields = {"reasoning_details": self._details, "extra_content": self._extra}
            content.insert(0, Opaque(provider, {name: value for name, value in fields.items() if value}))
        usage = self._usage.usage(thoughts_extra=self._thoughts_extra)
        return AssistantMessage(content, self._origin.model, usage, self._reason())

    def feed(self, payloads: Sequence[bytes]) -> list[StreamEvent]:
        """What the data of the next events of the stream brings."""
        news: list[StreamEvent] = []
        for payload in payloads:
            try:
                chunk = CHUNK.decode(payload)
            except UNREADABLE:
                if payload.strip() == b"[DONE]":
                    self.done = True
                    self._end(news)
                    break
                chunk = self._read_again(payload)
            if chunk.usage is not None or chunk.choices is None or chunk.error is not None:
                self._note(chunk, payload)
            for choice in chunk.choices or ():
                self._add(choice, news)
        return news

    def _read_again(self, payload: bytes) -> Chunk:
        try:
            return decode(CHUNK, payload)
        except ValueError as error:
            raise self._origin.damaged(payload) from error

    def _add(self, choice: Choice, news: list[StreamEvent]) -> None:
        delta = choice.delta or choice.message
        if delta is not None and not choice.index:
            if delta.reasoning_content or delta.reasoning:
                self._say(Thinking, delta.reasoning_content or delta.reasoning or "", news)
            content = delta.content
            if type(content) is str and content and self._kind is Text:  # most events are this and nothing else
                self._pieces.append(content)
                news.append(TextDelta(content))
            elif content:
                self._speak(content, news)
            if delta.tool_calls or delta.reasoning_details or delta.refusal or delta.extra_content:
                self._grow(delta, news)
        if choice.finish_reason or choice.error is not None:
            self._stop_for(choice, news)

    def _take_whole(self, choice: Choice) -> None:
        """An answer in one piece, of which nothing is to be put together."""
        said = choice.message or Delta()
        for place, call in enumerate(said.tool_calls or ()):
            call.index = place
        self._add(choice, [])
        if isinstance(said.reasoning_details, list) and not choice.index:
            self._details = said.reasoning_details

    def _grow(self, delta: Delta, news: list[StreamEvent]) -> None:
        for piece in delta.tool_calls or ():
            self._call(piece, news)
        if delta.refusal:
            self._refused = True
            self._say(Text, delta.refusal, news)
        self._detail(delta.reasoning_details)
        self._extra = delta.extra_content or self._extra

    def _stop_for(self, choice: Choice, news: list[StreamEvent]) -> None:
        if choice.error is not None:
            raise self._origin.refused(choice.error)
        reason = (choice.finish_reason or "").lower().partition(":")[0]
        if reason == WINDOW_FULL:
            raise self._origin.window_full()
        if reason in _BROKEN_OFF:
            told = "" if reason == "error" else f" ({choice.finish_reason})"
            raise self._origin.failure(f"it broke its answer off{told}", "timeout")
        self._stop = reason
        self._usage = choice.usage or self._usage
        self._end(news)

    def _note(self, chunk: Chunk, payload: bytes) -> None:
        """What isn't part of the answer: a failure, or what it cost."""
        if chunk.error is not None:
            raise self._origin.refused(payload)
        if chunk.choices is None and (failure := self._origin.refused_in_event(payload)):
            raise failure
        self._usage = chunk.usage or self._usage

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
            if not isinstance(detail, dict):
                continue
            kept = next((each for each in reversed(self._details) if _goes_on(each, detail)), None)
            if kept is None:
                self._details.append({**detail})
                continue
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

    def _reason(self) -> StopReason:
        reason = "refusal" if self._refused else _STOPS.get(self._stop or "", "end")
        called = any(isinstance(part, Call) for part in self._parts)
        return "tool_calls" if called and reason == "end" else reason


def _goes_on(kept: dict[str, Any], piece: dict[str, Any]) -> bool:
    """Whether it is a piece of that detail; only the first may say its id."""
    same = piece.get("id") is None or kept.get("id") in (None, piece["id"])
    return same and all(kept.get(name) == piece.get(name) for name in ("type", "index"))
