"""The words of a reply for the person, as they stream: what is a call, or may become one, is held back."""

import re
from collections.abc import Callable
from typing import Final

from denizen.actions.recovery.fences import INFO
from denizen.actions.recovery.source import Exhausted, Source
from denizen.actions.recovery.suspects import BODY, TOKEN, TOKEN_BEGUN, Suspects
from denizen.actions.recovery.vocabulary import THOUGHTS

_LEAD: Final = 400
"""Characters before a fence that may announce it as an act."""

_GOES_ON: Final = re.compile(r"""\s*(?:"(?:\\.|[^"\\])*+"?\s*|'(?:\\.|[^'\\])*+'?\s*|.{0,8})\Z""", re.DOTALL)
"""Where a value can't be read, but could be if there were more of it."""

_IN_FENCE: Final = re.compile("[\n<｜]")
"""Where something may be in a fence, but at the beginning of a line."""
_LONGEST_LINE: Final = 99
"""Characters of a line that may end a fence."""


class SpokenWords:
    """Takes the words out of a reply that comes in pieces.

    What is held back at its end is left to who reads the whole reply: it is more than the calls, never less. Code,
    thoughts at the beginning and objects that call nothing are passed; behind what looks like a call all is held.
    """

    def __init__(self, suspects: Suspects) -> None:
        self._suspects = suspects
        self._quick = suspects.quick.search
        self._calm = False  # only `quick` can find the next event
        self._said: list[str] = []
        self._held: list[str] = []
        self._size = self._wait = 0  # how much is held; with less than that it isn't looked at again
        self._source = Source("", suspects.offered)  # the text that is looked at
        self._begin = 0  # in it: where the words begin
        self._ticks = 0  # of the code in a line
        self._end = ""  # what ends the thought
        self._close = _IN_FENCE  # what ends the fence
        self._line = ""  # the last line of a fence, or the end of a thought
        self._mode: Callable[[str], tuple[str, str]] = self._flow
        self._handlers: dict[str | None, Callable[[re.Match[str]], int]] = {
            "begun": self._begun,
            "thought": self._thought,
            "mark": self._call,
            "named": self._named,
            "fence": self._fence,
            "code": self._code,
            "object": self._object,
        }

    def feed(self, piece: str) -> str:
        """What can be shown once the piece has come: the very same object where that is all of it."""
        if self._calm and not self._quick(piece):
            self._said.append(piece)
            return piece
        shown: list[str] = []
        rest = piece
        while rest:
            words, rest = self._mode(rest)
            if words:
                shown.append(words)
                self._said.append(words)
        together = "".join(shown)
        return piece if together == piece else together

    # Ways to take in text: each returns what is shown, and what the next one takes in

    def _flow(self, piece: str) -> tuple[str, str]:
        self._held.append(piece)
        self._size += len(piece)
        if self._size < self._wait:
            return "", ""
        before = self._said[-1][-1:] if self._said else ""
        text = before + "".join(self._held)
        self._held.clear()
        self._begin, self._size, self._wait = len(before), 0, 0
        self._source = Source(text, self._suspects.offered)
        at = self._look(text)
        words, rest = text[self._begin : at], text[at:]
        if self._mode != self._flow:
            self._calm = False
            return words, rest
        if rest:
            self._held.append(rest)
            self._size = len(rest)
        self._calm = not (rest or self._ticks or text.endswith("\n"))
        return words, ""

    def _look(self, text: str) -> int:
        """Up to where the text can be shown, or where another way goes on with it."""
        at = self._in_code(text, self._begin) if self._ticks else self._begin
        while self._mode == self._flow and not self._wait and at < len(text):
            event = self._suspects.events.search(text, at)
            if event is None:
                return len(text)
            if event["unsure"] is not None:
                return self._later(event)
            at = self._handlers[event.lastgroup](event)
        return at

    def _silence(self, piece: str) -> tuple[str, str]:
        return "", ""

    def _in_thought(self, piece: str) -> tuple[str, str]:
        text = self._line + piece
        close = text.find(self._end)
        if close < 0:
            self._line = text[1 - len(self._end) :]
            return "", ""
        self._mode, self._line = self._before_words, ""
        return "", text[close + len(self._end) :]

    def _before_words(self, piece: str) -> tuple[str, str]:
        rest = piece.lstrip()
        if rest:
            self._mode = self._flow
        return "", rest

    def _in_fence(self, piece: str) -> tuple[str, str]:
        piece = "".join(self._held) + piece
        self._held.clear()
        text, before = self._line + piece, len(self._line)
        close = self._close.search(text)
        end = close.end() if close else len(text)
        special = "<" in piece or "｜" in piece
        if special and (token := TOKEN.search(text, before, end)):
            return self._silenced(piece, token.start() - before)
        if close:
            self._mode, self._line, self._quick = self._flow, "", self._suspects.quick.search
            return piece[: end - before], piece[end - before :]
        if special and (begun := TOKEN_BEGUN.search(text, before)):
            end = begun.start()
            self._held.append(text[end:])
        self._line = text[text.rfind("\n", 0, end) + 1 : end][:_LONGEST_LINE]
        self._calm, self._quick = not self._held and bool(self._line.strip(" \t`~")), _IN_FENCE.search
        return piece[: end - before], ""

    def _silenced(self, piece: str, at: int) -> tuple[str, str]:
        self._mode, self._calm = self._silence, False
        return piece[:at], ""

    # What may be more than words: each handler returns where to go on

    def _later(self, event: re.Match[str]) -> int:
        """Look at it again when it has grown by a part of what there is, so that the work stays linear."""
        size = len(event.string) - event.start()
        self._wait = size + max(size // 4, 1)
        return event.start()

    def _call(self, event: re.Match[str]) -> int:
        self._mode = self._silence
        return event.start()

    def _begun(self, event: re.Match[str]) -> int:
        return self._later(event) if self._suspects.begins(event["word"]) else event.end()

    def _named(self, event: re.Match[str]) -> int:
        name = next(filter(None, (event[kind] for kind in ("function", "line", "action", "lined"))))
        return self._call(event) if name == "all" or self._suspects.offered.known(name) else event.end()

    def _thought(self, event: re.Match[str]) -> int:
        """A thought at the beginning is no words; elsewhere it may be a quotation."""
        if event.string[self._begin : event.start()].strip() or any(not words.isspace() for words in self._said):
            return self._call(event)
        self._mode, self._end = self._in_thought, THOUGHTS[event["thought"]]
        self._begin = event.end()
        return event.end()

    def _fence(self, event: re.Match[str]) -> int:
        """A fence is shown as it comes, unless it may hold calls that are meant."""
        text, body, ticks = event.string, event.end(), event["ticks"]
        self._close = re.compile(rf"^[ \t]{{0,40}}{ticks[0]}{{{len(ticks)},}}[ \t]{{0,40}}\n", re.MULTILINE)
        if fenced := self._suspects.fenced.match(text, body):
            return self._later(event) if fenced.end() == len(text) else self._call(event)
        begun = BODY.match(text, body) if self._acts(event) else None
        if begun and begun.end() == len(text) and not begun["sure"]:
            if not begun["word"] or self._suspects.begins(begun["word"]):
                return self._later(event)
        elif begun and (begun["sure"] or self._suspects.offered.known(begun["word"])):
            return self._fenced(event)
        self._mode = self._in_fence
        return body

    def _acts(self, fence: re.Match[str]) -> bool:
        """Whether the fence is at the beginning of the reply, or announced as an act."""
        from denizen.actions.recovery.quoting import announced

        if not INFO.fullmatch(f"{fence['info']}\n") or len(self._said) > _LEAD:
            return False
        lead = "".join(self._said) + fence.string[self._begin : fence.start()]
        return len(lead) < _LEAD and (not lead.strip() or announced(lead))

    def _fenced(self, event: re.Match[str]) -> int:
        from denizen.actions.recovery.blocks import read_block
        from denizen.actions.recovery.forms import IN_MARKS

        close = self._close.search(event.string, event.end())
        if close is None:
            return self._later(event)
        try:
            wishes, _ = read_block(Source(event.string, self._suspects.offered), event.end(), IN_MARKS, IN_MARKS)
        except Exhausted:
            return self._call(event)
        return self._call(event) if wishes else close.end()

    def _code(self, event: re.Match[str]) -> int:
        self._ticks = len(event[0])
        return self._in_code(event.string, event.end())

    def _in_code(self, text: str, at: int) -> int:
        """Behind code in a line; what looks like a call in it is held until it is clear that the code ends."""
        end = re.compile(rf"\n|(?<!`)`{{{self._ticks}}}(?!`)").search(text, at)
        if end and (end[0] == "\n" or end.end() < len(text)):
            self._ticks = 0
            return at if end[0] == "\n" else self._passed(text, at, end.end())
        event = self._suspects.events.search(text, at)
        while event and event.lastgroup == "code":
            event = self._suspects.events.search(text, event.end())
        return self._later(event) if event else len(text)

    def _object(self, event: re.Match[str]) -> int:
        """A value that calls nothing is passed; one that is cut off may yet call something."""
        try:
            return self._value(event)
        except Exhausted:
            return self._call(event)

    def _value(self, event: re.Match[str]) -> int:
        from denizen.actions.recovery.forms import bare_objects
        from denizen.actions.recovery.values import Unreadable, Values

        text, start = event.string, event.start()
        values = Values(self._source, start)
        try:
            values.value()
        except Unreadable:
            return self._later(event) if self._goes_on(values.at) else start + 1
        if values.at >= len(text):
            return self._later(event)
        found = bare_objects(self._source, start)
        return self._call(event) if found is None or found.wishes else self._passed(text, start, values.at)

    def _goes_on(self, at: int) -> bool:
        source = self._source
        return bool(_GOES_ON.match(source.text, at)) or max(source.find('"""', at), source.find("'''", at)) >= 0

    def _passed(self, text: str, start: int, end: int) -> int:
        """Behind what holds no call, or at the first special token in it."""
        token = TOKEN.search(text, start, end)
        return self._call(token) if token else end
