"""Passing on what streams from the model."""

from typing import TYPE_CHECKING

import msgspec

from denizen.events import (
    Delta,
    LlmStream,
    Retry,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEnd,
    Withdrawn,
)

if TYPE_CHECKING:
    from denizen.engine.turn import Turn


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
        if isinstance(event, (TextDelta, ThinkingDelta, ToolCallDelta)):
            self._delta(event, self._stream.feed(event.delta))
            return
        if (rest := self._stream.flush()) and not isinstance(event, ToolCallEnd):
            self._delta(ThinkingDelta("") if isinstance(event, ThinkingEnd) else TextDelta(""), rest)
        self._turn.emit(LlmStream(self._redactor.value(event)))

    def again(self, event: Retrying) -> None:
        """The stream died, or never began, and the call is made once more."""
        self._turn.retries += 1
        if event.withdrawn:
            self._turn.emit(Withdrawn(self._redactor.text(event.withdrawn)))
        self._turn.emit(Retry(event.attempt, event.reason, event.profile_id, event.delay, event.model))
        self._begin()

    def _begin(self) -> None:
        self._words: list[str] = []
        self._stream = self._redactor.stream()

    def _delta(self, event: TextDelta | ThinkingDelta | ToolCallDelta, text: str) -> None:
        if not text:
            return
        if isinstance(event, TextDelta):
            self._words.append(text)
        self._turn.emit(LlmStream(event if text is event.delta else msgspec.structs.replace(event, delta=text)))
