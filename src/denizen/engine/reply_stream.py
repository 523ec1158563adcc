"""Streaming a reply from the model to the host."""

import msgspec

from denizen.config.redact import RedactedStream
from denizen.engine.turn import Turn
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
    Withdrawn,
)
from denizen.messages import AssistantMessage

Piece = ThinkingDelta | ToolCallDelta


class ReplyStream:
    """Passes one call's stream on to the host: without secrets and without calls in the text, even in pieces."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._agent = turn.agent
        self._emit = turn.io.emit
        self._redactor = turn.agent.redactor
        self._begin()

    @property
    def text(self) -> str:
        """The words that were shown."""
        return "".join(self._words)

    def add_text(self, event: TextDelta) -> None:
        """Show a piece of the reply as far as possible; called for every few letters of an answer."""
        piece = event.delta
        text = self._filter(self._redacted(piece))
        if text is piece:  # nearly always
            self._words.append(text)
            self._emit(LlmStream(event))
        else:
            self._show(text)

    def add(self, event: Delta) -> None:
        """Pass on another piece, or the end of a part."""
        if isinstance(event, TextDelta):
            self.add_text(event)
        elif isinstance(event, Piece):
            self._pass_on(event, self._stream_of(event).feed(event.delta))
        elif isinstance(event, TextEnd):
            self._show(self._filter(self._text.flush()))
            if "".join(self._words[self._ended :]) == self._redactor.text(event.text):
                self._end_part()
        else:
            if isinstance(event, ThinkingEnd):
                self._pass_on(ThinkingDelta(""), self._stream_of(ThinkingDelta("")).flush())
            self._emit(LlmStream(self._redactor.value(event)))

    def end(self, message: AssistantMessage) -> None:
        """Show the rest of the complete reply, or all of it if it differs from the shown text."""
        if not self._turn.options.stream:
            return
        self._pass_on(ThinkingDelta(""), self._stream_of(ThinkingDelta("")).flush())
        if not self._has_text:
            return
        self._show(self._filter(self._text.flush()))
        reply = self._agent.actions.read(message, self._agent.tools).reply
        rest = _rest(reply, self.text, anywhere=bool(message.tool_calls))
        if rest is None:
            self.withdraw()
        self._show(reply if rest is None else rest)
        self._end_part()

    def withdraw(self) -> None:
        """Take back what was shown."""
        if self._words:
            self._emit(Withdrawn(self.text))
        self._begin()

    def retry(self, event: Retrying) -> None:
        """Withdraw the text of a stream that died or never began: the call is made again."""
        self._turn.retries += bool(event.attempt)
        self.withdraw()
        error = self._agent.redact(event.error)
        self._emit(
            Retry(event.attempt, event.reason, event.profile_id, event.delay, event.model, error, asked=event.asked)
        )

    def _begin(self) -> None:
        self._words: list[str] = []
        self._ended = 0  # how many of the words are of parts that are complete
        self._has_text = False  # shown or not
        self._text = self._redactor.stream()
        self._redacted = self._text.feed  # takes secrets out of a piece of the reply
        self._filter = self._first  # takes calls out of it
        self._streams: dict[str, RedactedStream] = {}  # without secrets, too: the thoughts', and each call's

    def _first(self, text: str) -> str:
        """Filter the first piece, and have the action format's filter take the next ones."""
        found = self._agent.actions.stream_filter(self._agent.tools)
        self._has_text = True
        self._filter = found.feed if found else _unfiltered
        return self._filter(text)

    def _end_part(self) -> None:
        """A text part is complete: pass on as much of it as was shown."""
        words = self._words[self._ended :]
        self._ended = len(self._words)
        if words:
            self._emit(LlmStream(TextEnd("".join(words))))

    def _stream_of(self, event: Piece) -> RedactedStream:
        """The redacted stream of the thoughts, or of the piece's call."""
        name = event.id if isinstance(event, ToolCallDelta) else ""
        if name not in self._streams:
            self._streams[name] = self._redactor.stream()
        return self._streams[name]

    def _show(self, words: str) -> None:
        if words:
            self._words.append(words)
            self._emit(LlmStream(TextDelta(words)))

    def _pass_on(self, event: Piece, text: str) -> None:
        if text:
            event = event if text is event.delta else msgspec.structs.replace(event, delta=text)
            self._emit(LlmStream(self._redactor.value(event)))


def _unfiltered(piece: str) -> str:
    return piece


def _rest(reply: str, shown: str, *, anywhere: bool) -> str | None:
    """The reply after the shown text; None if it doesn't begin with it, white space aside.

    `anywhere`: the shown text may be inside the reply.
    """
    shown, reply = shown.lstrip(), reply.lstrip()
    if not reply.startswith(shown):
        shown = shown.rstrip()
    start = reply.find(shown) if anywhere else 0
    return reply[start + len(shown) :] if start >= 0 and reply.startswith(shown, start) else None
