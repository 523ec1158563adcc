"""An answer of OpenAI's Responses API, put together from a stream or read in one piece.

https://platform.openai.com/docs/api-reference/responses-streaming
"""

import secrets
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from denizen.events import StreamEvent, TextDelta, TextEnd, ThinkingDelta, ThinkingEnd, ToolCallDelta, ToolCallEnd
from denizen.messages import AssistantMessage, AssistantPart, Opaque, Text, Thinking, ToolCall, Usage
from denizen.models.failures import ModelIdentity, decode_event
from denizen.models.openai_answer import Counts, Details
from denizen.models.parsing import Count, arguments, decode, word

Json = dict[str, Any]

_ITEM_TYPES: Final = {
    "response.output_text.delta": "message",
    "response.refusal.delta": "message",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
    "response.function_call_arguments.delta": "function_call",
    "response.custom_tool_call_input.delta": "custom_tool_call",
}
"""Which items grow by these events; what others bring is in the item once it is whole."""
_FIELDS_IN_PARTS: Final[Json] = {
    "message": {"type", "role", "content"},
    "function_call": {"type", "call_id", "name", "arguments"},
}
"""The fields of an item that our parts hold, or that are always the same."""
_MODEL_ITEMS: Final = {"compaction", "image_generation_call", "message"}
"""Items that the model itself makes, which our parts can't hold; others are of the provider's tools."""
_DEFAULT_VALUES: Final[tuple[Any, ...]] = (None, "", [], {}, "completed", "output_text")
"""Values of fields that needn't be kept."""


class _Counts(msgspec.Struct, gc=False):
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    input_tokens_details: Details | None = None
    output_tokens_details: Details | None = None
    cost: Any = None
    is_byok: bool | None = None

    def usage(self) -> Usage:
        """The same in our terms."""
        counts = Counts(self.input_tokens, self.output_tokens, self.input_tokens_details, self.output_tokens_details)
        counts.cost, counts.is_byok = self.cost, self.is_byok
        return counts.usage(reasoning_is_extra=False)


class _Incomplete(msgspec.Struct, gc=False):
    reason: str | None = None


class _Response(msgspec.Struct, gc=False):
    status: str | None = None
    output: list[Json] | None = None
    incomplete_details: _Incomplete | None = None
    usage: _Counts | None = None
    store: bool | None = None
    error: Any = None


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    output_index: int = 0
    summary_index: int = 0
    delta: Any = None
    item: Json | None = None
    response: _Response | None = None
    error: Any = None


_EVENT: Final = msgspec.json.Decoder(_Event)
_RESPONSE: Final = msgspec.json.Decoder(_Response)


class ResponsesAnswer:
    """The answer: `complete` and `done` once the provider has said how it ended."""

    def __init__(self, identity: ModelIdentity) -> None:
        self.done = False
        self.paused = False
        self._identity = identity
        self._items: dict[int, Item] = {}
        self._response = _Response()

    @property
    def complete(self) -> bool:
        """Whether it is whole."""
        return self.done

    def read(self, body: bytes) -> None:
        """The whole answer, when it came in one piece."""
        try:
            response = decode(_RESPONSE, body)
        except ValueError as error:
            raise self._not_a_response() from error
        if response.output is None and response.error is None:
            raise self._identity.refused_in_event(body) or self._not_a_response()
        self._end(response, [])

    def message(self) -> AssistantMessage:
        """The answer so far."""
        items = [item for _, item in sorted(self._items.items())]
        stored = self._response.store is not False
        content = [part for item in items for part in item.parts(self._identity.author, stored=stored)]
        counts = self._response.usage
        usage = counts.usage() if counts else Usage()
        message = AssistantMessage(content, self._identity.model, usage)
        details = self._response.incomplete_details
        if any(item.refuses for item in items) or (details and details.reason == "content_filter"):
            return msgspec.structs.replace(message, stop_reason="refusal")
        if self._response.status == "incomplete":
            return msgspec.structs.replace(message, stop_reason="length")
        return msgspec.structs.replace(message, stop_reason="tool_calls" if message.tool_calls else "end")

    def feed(self, payloads: Sequence[bytes]) -> list[StreamEvent]:
        """The events that the next payloads of the stream add."""
        news: list[StreamEvent] = []
        for payload in payloads:
            if payload.strip() == b"[DONE]":
                continue
            event = decode_event(_EVENT, payload, self._identity)
            kind = _ITEM_TYPES.get(event.type)
            if kind is None:
                self._turn(event, payload, news)
            elif type(event.delta) is str:
                item = self._items.get(event.output_index)
                if item is None:  # a server that doesn't announce its items is forgiven
                    item = self._items[event.output_index] = Item({"type": kind})
                item.extend(event.type, event.delta, news)
            if self.done:
                break
        return news

    def _turn(self, event: _Event, payload: bytes, news: list[StreamEvent]) -> None:
        """Take in what isn't a piece of an item."""
        if event.error is not None or event.type == "error":
            raise self._identity.refused(payload)
        match event.type:
            case "response.output_item.added" if event.item:
                self._items[event.output_index] = Item(event.item)
            case "response.output_item.done" if event.item:
                self._items.setdefault(event.output_index, Item(event.item)).end(event.item, news)
            case "response.reasoning_summary_part.added" if event.summary_index:
                if item := self._items.get(event.output_index):
                    item.extend(event.type, "\n\n", news)
            case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled":
                response = event.response or _Response()
                response.status = response.status or event.type.removeprefix("response.")
                self._end(response, news)
            case "" if failure := self._identity.refused_in_event(payload):
                raise failure

    def _end(self, response: _Response, news: list[StreamEvent]) -> None:
        """The last word: what it says of the items replaces what streamed."""
        if response.error is not None:
            raise self._identity.refused(response.error)
        if response.status in {"failed", "cancelled"}:
            raise self._identity.failure("it broke its answer off", "timeout")
        if response.status in {"queued", "in_progress"}:
            raise self._identity.failure("it answers in the background, which can't be waited for")
        streamed = [item for _, item in sorted(self._items.items())]  # their numbers may have gaps
        for place, fields in enumerate(response.output or ()):
            if place == len(streamed):
                streamed.append(Item(fields))
            streamed[place].end(fields, news)
        for item in streamed[len(response.output or ()) :]:
            item.end({}, news)
        self._items = dict(enumerate(streamed))
        self._response = response
        self.done = True

    def _not_a_response(self) -> Exception:
        return self._identity.failure("its answer is not a response in OpenAI's format")


