"""An answer of OpenAI Chat Completions, put together from a stream or read in one piece.

https://platform.openai.com/docs/api-reference/chat-streaming, and what other providers make of it.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from denizen.events import StreamEvent, TextDelta, ToolCallDelta, ToolCallEnd
from denizen.messages import AssistantMessage, AssistantPart, Opaque, StopReason, Text, Thinking, ToolCall, Usage
from denizen.models.answer_parts import AnswerParts
from denizen.models.failures import WINDOW_FULL, ModelIdentity, decode_event
from denizen.models.parsing import Count, arguments, decode
from denizen.ports import INVALID_JSON

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
"""Finish reasons of incomplete answers at DeepSeek, Gemini, Z.ai, vLLM and routers."""
_APPENDED_FIELDS: Final = frozenset({"text", "summary", "data"})
_MAX_COST_USD: Final = 1e9


class FunctionDelta(msgspec.Struct, gc=False):
    """A piece of a call; a few servers send the arguments as an object."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class CallDelta(msgspec.Struct, gc=False):
    """A piece of a call, and where it belongs: by index, by id, by both, or by neither."""

    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None
    extra_content: Any = None


class ChatContentPart(msgspec.Struct, gc=False):
    """An element of content that is a list, as Mistral sends it."""

    type: str = ""
    text: str | None = None
    thinking: "list[ChatContentPart] | str | None" = None

    def thoughts(self) -> str:
        """Its thoughts, if it is one."""
        thinking = self.thinking or ""
        return thinking if isinstance(thinking, str) else "".join(part.text or "" for part in thinking)


class MessageDelta(msgspec.Struct, gc=False):
    """A piece of the answer, or all of it. Its thoughts have two names."""

    content: str | list[ChatContentPart] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: Any = None
    tool_calls: list[CallDelta] | None = None
    refusal: str | None = None
    extra_content: Any = None
    annotations: Any = None


class Details(msgspec.Struct, gc=False):
    """Which tokens of the prompt the cache gave and got, and which of the answer are thoughts."""

    cached_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    reasoning_tokens: Count | None = None


