"""An answer of Google's Gemini API, put together from a stream or read in one piece.

https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse
"""

import re
import secrets
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from denizen.events import StreamEvent, TextDelta, ToolCallDelta, ToolCallEnd
from denizen.messages import AssistantMessage, AssistantPart, Opaque, StopReason, Text, Thinking, ToolCall, Usage
from denizen.models.answer_parts import AnswerParts
from denizen.models.encoding import encode_json
from denizen.models.failures import ModelIdentity
from denizen.models.parsing import Count, decode, word
from denizen.ports import INVALID_JSON

PART_FIELDS: Final = frozenset({"mediaResolution", "partMetadata", "thought", "thoughtSignature", "videoMetadata"})
"""Fields that a part may have besides its content; kept as `Opaque` after the part."""
_MODEL_FIELDS: Final = PART_FIELDS | {"executableCode", "inlineData", "text", "toolCall"}
"""Fields of parts that the model itself makes; others hold results of the provider's tools."""

ANSWER_FIELDS: Final = ("citationMetadata", "groundingMetadata", "urlContextMetadata")
"""Fields of the answer as a whole; kept as `Opaque` after its parts, and not sent back."""

MADE_ID_PREFIX: Final = "unnamed_"
"""The prefix of ids made here for calls without one."""

_REFUSALS: Final = re.compile(r"SAFETY|RECITATION|LANGUAGE|BLOCKLIST|PROHIBITED_CONTENT|SPII|MODEL_ARMOR")
"""Finish reasons of withheld answers; some also come with the prefix `IMAGE_`."""
_BROKEN_OFF: Final = re.compile(r"OTHER|MALFORMED_|UNEXPECTED_TOOL_CALL|TOO_MANY_TOOL_CALLS|MISSING_THOUGHT|NO_IMAGE")
"""Finish reasons of incomplete answers that another attempt may complete."""
_STEP: Final = re.compile(r"(?:\.|\[['\"])([^.\[\]'\"]+)|\[(\d{1,9})\]")
"""Of a path like `$.rows[0]['name']`."""


class _Content(msgspec.Struct, gc=False):
    parts: list[dict[str, Any]] | None = None


