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
from denizen.messages import AssistantMessage

if TYPE_CHECKING:
    from denizen.engine.turn import Turn

Piece = ThinkingDelta | ToolCallDelta


class Showing:
    """One call's stream as the host gets it: without secrets, and without calls in the text, even in pieces."""

    def __init__(self, turn: "Turn") -> None:
        self._turn = turn
        self._emit = turn.io.emit
        self._redactor = turn.agent.redactor
        self._begin()

    @property
    def text(self) -> str:
        """The words that were passed on."""
        return "".join(self._words)

    def say(self, event: TextDelta) -> None:
        """Pass on what of a piece of the reply can be shown: this is done for every few letters of an answer."""
        piece = event.delta
        text = self._spoken(self._redacted(piece))
        if text is piece:  # nearly always
            self._words.append(text)
            self._emit(LlmStream(event))
        else:
            self._say(text)

    def show(self, event: Delta) -> None:
        """Pass on another piece, or the end of a part."""
        if isinstance(event, TextDelta):
            self.say(event)
        elif isinstance(event, Piece):
            self._pass(event, self._stream(event).feed(event.delta))
        else:
            self._end_of_part(event)

    def end(self, message: AssistantMessage) -> None:
        """Pass on what was held back of the reply's words, once it is all there."""
        if not self._turn.options.stream:
            return
        self._pass(ThinkingDelta(""), self._stream(ThinkingDelta("")).flush())
        if self._heard:
            self._settle(message)

    def withdraw(self) -> None:
        """What was passed on doesn't count."""
        if self._words:
            self._emit(Withdrawn(self.text))
        self._begin()

    def again(self, event: Retrying) -> None:
        """The stream died, or never began, and the call is made once more."""
        self._turn.retries += bool(event.attempt)
        self.withdraw()
        error = self._turn.agent.redact(event.error)
        self._emit(
            Retry(event.attempt, event.reason, event.profile_id, event.delay, event.model, error, asked=event.asked)
        )

    def _begin(self) -> None:
        self._words: list[str] = []
        self._ended = 0  # how many of the words are of parts that are complete
        self._heard = False  # some words came, shown or not
        self._text = self._redactor.stream()
        self._redacted = self._text.feed  # takes secrets out of a piece of the reply
        self._spoken = self._first  # takes calls out of it
        self._streams: dict[str, RedactedStream] = {}  # without secrets, too: the thoughts', and each call's

    def _first(self, text: str) -> str:
        """What can be shown of the first words; from then on the action format says that of each piece."""
        agent = self._turn.agent
        spoken = agent.actions.stream_filter(agent.tools)
        self._heard = True
        self._spoken = spoken.feed if spoken else _all
        return self._spoken(text)

    def _settle(self, message: AssistantMessage) -> None:
        """Show what the reply, as it is read, says beyond what was shown; where it says something else, that."""
        agent = self._turn.agent
        self._say(self._spoken(self._text.flush()))
        reply = agent.actions.read(message, agent.tools).reply
        rest = _behind(self.text, reply, anywhere=bool(message.tool_calls))
        if rest is None:
            self.withdraw()
            rest = reply
        self._say(rest)
        self._end_words()

    def _end_of_part(self, event: TextEnd | ThinkingEnd | ToolCallEnd) -> None:
        if isinstance(event, TextEnd):
            self._say(self._spoken(self._text.flush()))
            if "".join(self._words[self._ended :]) == self._redactor.text(event.text):
                self._end_words()
            return
        if isinstance(event, ThinkingEnd):
            self._pass(ThinkingDelta(""), self._stream(ThinkingDelta("")).flush())
        self._emit(LlmStream(self._redactor.value(event)))

    def _end_words(self) -> None:
        """A text part is complete: as much of it as there is for the person."""
        words = self._words[self._ended :]
        self._ended = len(self._words)
        if words:
            self._emit(LlmStream(TextEnd("".join(words))))

    def _stream(self, event: Piece) -> RedactedStream:
        """That of the text which the piece belongs to: the thoughts', or the call's."""
        name = event.id if isinstance(event, ToolCallDelta) else ""
        if name not in self._streams:
            self._streams[name] = self._redactor.stream()
        return self._streams[name]

    def _say(self, words: str) -> None:
        if words:
            self._words.append(words)
            self._emit(LlmStream(TextDelta(words)))

    def _pass(self, event: Piece, text: str) -> None:
        if text:
            event = event if text is event.delta else msgspec.structs.replace(event, delta=text)
            self._emit(LlmStream(self._redactor.value(event)))


def _all(piece: str) -> str:
    return piece


def _behind(shown: str, reply: str, *, anywhere: bool) -> str | None:
    """What the reply says behind what was shown; None: it doesn't begin so, but for white space.

    `anywhere`: nor does it stand somewhere within.
    """
    shown, reply = shown.lstrip(), reply.lstrip()
    if not reply.startswith(shown):
        shown = shown.rstrip()
    start = reply.find(shown) if anywhere else 0
    return reply[start + len(shown) :] if start >= 0 and reply.startswith(shown, start) else None