class Counts(msgspec.Struct, gc=False):
    """Tokens as the providers count them: those of the prompt include what the cache gave and got."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    prompt_tokens_details: Details | None = None
    completion_tokens_details: Details | None = None
    cached_tokens: Count | None = None
    prompt_cache_hit_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cost: Any = None
    is_byok: bool | None = None

    def usage(self, *, reasoning_is_extra: bool) -> Usage:
        """The same in our terms. `reasoning_is_extra`: the tokens of thoughts come on top of those of the answer."""
        details = self.prompt_tokens_details or Details()
        read = _first(details.cached_tokens, self.cached_tokens, self.prompt_cache_hit_tokens)
        written = _first(details.cache_write_tokens, self.cache_creation_input_tokens)
        sent = self.prompt_tokens
        fresh = None if sent is None else max(0, sent - (read or 0) - (written or 0))
        answered, thought = self.completion_tokens, (self.completion_tokens_details or Details()).reasoning_tokens
        if answered is not None and reasoning_is_extra:
            answered += thought or 0
        # US dollars, where a router says so; with the user's own key it only says its fee
        paid = isinstance(self.cost, int | float) and 0 <= self.cost < _MAX_COST_USD and not self.is_byok
        return Usage(fresh, answered, read, written, float(self.cost) if paid else None, thought)


class Choice(msgspec.Struct, gc=False):
    """One of the answers; we only ask for one. Moonshot counts the tokens in it."""

    index: int = 0
    delta: MessageDelta | None = None
    message: MessageDelta | None = None
    finish_reason: str | None = None
    error: Any = None
    usage: Counts | None = None


class Chunk(msgspec.Struct, gc=False):
    """An event of a stream, or a whole response."""

    choices: list[Choice] | None = None
    usage: Counts | None = None
    error: Any = None
    citations: Any = None
    """Addresses, at Perplexity and xAI; others have `annotations`."""


CHUNK: Final = msgspec.json.Decoder(Chunk)


class OpenAIAnswer(AnswerParts):
    """The answer: `complete` once it is known why it stopped, `done` when nothing more is to come."""

    def __init__(self, identity: ModelIdentity, *, reasoning_is_extra: bool = False) -> None:
        super().__init__(identity)
        self._thoughts_extra = reasoning_is_extra
        self._details: list[dict[str, Any]] = []
        self._extra: Any = None
        self._cited: list[Any] = []
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
            raise self._identity.failure("its answer is not a chat completion in OpenAI's format") from error
        self._check(chunk, body)
        if not chunk.choices:
            raise self._identity.failure("its answer is empty", "timeout")
        for choice in chunk.choices:
            message = choice.message or MessageDelta()
            for place, call in enumerate(message.tool_calls or ()):  # nothing is to be put together
                call.index = place
            self._add(choice, [])
            if isinstance(message.reasoning_details, list) and not choice.index:
                self._details = message.reasoning_details
        self._stop = self._stop or "stop"

    def message(self) -> AssistantMessage:
        """The answer so far."""
        self._end([])
        content = self._content()
        if self._details or self._extra:
            fields = {"reasoning_details": self._details, "extra_content": self._extra}
            content.insert(0, Opaque(self._identity.author, {name: value for name, value in fields.items() if value}))
        if self._cited:  # a search of the provider's own gave the model what others wrote
            content.append(Opaque(self._identity.author, {"annotations": self._cited}, untrusted=True))
        reason = "refusal" if self._refused else _STOPS.get(self._stop or "", "end")
        if reason == "end" and any(isinstance(part, ChatCall) for part in self._parts):
            reason = "tool_calls"
        usage = self._usage.usage(reasoning_is_extra=self._thoughts_extra)
        return AssistantMessage(content, self._identity.model, usage, reason)

    def feed(self, payloads: Sequence[bytes]) -> list[StreamEvent]:
        """The events that the next payloads of the stream add."""
        news: list[StreamEvent] = []
        for payload in payloads:
            if payload.strip() == b"[DONE]":
                self.done = True
                self._end(news)
                break
            chunk = decode_event(CHUNK, payload, self._identity)
            if chunk.usage is not None or chunk.choices is None or chunk.error is not None or chunk.citations:
                self._check(chunk, payload)
            for choice in chunk.choices or ():
                self._add(choice, news)
        return news

    def _add(self, choice: Choice, news: list[StreamEvent]) -> None:
        delta = choice.delta or choice.message
        if delta is not None and not choice.index:
            if delta.reasoning_content or delta.reasoning:
                self._extend(Thinking, delta.reasoning_content or delta.reasoning or "", news)
            content = delta.content
            if type(content) is str and content and self._kind is Text:  # most events are this and nothing else
                self._pieces.append(content)
                news.append(TextDelta(content))
            elif isinstance(content, str):
                self._extend(Text, content, news)
            else:
                for part in content or ():
                    thoughts = part.thoughts()
                    self._extend(Thinking if thoughts else Text, thoughts or part.text or "", news)
            for piece in delta.tool_calls or ():
                self._add_call(piece, news)
            if delta.refusal:
                self._refused = True
                self._extend(Text, delta.refusal, news)
            if delta.reasoning_details:
                self._add_details(delta.reasoning_details)
            self._extra = delta.extra_content or self._extra
            if isinstance(delta.annotations, list):
                self._cite([each for each in delta.annotations if isinstance(each, dict) and "url_citation" in each])
        if choice.finish_reason or choice.error is not None:
            self._end_for(choice, news)

    def _cite(self, pages: Sequence[Any]) -> None:
        """Keep what the answer cites; some servers repeat all of it in every event."""
        self._cited += [page for page in pages if page not in self._cited]

    def _end_for(self, choice: Choice, news: list[StreamEvent]) -> None:
        if choice.error is not None:
            raise self._identity.refused(choice.error)
        reason = (choice.finish_reason or "").lower().partition(":")[0]
        if reason == WINDOW_FULL:
            raise self._identity.window_full()
        if reason in _BROKEN_OFF:
            why = "" if reason == "error" else f" ({choice.finish_reason})"
            raise self._identity.failure(f"it broke its answer off{why}", "timeout")
        self._stop = reason
        self._usage = choice.usage or self._usage
        self._end(news)

    def _check(self, chunk: Chunk, payload: bytes) -> None:
        """Take in what isn't part of the answer: a failure, usage, citations."""
        if chunk.error is not None:
            raise self._identity.refused(payload)
        if chunk.choices is None and (failure := self._identity.refused_in_event(payload)):
            raise failure
        self._usage = chunk.usage or self._usage
        if isinstance(chunk.citations, list):
            self._cite(chunk.citations)

    def _add_call(self, piece: CallDelta, news: list[StreamEvent]) -> None:
        """Add it to the latest call that takes it; else it begins a new one."""
        call = next((part for part in reversed(self._parts) if isinstance(part, ChatCall) and part.takes(piece)), None)
        if call is None:
            self._end_run(news)
            call = ChatCall(piece)
            self._parts.append(call)
        call.extend(piece, news)

    def _add_details(self, details: Any) -> None:
        """Pieces of the same detail become one; they go back as a whole."""
        for detail in details if isinstance(details, list) else ():
            if not isinstance(detail, dict):
                continue
            for kept in reversed(self._details):
                same_id = detail.get("id") is None or kept.get("id") in (
                    None,
                    detail["id"],
                )  # only the first may have it
                if same_id and all(kept.get(name) == detail.get(name) for name in ("type", "index")):
                    break
            else:
                self._details.append({**detail})
                continue
            for name, value in detail.items():
                grows = name in _APPENDED_FIELDS and isinstance(kept.get(name), str) and isinstance(value, str)
                kept[name] = kept[name] + value if grows else kept.get(name) if value is None else value

    def _end(self, news: list[StreamEvent]) -> None:
        self._end_run(news)
        for part in self._parts:
            if isinstance(part, ChatCall):
                news.extend(part.ended())


