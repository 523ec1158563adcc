"""Going through a text once, from mark to mark: thoughts, quotations, calls, and the words between them."""

import re
from collections.abc import Sequence
from typing import Final

from denizen.actions.recovery import vocabulary
from denizen.actions.recovery.forms import (
    BARE_LINES,
    FORMS_AT_LINES,
    IN_MARKS,
    OPENERS,
    UNMARKED,
    Form,
    bare_objects,
    functions,
)
from denizen.actions.recovery.quoting import announced, quoted, quoted_behind
from denizen.actions.recovery.source import Exhausted, Reading, Source, Wish

_LABEL: Final = (
    r"(?i:(?:the )?(?:(?:tool|function|command|search|web|page|file) )?(?:results?|outputs?|response|contents?)"
    r"(?: #?\d{1,4})?) ?:"
)
_INDENT: Final = r"[ \t]{0,40}(?:(?:[-*+]|\d{1,3}[.)])[ \t]{1,9})?"
_EVENTS: Final = {
    "think": "|".join(map(re.escape, vocabulary.THOUGHTS)),
    "thought": "|".join(map(re.escape, [*vocabulary.THOUGHTS.values(), vocabulary.FINAL])),
    "other": vocabulary.OTHERS,
    "element": vocabulary.QUOTES,
    "fence": rf"^{_INDENT}(?P<ticks>`{{3,}}|~{{3,}})",
    "line": BARE_LINES,
    "block": f"^{_INDENT}>",
    "label": f"^{_LABEL}",
    "code": r"`+",
    "unmarked": OPENERS,
    "mark": vocabulary.OPENS,
    "answer": vocabulary.ANSWERS,
    "frame": vocabulary.FRAMES,
    "object": r"[{\[](?=\s{0,99}[{\[\"'])",
    "function": r"^[ \t]{0,3}\[?[^\W\d][\w.-]{0,127}\(",
}
_EVENT: Final = re.compile("|".join(f"(?P<{name}>{event})" for name, event in _EVENTS.items()), re.MULTILINE)
_MARK: Final = re.compile(rf"(?P<open>{vocabulary.OPENS})|(?P<close>{vocabulary.CLOSES})")
_TRAILING: Final = re.compile(rf"(?:\s{{0,99}}(?:{vocabulary.CLOSES}))+")
_BETWEEN: Final = re.compile(r"\s*[;,]?\s*")
_FENCE: Final = re.compile(r"^[ \t]{0,40}(`{3,}|~{3,})[ \t]{0,40}$", re.MULTILINE)
_INFO: Final = re.compile(
    r"[ \t]{0,9}(?:(?i:json|xml|tool_?(?:code|calls?|use)|tool|function_?calls?|action))?[ \t]{0,9}\n"
)
_MORE: Final = (*UNMARKED, bare_objects)
"""Forms that may follow a call without a mark."""

_BEFORE_OBJECT: Final = frozenset(":;,.!?>)}]{*\n")
_CALL_LIKE: Final = re.compile(
    r"[{\[]\s{0,99}\{?\s{0,99}[\"'](?:name|function|tool|tool_name|tool_calls|function_call)[\"']"
)


