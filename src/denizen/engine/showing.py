"""Passing on what streams from the model."""

from typing import TYPE_CHECKING

import msgspec

from denizen.config.redact import RedactedStream
from denizen.events import (
    Delta,
    LlmStream,
    Retry,
    Retrying,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEnd,
    Withdrawn,
)

if TYPE_CHECKING:
    from denizen.engine.turn import Turn

Piece = TextDelta | ThinkingDelta | ToolCallDelta


class Showing:
    """One call's stream as the host gets it: without secrets, even where they come in pieces."""

    def __init__(self, turn: "Turn") -> None:
        self._turn = turn
        self._redactor = turn.agent.redactor
        self._begin()

    @property
    def text(self) -> str:
        """The words that were passed on."""
        return "".join(self._words)

    def show(self, event: Delta) -> None:
        """Pass a piece on."""
        if isinstance(event, TextDelta):
            text = self._text.feed(event.delta)
            if text is event.delta:  # nearly always: this is done for every few letters of an answer
                self._words.append(text)
                self._turn.emit(LlmStream(event))
            else:
                self._pass(event, text)
        elif isinstance(event, Piece):
            self._pass(event, self._stream(event).feed(event.delta))
        else:
            self._end_of_part(event)

    def _end_of_part(self, event: TextEnd | ThinkingEnd | ToolCallEnd) -> None:
        if isinstance(event, TextEnd):
            self._flush(TextDelta(""))
        elif isinstance(event, ThinkingEnd):
            self._flush(ThinkingDelta(""))
        self._turn.emit(LlmStream(self._redactor.value(event)))

    def end(self) -> None:
        """Pass on what was held back."""
        if self._turn.stream:
            for piece in (TextDelta(""), ThinkingDelta("")):
                self._flush(piece)

    def withdraw(self) -> None:
        """What was passed on doesn't count."""
        if self._words:
            self._turn.emit(Withdrawn(self.text))
        self._begin()

    def again(self, event: Retrying) -> None:
        """The stream died, or never began, and the call is made once more."""
        self._turn.retries += 1
        self.withdraw()
        self._turn.emit(Retry(event.attempt, event.reason, event.profile_id, event.delay, event.model))

    def _begin(self) -> None:
        self._words: list[str] = []
        self._text = self._redactor.stream()
        self._streams: dict[str, RedactedStream] = {}

    def _stream(self, event: Piece) -> RedactedStream:
        """That of the text which the piece belongs to: the answer's, the thoughts', or the call's."""
        if isinstance(event, TextDelta):
            return self._text
        name = event.id if isinstance(event, ToolCallDelta) else ""
        if name not in self._streams:
            self._streams[name] = self._redactor.stream()
        return self._streams[name]

    def _flush(self, event: Piece) -> None:
        self._pass(event, self._stream(event).flush())

    def _pass(self, event: Piece, text: str) -> None:
        if not text:
            return
        if isinstance(event, TextDelta):
            self._words.append(text)
        self._turn.emit(LlmStream(event if text is event.delta else msgspec.structs.replace(event, delta=text)))
