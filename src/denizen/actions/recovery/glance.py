"""A look at the words of a reply that isn't complete: how far they can be shown, and what begins behind them."""

import re
from functools import cached_property
from typing import Final, NamedTuple

from denizen.actions.recovery.fences import CALL_INFO, INFO
from denizen.actions.recovery.source import Exhausted, Source
from denizen.actions.recovery.stretches import Fence, Silence, Stretch, Thought
from denizen.actions.recovery.suspects import BODY, TOKEN, Suspects
from denizen.actions.recovery.vocabulary import THOUGHTS

_GOES_ON: Final = re.compile(r"""\s*(?:"(?:\\.|[^"\\])*+"?\s*|'(?:\\.|[^'\\])*+'?\s*|.{0,8})\Z""", re.DOTALL)
"""Where a value can't be read, but could be if there were more of it."""


class Step(NamedTuple):
    """The words go on to `at`, where a stretch begins that isn't words; `unclear`: what begins there may be one."""

    at: int
    into: Stretch | None = None
    unclear: bool = False


class Glance:
    """One look at a text from `begin` on, behind what was `said`; `ticks` are those of code in a line, if it is open.

    Each handler of an event says how far the words go: `Pass` reads the same events when the reply is complete.
    """

    def __init__(self, suspects: Suspects, text: str, begin: int, said: list[str], ticks: int) -> None:
        self.ticks = ticks
        self._suspects = suspects
        self._text = text
        self._begin = begin
        self._said = said

    def run(self) -> Step:
        """Look from event to event."""
        step = self._in_code(self._begin) if self.ticks else Step(self._begin)
        while not (step.into or step.unclear):
            event = self._suspects.events.search(self._text, step.at)
            if event is None:
                return Step(len(self._text))
            step = self._at(event)
        return step

    @cached_property
    def _source(self) -> Source:
        """For all values of the text: what they may cost together is limited."""
        return Source(self._text, self._suspects.offered)

    def _at(self, event: re.Match[str]) -> Step:
        match event.lastgroup:
            case "begun":
                return self._begun(event)
            case "object":
                return self._object(event)
            case "code":
                return self._code(event)
            case "fence":
                return self._fence(event)
            case "named":
                return self._named(event)
            case "thought":
                return self._thought(event)
            case "mark":
                return _silent(event)
            case _:
                return _unclear(event)

    def _begun(self, event: re.Match[str]) -> Step:
        return _unclear(event) if self._suspects.begins(event["word"]) else Step(event.end())

    def _named(self, event: re.Match[str]) -> Step:
        name = next(filter(None, (event[kind] for kind in ("function", "line", "action", "lined"))))
        return _silent(event) if name == "all" or self._suspects.offered.known(name) else Step(event.end())

    def _thought(self, event: re.Match[str]) -> Step:
        """A thought at the beginning is no words; elsewhere it may be a quotation."""
        thought = Thought(THOUGHTS.get(event["thought"], "assistantfinal"))
        return _silent(event) if self._spoke(event.start()) else Step(event.start(), thought)

    # Code

    def _fence(self, event: re.Match[str]) -> Step:
        """A fence is shown as it comes, unless it may hold calls that are meant."""
        text, body, fence = self._text, event.end(), Fence(event["ticks"])
        if fenced := self._suspects.fenced.match(text, body):
            return _unclear(event) if fenced.end() == len(text) else _silent(event)
        begun = BODY.match(text, body) if INFO.fullmatch(f"{event['info']}\n") else None
        if begun is None or not self._may_act(event, begun):
            return Step(body, fence)
        word, cut = begun["word"] or "", begun.end() == len(text)
        if begun["sure"] or (not cut and self._suspects.offered.known(word)):
            return self._fenced(event, fence)
        return _unclear(event) if cut and (not word or self._suspects.begins(word)) else Step(body, fence)

    def _may_act(self, fence: re.Match[str], body: re.Match[str]) -> bool:
        """Whether the fence says that it is a call, or may be a list of them, or begins the reply."""
        says = fence["label"] or CALL_INFO.fullmatch(fence["info"]) or body["sure"] == "["
        return bool(says) or body.end() == len(self._text) or not self._spoke(fence.start())

    def _spoke(self, before: int) -> bool:
        return bool(self._text[self._begin : before].strip()) or any(not piece.isspace() for piece in self._said)

    def _fenced(self, event: re.Match[str], fence: Fence) -> Step:
        """Behind a fence that calls nothing after all."""
        from denizen.actions.recovery.blocks import read_block
        from denizen.actions.recovery.forms import IN_MARKS

        close = fence.close.search(self._text, event.end())
        if close is None:
            return _unclear(event)
        try:
            wishes, _ = read_block(Source(self._text, self._suspects.offered), event.end(), IN_MARKS, IN_MARKS)
        except Exhausted:
            return _silent(event)
        return _silent(event) if wishes else Step(close.end())

    def _code(self, event: re.Match[str]) -> Step:
        self.ticks = len(event[0])
        return self._in_code(event.end())

    def _in_code(self, at: int) -> Step:
        """Behind code in a line; what looks like a call in it is held until it is clear that the code ends."""
        text, events = self._text, self._suspects.events
        end = re.compile(rf"\n|(?<!`)`{{{self.ticks}}}(?!`)").search(text, at)
        if end and (end[0] == "\n" or end.end() < len(text)):
            self.ticks = 0
            return Step(at) if end[0] == "\n" else self._passed(at, end.end())
        event = events.search(text, at)
        while event and event.lastgroup == "code":
            event = events.search(text, event.end())
        return _unclear(event) if event else Step(len(text))

    # Objects

    def _object(self, event: re.Match[str]) -> Step:
        """A value that calls nothing is passed; one that is cut off may yet call something."""
        try:
            return self._value(event)
        except Exhausted:
            return _silent(event)

    def _value(self, event: re.Match[str]) -> Step:
        from denizen.actions.recovery.forms import bare_objects
        from denizen.actions.recovery.values import Unreadable, Values

        start = event.start()
        values = Values(self._source, start)
        try:
            values.value()
        except Unreadable:
            return _unclear(event) if self._goes_on(values.at) else Step(start + 1)
        if values.at >= len(self._text):
            return _unclear(event)
        found = bare_objects(self._source, start)
        return _silent(event) if found is None or found.wishes else self._passed(start, values.at)

    def _goes_on(self, at: int) -> bool:
        find = self._source.find
        return bool(_GOES_ON.match(self._text, at)) or max(find('"""', at), find("'''", at)) >= 0

    def _passed(self, start: int, end: int) -> Step:
        """Behind what holds no call, or at the first special token in it."""
        token = TOKEN.search(self._text, start, end)
        return _silent(token) if token else Step(end)


def _silent(event: re.Match[str]) -> Step:
    return Step(event.start(), Silence())


def _unclear(event: re.Match[str]) -> Step:
    return Step(event.start(), unclear=True)
