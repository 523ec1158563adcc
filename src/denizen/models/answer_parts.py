"""The parts of an answer that has words and thoughts in pieces, one run of them after the other, and calls between."""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import msgspec

from denizen.config.pattern import pattern
from denizen.events import StreamEvent, TextDelta, TextEnd, ThinkingDelta, ThinkingEnd, ToolCallDelta, ToolCallEnd
from denizen.messages import AssistantMessage, AssistantPart, Opaque, Text, Thinking, ToolCall
from denizen.models.failures import ModelIdentity

_WORD: Final = pattern(r"\S+\s*|\s+")


def events_of(message: AssistantMessage) -> Iterator[StreamEvent]:
    """The events of a whole message, as if it had streamed word by word."""
    for part in message.content:
        match part:
            case Text(text):
                yield from map(TextDelta, _WORD.findall(text))
                yield TextEnd(text)
            case Thinking(text=text):
                yield from map(ThinkingDelta, _WORD.findall(text))
                yield ThinkingEnd(text)
            case ToolCall(id=id, name=name, args=args):
                yield ToolCallDelta(id, name, msgspec.json.encode(args).decode())
                yield ToolCallEnd(part)


class GrowingCall(Protocol):
    """A call as it grows."""

    def parts(self, author: str) -> Sequence[AssistantPart]:
        """The call, and what its provider wants back with it."""


class AnswerParts:
    """The base of `OpenAIAnswer` and `GeminiAnswer`."""

    def __init__(self, identity: ModelIdentity) -> None:
        self.done = False
        self.paused = False
        self._identity = identity
        self._parts: list[Text | Thinking | Opaque | GrowingCall] = []
        self._kind: type[Text | Thinking] = Text
        self._pieces: list[str] = []

    def _content(self) -> list[AssistantPart]:
        content: list[AssistantPart] = []
        for part in self._parts:
            content.extend((part,) if isinstance(part, Text | Thinking | Opaque) else part.parts(self._identity.author))
        return content

    def _extend(self, kind: type[Text | Thinking], text: str, news: list[StreamEvent]) -> None:
        if not text:
            return
        if kind is not self._kind:
            self._end_run(news)
            self._kind = kind
        self._pieces.append(text)
        news.append(TextDelta(text) if kind is Text else ThinkingDelta(text))

    def _end_run(self, news: list[StreamEvent]) -> None:
        """The words or thoughts so far are a part."""
        if text := "".join(self._pieces):
            self._parts.append(self._kind(text))
            news.append(TextEnd(text) if self._kind is Text else ThinkingEnd(text))
            self._pieces = []