class Pass:
    """One way through a text; afterwards `wishes`, `text` and `thoughts` are what was found."""

    def __init__(self, source: Source) -> None:
        self.wishes: list[Wish] = []
        self.text: list[str] = []
        self.thoughts: list[str] = []
        self._source = source
        self._whole = source.text
        self._thinking = False  # in a thought that has no end mark
        self._thought = False  # a thought was there
        self._spoke = False  # there are words besides calls
        self._since = 0  # where the words before the next call begin
        self._objects_from = 0  # where objects without marks may be calls again
        self._spans: dict[int, int] | None = None
        self._fenced: bool | None = None

    def run(self) -> None:
        """Go through the text."""
        head = vocabulary.HEADS.match(self._whole)
        at = head.end() if head else 0
        try:
            while event := _EVENT.search(self._whole, at):
                self._say(at, event.start())
                at = self._step(event)
        except Exhausted:
            self._thinking = False
        self._say(at, len(self._whole))

    def _step(self, event: re.Match[str]) -> int:
        """What stands at the event; where the text goes on."""
        start, end = event.span()
        match event.lastgroup:
            case "think":
                return self._think(event)
            case "thought":
                return self._end_thought(end)
            case "answer":
                self._thinking = False
                return end
            case "frame":
                return end
            case "other":
                return self._quote(start, len(self._whole))
            case _:
                return self._speech(event, start, end)

    def _speech(self, event: re.Match[str], start: int, end: int) -> int:
        match event.lastgroup:
            case "element":
                return self._element(event)
            case "fence":
                return self._fence(event)
            case "block" | "label":
                return self._quote(start, self._paragraph_end(end))
            case "code":
                return self._code(event)
            case "object":
                return self._object(start)
            case "function":
                return self._function(event)
            case "mark":
                return self._calls(start, UNMARKED)
            case "line":
                return self._calls(start, FORMS_AT_LINES)
            case _:
                return self._calls(start, UNMARKED)

    def _say(self, start: int, end: int) -> None:
        words = self._whole[start:end]
        if self._thinking:
            self.thoughts.append(words)
            return
        self.text.append(words)
        self._spoke = self._spoke or not (words.isspace() or not words)

    def _quote(self, start: int, end: int) -> int:
        self._say(start, end)
        return end

    def _think(self, event: re.Match[str]) -> int:
        close = self._source.find(vocabulary.THOUGHTS[event[0]], event.end())
        self._thought = True
        if close < 0:
            self._thinking = True
            return event.end()
        self.thoughts.append(self._whole[event.end() : close])
        self._since = close + len(vocabulary.THOUGHTS[event[0]])
        return self._since

    def _end_thought(self, end: int) -> int:
        """The end of a thought whose beginning stood in the prompt: all before it was thought, its calls too."""
        if not self._thought:
            self.thoughts += self.text
            self.text.clear()
            self.wishes.clear()
            self._spoke = False
        self._thought, self._thinking, self._since = True, False, end
        return end

    def _element(self, event: re.Match[str]) -> int:
        """Up to the last end tag of an element that quotes: what it holds may have brought end tags of its own."""
        tag = f"</{event['quote']}>" if event["quote"] else "-->"
        last = self._whole.rfind(tag)
        self._source.spend(len(self._whole) - max(last, event.end()))
        return self._quote(event.start(), last + len(tag) if last >= event.end() else len(self._whole))

    def _line_end(self, start: int) -> int:
        end = self._source.find("\n", start)
        return len(self._whole) if end < 0 else end + 1

    def _paragraph_end(self, start: int) -> int:
        end = self._source.find("\n\n", start)
        return len(self._whole) if end < 0 else end

    def _code(self, event: re.Match[str]) -> int:
        """Behind a code span, or behind its back-ticks where none ends in the same paragraph."""
        if self._spans is None:
            self._spans = _code_spans(self._whole)
        close = self._spans.get(event.start(), 0)
        return self._quote(event.start(), close if close and close <= self._paragraph_end(event.end()) else event.end())

    def _fence(self, event: re.Match[str]) -> int:
        """Behind a fence: what it holds is shown, unless the reply is nothing else, or says that it acts so."""
        ticks, body = event["ticks"], self._line_end(event.start())
        info = self._whole[event.end() : body]
        if "`" in info:
            return self._code(event)
        inner, end = self._fence_end(ticks, body)
        if _INFO.fullmatch(info) and self._acts(event.start(), end):
            wishes, stop = self._block(body, IN_MARKS, IN_MARKS)
            if wishes and self._source.past_space(stop) >= inner >= stop and self._take(wishes, event.start(), end):
                return end
        return self._quote(event.start(), end)

    def _fence_end(self, ticks: str, body: int) -> tuple[int, int]:
        """Where the fence's last line begins and ends; without one, it ends with the thought or the text."""
        for close in _FENCE.finditer(self._whole, body):
            if close[1].startswith(ticks):
                self._source.spend(close.end() - body)
                return close.start(), close.end()
        self._source.spend(len(self._whole) - body)
        marks = [self._source.find(mark, body) for mark in vocabulary.THOUGHTS.values()]
        end = min([mark for mark in marks if mark >= 0], default=len(self._whole))
        return end, end

    def _acts(self, start: int, end: int) -> bool:
        if not self._spoke:
            self._fenced = _only_fences(self._whole[start:]) if self._fenced is None else self._fenced
            return self._fenced
        trailing = self._source.match(_TRAILING, end)
        last = self._source.past_space(trailing.end() if trailing else end) == len(self._whole)
        return last and start - self._since < 400 and announced(self._whole[self._since : start])

    def _object(self, start: int) -> int:
        """An object or a list without marks."""
        found = bare_objects(self._source, start) if start >= self._objects_from else None
        if found is None:
            if start >= self._objects_from and not _CALL_LIKE.match(self._whole, start):
                self._objects_from = self._paragraph_end(start)
            return self._quote(start, start + 1)
        before = self._whole[max(start - 99, 0) : start].rstrip(" \t")
        if not found.wishes or (before and before[-1] not in _BEFORE_OBJECT):
            return self._quote(start, found.end)
        return self._calls(start, (bare_objects,))

    def _function(self, event: re.Match[str]) -> int:
        """A call as program text, without marks: the last thing in the reply, on lines of its own."""
        start = self._source.past_space(event.start())
        wishes, end = self._block(start, (functions,), (functions,))
        last = self._source.past_space(end) == len(self._whole)
        known = all(self._source.tools.known(wish.name) for wish in wishes)
        if last and known and wishes and self._take(wishes, start, end):
            return end
        return self._quote(event.start(), event.end())

    def _calls(self, start: int, forms: Sequence[Form]) -> int:
        """The calls that begin at `start`, or the marks there as words."""
        found, end = self._block(start, forms)
        if not found or not self._take(found, start, end):
            return self._quote(start, max(end, start + 1))
        return end

    def _block(self, at: int, forms: Sequence[Form], more: Sequence[Form] = _MORE) -> tuple[list[Wish], int]:
        """Calls one behind the other, with marks around them; where they end or, without any, where the marks do."""
        wishes: list[Wish] = []
        end = at
        while True:
            at, opened = self._past_marks(end, between=bool(wishes))
            found = self._first(IN_MARKS if opened else more if wishes else forms, at)
            if found is None or not found.wishes:
                break
            wishes += found.wishes
            end = found.end
        if not wishes:
            return [], at
        trailing = self._source.match(_TRAILING, end)
        return wishes, trailing.end() if trailing else end

    def _past_marks(self, at: int, *, between: bool) -> tuple[int, bool]:
        """Behind the marks at `at`, and whether the last of them lets a call begin."""
        opened = False
        while True:
            space = self._source.match(_BETWEEN, at) if between else None
            at = space.end() if space else self._source.past_space(at)
            mark = self._source.match(_MARK, at)
            if mark is None:
                return at, opened
            at, opened = mark.end(), mark["open"] is not None

    def _first(self, forms: Sequence[Form], at: int) -> Reading | None:
        readings = (form(self._source, at) for form in forms)
        return next((reading for reading in readings if reading), None)

    def _take(self, wishes: list[Wish], start: int, end: int) -> bool:
        """Whether the calls are the model's own and of tools that are there: they are kept then."""
        known = [wish for wish in wishes if self._source.tools.known(wish.name)]
        if not known or quoted(self._whole, self._since, start) or quoted_behind(self._whole, end):
            return False
        self.wishes += known
        self._thinking, self._since = False, end
        return True


def _code_spans(text: str) -> dict[int, int]:
    """Where the code span ends that begins with the back-ticks at a place."""
    ends: dict[int, int] = {}
    spans: dict[int, int] = {}
    for run in reversed([*re.finditer("`+", text)]):
        length = run.end() - run.start()
        spans[run.start()] = ends.get(length, 0)
        ends[length] = run.end()
    return spans


def _only_fences(text: str) -> bool:
    """Whether a text is nothing but fences."""
    ticks = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line) if ticks else re.match(r"[ \t]{0,40}(`{3,}|~{3,})", line)
        if ticks:
            ticks = "" if mark and mark[1].startswith(ticks) else ticks
        elif mark:
            ticks = mark[1]
        elif line.strip():
            return False
    return True