class _Candidate(msgspec.Struct, gc=False, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    index: int = 0
    citation_metadata: Any = None
    grounding_metadata: Any = None
    url_context_metadata: Any = None


class _Feedback(msgspec.Struct, gc=False, rename="camel"):
    block_reason: str | None = None
    block_reason_message: str | None = None


class _Counts(msgspec.Struct, gc=False, rename="camel"):
    """Tokens as Gemini counts them: those of the prompt include cached ones, those of the answer no thoughts."""

    prompt_token_count: Count | None = None
    tool_use_prompt_token_count: Count | None = None
    cached_content_token_count: Count | None = None
    candidates_token_count: Count | None = None
    thoughts_token_count: Count | None = None

    def usage(self) -> Usage:
        """The same in our terms."""
        sent, read = self.prompt_token_count, self.cached_content_token_count
        if sent is not None:
            sent = max(0, sent - (read or 0)) + (self.tool_use_prompt_token_count or 0)
        answered = [count for count in (self.candidates_token_count, self.thoughts_token_count) if count is not None]
        return Usage(sent, sum(answered) if answered else None, read, reasoning=self.thoughts_token_count)


class _Chunk(msgspec.Struct, gc=False, rename="camel"):
    """An event of a stream, or a whole response."""

    candidates: list[_Candidate] | None = None
    usage_metadata: _Counts | None = None
    prompt_feedback: _Feedback | None = None
    error: Any = None


_CHUNK: Final = msgspec.json.Decoder(_Chunk)
_BODY: Final = msgspec.json.Decoder(_Chunk | list[_Chunk])


class GeminiAnswer(AnswerParts):
    """The answer: `complete` once it is known why it stopped; some more may come until the stream ends."""

    def __init__(self, identity: ModelIdentity) -> None:
        super().__init__(identity)
        self._open: GeminiCall | None = None
        self._about: dict[str, Any] = {}
        self._stop = ""
        self._refused = False
        self._usage = _Counts()

    @property
    def complete(self) -> bool:
        """Whether it is whole."""
        return bool(self._stop)

    def read(self, body: bytes) -> None:
        """The whole answer, when it came in one piece; also a list of what would be the events of a stream."""
        listed = body.lstrip().startswith(b"[")
        try:
            answer = decode(_BODY, body)
            for chunk in answer if isinstance(answer, list) else (answer,):
                self._take(chunk, body, [])
        except ValueError as error:
            if listed:
                raise self._identity.damaged(body) from error
            raise self._identity.failure("its answer is not a response in Gemini's format") from error
        if not (self._stop or self._parts or self._pieces):
            raise self._identity.failure("its answer is empty", "timeout")
        if not listed:
            self._stop = self._stop or "STOP"

    def message(self) -> AssistantMessage:
        """The answer so far."""
        self._end([])
        content = self._content()
        if self._about:
            content.append(
                Opaque(self._identity.author, self._about, untrusted=self._about.keys() != {"citationMetadata"})
            )
        reason: StopReason = "end"
        if self._refused:
            reason = "refusal"
        elif self._stop == "MAX_TOKENS":
            reason = "length"
        elif any(isinstance(part, GeminiCall) for part in self._parts):
            reason = "tool_calls"
        return AssistantMessage(content, self._identity.model, self._usage.usage(), reason)

    def feed(self, payloads: Sequence[bytes]) -> list[StreamEvent]:
        """The events that the next payloads of the stream add."""
        news: list[StreamEvent] = []
        for payload in payloads:
            try:
                self._take(decode(_CHUNK, payload), payload, news)
            except ValueError as error:
                raise self._identity.damaged(payload) from error
        return news

    def _take(self, chunk: _Chunk, payload: bytes, news: list[StreamEvent]) -> None:
        if chunk.error is not None:
            raise self._identity.refused(chunk.error)
        self._usage = chunk.usage_metadata or self._usage
        for candidate in chunk.candidates or ():
            if candidate.index:
                continue
            for part in (candidate.content.parts if candidate.content else None) or ():
                self._add(part, news)
            about = candidate.citation_metadata or candidate.grounding_metadata or candidate.url_context_metadata
            if about or candidate.finish_reason:
                self._finish(candidate, news)
        if feedback := chunk.prompt_feedback:
            if blocked := feedback.block_reason:
                more = feedback.block_reason_message
                self._refuse(f"{blocked}: {more}" if more else blocked, news)
        elif not chunk.candidates and (failure := self._identity.refused_in_event(payload)):
            raise failure

    def _add(self, part: dict[str, Any], news: list[StreamEvent]) -> None:
        """A part, or a piece of one: words and thoughts grow until something else comes."""
        text = part.get("text")
        if type(text) is str and len(part) == 1 and self._kind is Text and not self._open:  # most events are only this
            if text:
                self._pieces.append(text)
                news.append(TextDelta(text))
            return
        fields = {name: value for name, value in part.items() if name in PART_FIELDS}
        if isinstance(call := part.get("functionCall"), dict):
            self._add_call(call, fields, news)
            return
        self._end_call(news)
        kind = Thinking if part.get("thought") is True else Text
        if isinstance(text, str) and not fields.keys() - {"thought"}:
            self._extend(kind, text, news)
        elif isinstance(text, str) and text:  # with fields of its own it isn't joined with others
            self._end_run(news)
            self._extend(kind, text, news)
            self._end_run(news)
            if kind is Thinking:
                self._parts[-1] = Thinking(text, self._identity.signed(word(part, "thoughtSignature")))
            else:
                self._parts.append(Opaque(self._identity.author, fields))
        elif part:
            self._end_run(news)
            self._parts.append(Opaque(self._identity.author, part, untrusted=not part.keys() <= _MODEL_FIELDS))

    def _add_call(self, call: dict[str, Any], fields: dict[str, Any], news: list[StreamEvent]) -> None:
        """A call, or some more arguments of one that isn't complete yet."""
        self._end_run(news)
        if word(call, "name") or not self._open:
            self._end_call(news)
            self._open = GeminiCall(call, fields)
            self._parts.append(self._open)
        self._open.extend(call)
        if call.get("willContinue") is not True:
            self._end_call(news)

    def _finish(self, candidate: _Candidate, news: list[StreamEvent]) -> None:
        """Take in the finish reason and the fields of the answer as a whole."""
        about = (candidate.citation_metadata, candidate.grounding_metadata, candidate.url_context_metadata)
        self._about |= {name: value for name, value in zip(ANSWER_FIELDS, about, strict=True) if value}
        reason, more = candidate.finish_reason or "", candidate.finish_message
        why = f"{reason}: {more}" if more else reason
        if _REFUSALS.search(reason):
            self._refuse(why, news)
        elif reason == "UNEXPECTED_TOOL_CALL" and any(isinstance(part, GeminiCall) for part in self._parts):
            pass  # the model hears that there is no such tool
        elif _BROKEN_OFF.search(reason):
            raise self._identity.failure(f"it broke its answer off ({why})", "timeout")
        if reason:
            self._stop = reason
            self._end(news)

    def _refuse(self, why: str, news: list[StreamEvent]) -> None:
        """The answer, or the rest of it, is withheld: its last words say why."""
        if self._refused:  # later chunks may repeat it
            return
        self._refused = True
        self._stop = why
        self._end(news)
        before = "\n\n" if any(isinstance(part, Text) for part in self._parts) else ""
        self._extend(Text, f"{before}[withheld by {self._identity.provider}: {why}]", news)
        self._end(news)

    def _end_call(self, news: list[StreamEvent]) -> None:
        if self._open:
            news.extend(self._open.ended())
            self._open = None

    def _end(self, news: list[StreamEvent]) -> None:
        self._end_run(news)
        self._end_call(news)


class GeminiCall:
    """A call, whose arguments may come one by one, each with its place (`partialArgs`)."""

    __slots__ = ("_args", "_fields", "_growing", "_id", "_name")

    def __init__(self, call: dict[str, Any], fields: dict[str, Any]) -> None:
        self._id = word(call, "id") or f"{MADE_ID_PREFIX}{secrets.token_hex(12)}"
        self._name = word(call, "name")
        self._fields = fields
        self._args: dict[str, Any] = {}
        self._growing = ""

    def extend(self, call: dict[str, Any]) -> None:
        """Add arguments. Raises ValueError if their place makes no sense."""
        if (args := call.get("args")) is not None:
            self._args |= args if isinstance(args, dict) else {INVALID_JSON: encode_json(args).decode()}
        for piece in call.get("partialArgs") or ():
            path = word(piece, "jsonPath")
            value = next((value for name, value in piece.items() if name.endswith("Value")), None)
            self._put(path, None if "nullValue" in piece else value)
            self._growing = path if piece.get("willContinue") is True else ""

    def ended(self) -> list[StreamEvent]:
        """The events of the complete call."""
        call = ToolCall(self._id, self._name, self._args)
        return [ToolCallDelta(self._id, self._name, encode_json(self._args).decode()), ToolCallEnd(call)]

    def parts(self, author: str) -> list[AssistantPart]:
        """The call, and what its provider wants back with it."""
        call = ToolCall(self._id, self._name, self._args)
        return [call, Opaque(author, self._fields)] if self._fields else [call]

    def _put(self, path: str, value: Any) -> None:
        """Set what is at a path (`$.rows[0].name`), or add to its text."""
        steps = [int(index) if index else name for name, index in _STEP.findall(path)]
        place: Any = self._args
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            if isinstance(place, list) and step == len(place):
                place.append(None)
            if isinstance(place, dict) != isinstance(step, str) or (isinstance(place, list) and step > len(place)):
                raise ValueError(path)
            old = place.get(step) if isinstance(place, dict) else place[step]
            if following is None:
                grows = path == self._growing and isinstance(old, str) and isinstance(value, str)
                place[step] = old + value if grows else value
            elif old is None:
                place[step] = {} if isinstance(following, str) else []
            place = place[step]