class Item:
    """An item of the answer as it grows: what the provider says of it, and the pieces of its words or arguments."""

    __slots__ = ("_ended", "_fields", "_made", "_pieces", "_refused", "kind")

    def __init__(self, fields: Json) -> None:
        self.kind = word(fields, "type")
        self._fields = fields
        self._pieces: list[str] = []
        self._refused = False
        self._ended = False
        self._made: ToolCall | None = None

    @property
    def refuses(self) -> bool:
        """Whether the model refuses to answer, in its words."""
        refusal = any(part.get("type") == "refusal" for part in _listed(self._fields, "content"))
        return self.kind == "message" and (refusal or self._refused)

    def extend(self, event: str, delta: str, news: list[StreamEvent]) -> None:
        """Add a piece."""
        self._pieces.append(delta)
        if event == "response.output_text.delta":
            news.append(TextDelta(delta))
        elif self.kind == "message":
            self._refused = True
            news.append(TextDelta(delta))
        elif self.kind == "reasoning":
            news.append(ThinkingDelta(delta))
        else:
            news.append(ToolCallDelta(self._id(), word(self._fields, "name"), delta))

    def end(self, fields: Json, news: list[StreamEvent]) -> None:
        """It is whole, and is what `fields` say."""
        self._fields, self._made = self._fields | fields, None
        self.kind = word(self._fields, "type")
        if self._ended:
            return
        self._ended = True
        match self.kind:
            case "message" | "reasoning":
                delta, end = (TextDelta, TextEnd) if self.kind == "message" else (ThinkingDelta, ThinkingEnd)
                texts = self._texts()
                news.extend(delta(text) for text in texts if not self._pieces)
                news.extend(end(text) for text in texts)
            case "function_call" | "custom_tool_call":
                news.append(ToolCallEnd(self._call()))

    def parts(self, author: str, *, stored: bool) -> list[AssistantPart]:
        """The item as message parts; the rest follows as `Opaque`: the whole item, or its further fields.

        `stored`: the provider may have kept it, so that its id alone says enough.
        """
        texts, fields = self._texts(), self._fields
        match self.kind:
            case "message" if texts:
                return [*map(Text, texts), *self._rest(author)]
            case "reasoning" if not (stored or fields.get("encrypted_content") or fields.get("content")):
                return [*map(Thinking, texts)]  # cut off before it was encrypted: it would be refused
            case "reasoning":
                return [*map(Thinking, texts), Opaque(author, fields)]
            case "function_call":
                return [self._call(), *self._rest(author)]
            case "custom_tool_call":
                return [self._call(), Opaque(author, fields)]
        return [Opaque(author, fields, untrusted=self.kind not in _MODEL_ITEMS)]

    def _rest(self, author: str) -> list[AssistantPart]:
        rest = {
            name: value
            for name, value in self._fields.items()
            if name not in _FIELDS_IN_PARTS[self.kind] and value not in _DEFAULT_VALUES
        }
        contents = [
            {
                name: value
                for name, value in part.items()
                if name not in {"text", "refusal"} and value not in _DEFAULT_VALUES
            }
            for part in _listed(self._fields, "content")
            if _said(part)
        ]
        if len(contents) > 1 or any(contents):
            rest["content"] = contents
        notes = (note for fields in contents for note in _listed(fields, "annotations"))
        cites = any(note.get("type") == "url_citation" for note in notes)
        return [Opaque(author, rest, untrusted=cites)] if rest else []

    def _texts(self) -> list[str]:
        """Its words, or its thoughts."""
        parts = [*_listed(self._fields, "summary"), *_listed(self._fields, "content")]
        return [text for part in parts if (text := _said(part))] or (["".join(self._pieces)] if self._pieces else [])

    def _call(self) -> ToolCall:
        if self._made is None:
            custom = self.kind == "custom_tool_call"
            given = self._fields.get("input" if custom else "arguments") or "".join(self._pieces)
            args = {"input": given} if custom else given if isinstance(given, dict) else arguments(str(given))
            self._made = ToolCall(self._id(), word(self._fields, "name"), args)
        return self._made

    def _id(self) -> str:
        if not word(self._fields, "call_id"):
            self._fields["call_id"] = f"call_{secrets.token_hex(12)}"
        return self._fields["call_id"]


def _said(part: Json) -> str:
    return word(part, "text") or word(part, "refusal")


def _listed(fields: Json, name: str) -> list[Json]:
    value = fields.get(name)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