class ChatCall:
    """A call as it grows."""

    __slots__ = ("_extra", "_id", "_index", "_made", "_name", "_pieces", "_said_id")

    def __init__(self, delta: CallDelta) -> None:
        self._index = delta.index
        self._said_id = delta.id or ""
        self._id = self._said_id or f"call_{secrets.token_hex(12)}"
        self._name = ""
        self._extra: Any = None
        self._pieces: list[str] = []
        self._made: ToolCall | None = None

    def extend(self, delta: CallDelta, news: list[StreamEvent]) -> None:
        """Add a piece. The name comes once, or the same each time."""
        function = delta.function or FunctionDelta()
        self._name = self._name or function.name or ""
        self._extra = delta.extra_content or self._extra
        piece = function.arguments or ""
        text = piece if isinstance(piece, str) else msgspec.json.encode(piece).decode()
        self._pieces.append(text)
        news.append(ToolCallDelta(self._id, self._name, text))

    def takes(self, delta: CallDelta) -> bool:
        """Whether the piece belongs here."""
        elsewhere = delta.index != self._index and delta.index is not None
        if delta.id and self._said_id:
            return delta.id == self._said_id and not elsewhere
        if elsewhere:
            return False
        if delta.id or not (delta.function and delta.function.name):
            return True
        text = "".join(self._pieces)  # a name begins a new call where this one is whole
        return not text.strip() or INVALID_JSON in arguments(text)

    def ended(self) -> list[StreamEvent]:
        """The event that ends the call, once."""
        return [] if self._made else [ToolCallEnd(self._call())]

    def parts(self, author: str) -> list[AssistantPart]:
        """The call, and what its provider wants back with it."""
        extra = [Opaque(author, {"extra_content": self._extra})] if self._extra else []
        return [self._call(), *extra]

    def _call(self) -> ToolCall:
        if self._made is None:
            self._made = ToolCall(self._id, self._name, arguments("".join(self._pieces)))
        return self._made


def _first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)
