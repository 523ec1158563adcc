"""Going through a text once, from event to event: thoughts, quotations, calls, and the words between them."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from denizen.actions.recovery.blocks import EDGE, TRAILING, read_block
from denizen.actions.recovery.events import EVENT
from denizen.actions.recovery.fences import CALL_INFO, CALL_LIST, FENCE_END, INFO, code_spans, only_fences
from denizen.actions.recovery.forms import FORMS_AT_LINES, IN_MARKS, UNMARKED, Form, bare_objects, functions
from denizen.actions.recovery.quoting import quoted
from denizen.actions.recovery.source import Exhausted, Source, Wish
from denizen.actions.recovery.vocabulary import HEADS, NAME, THOUGHTS

_SHOWN: Final = 200
"""Characters of a call that can't be read which the model is shown."""
_WORD: Final = re.compile(NAME)
_BEFORE_OBJECT: Final = frozenset(":;,.!?>)}]{*\n")
_CALL_LIKE: Final = re.compile(
    r"[{\[]\s{0,99}\{?\s{0,99}[\"'](?:name|function|tool|tool_name|tool_calls|function_call)[\"']"
)


class Pass:
    """One way through a text; afterwards `wishes`, `text` and `thoughts` are what was found.

    `broken` says of calls that aren't among the `wishes` why not, in words for the model.

    Whoever handles an event says where the text goes on, which is always behind it: the text is gone through once.
    Calls without marks, which may be mere words, are read only where `bare` says so; `doubtful`: there may be some.
    """

    def __init__(self, source: Source, *, bare: bool = False) -> None:
        self.wishes: list[Wish] = []
        self.text: list[str] = []
        self.thoughts: list[str] = []
        self.broken: list[str] = []
        self.doubtful = False
        self._bare = bare
        self._source = source
        self._whole = source.text
        self._thinking = False  # in a thought that has no end mark
        self._thought = False  # a thought was there
        self._spoke = False  # there are words besides calls
        self._since = 0  # where the words before the next call begin
        self._broken_until = 0
        self._objects_from = 0  # where objects without marks may be calls again
        self._spans: dict[int, int] | None = None
        self._fenced: bool | None = None
        self._handlers: dict[str | None, Callable[[re.Match[str]], int]] = {
            "think": self._think,
            "thought": self._end_thought,
            "answer": self._answer,
            "frame": re.Match.end,
            "other": lambda event: self._quote(event.start(), len(self._whole)),
            "element": self._element,
            "fence": self._fence,
            "block": self._quote_paragraph,
            "code": self._code,
            "object": self._object,
            "function": self._function,
            "line": self._line,
            "mark": lambda event: self._calls(event.start(), UNMARKED),
            "unmarked": lambda event: self._calls(event.start(), UNMARKED),
        }

    def run(self) -> None:
        """Go through the text."""
        head = HEADS.match(self._whole)
        at = head.end() if head else 0
        try:
            while event := EVENT.search(self._whole, at):
                self._say(at, event.start())
                at = self._handlers[event.lastgroup](event)
        except Exhausted:
            self._thinking = False
        self._say(at, len(self._whole))

    # Words

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

    def _quote_paragraph(self, event: re.Match[str]) -> int:
        return self._quote(event.start(), self._paragraph_end(event.end()))

    def _line_end(self, start: int) -> int:
        end = self._source.find("\n", start)
        return len(self._whole) if end < 0 else end + 1

    def _paragraph_end(self, start: int) -> int:
        end = self._source.find("\n\n", start)
        return len(self._whole) if end < 0 else end

    # Thoughts

    def _think(self, event: re.Match[str]) -> int:
        self._thought = True
        if self._spoke and quoted(self._whole, self._since, *event.span()):
            return self._quote(*event.span())
        end_mark = THOUGHTS[event[0]]
        close = self._source.find(end_mark, event.end())
        if close < 0:
            self._thinking = True
            return event.end()
        self.thoughts.append(self._whole[event.end() : close])
        self._since = close + len(end_mark)
        return self._since

    def _end_thought(self, event: re.Match[str]) -> int:
        """The end of a thought whose beginning stood in the prompt: all before it was thought, its calls too."""
        if not self._thought:
            self.thoughts += self.text
            self.text.clear()
            self.wishes.clear()
            self._thought, self._spoke, self._since = True, False, event.end()
        self._thinking = False
        return event.end()

    def _answer(self, event: re.Match[str]) -> int:
        self._thinking = False
        return event.end()

    # Quotations

    def _element(self, event: re.Match[str]) -> int:
        """Up to the last end tag of an element that quotes: what it holds may have brought end tags of its own."""
        tag = f"</{event['quote']}>" if event["quote"] else "-->"
        last = self._whole.rfind(tag)
        self._source.spend(len(self._whole) - max(last, event.end()))
        return self._quote(event.start(), last + len(tag) if last >= event.end() else len(self._whole))

    def _code(self, event: re.Match[str]) -> int:
        """Behind a code span, or behind its back-ticks where none ends: a single one only in the same paragraph."""
        if self._spans is None:
            self._spans = code_spans(self._whole)
        ticks, start = event["code"] or event["ticks"], event.start("code" if event["code"] else "ticks")
        close = self._spans.get(start, 0)
        ends = close and (len(ticks) > 1 or close <= self._paragraph_end(event.end()))
        return self._quote(event.start(), close if ends else event.end())

    def _fence(self, event: re.Match[str]) -> int:
        """Behind a fence: what it holds is shown, unless it says that it is a call, or the reply is nothing else."""
        body = self._line_end(event.end())
        info = self._whole[event.end() : body]
        if "`" in info:
            return self._code(event)
        inner, end = self._fence_end(event["ticks"], body)
        says = event["label"] or CALL_INFO.fullmatch(info) or CALL_LIST.match(self._whole, body)
        if INFO.fullmatch(info) and (self._is_all(event.start()) or (says and self._is_last(end))):
            wishes, stop = read_block(self._source, body, IN_MARKS, IN_MARKS)
            whole = self._source.past_space(stop) >= inner >= stop
            if wishes and whole and self._take(wishes, event.start("ticks"), end):
                return end
        return self._quote(event.start(), end)

    def _fence_end(self, ticks: str, body: int) -> tuple[int, int]:
        """Where the fence's last line begins and ends; without one, it ends with the thought or the text."""
        for close in FENCE_END.finditer(self._whole, body):
            if close[1].startswith(ticks):
                self._source.spend(close.end() - body)
                return close.start(), close.end()
        self._source.spend(len(self._whole) - body)
        marks = [self._source.find(mark, body) for mark in THOUGHTS.values()]
        end = min([mark for mark in marks if mark >= 0], default=len(self._whole))
        return end, end

    def _is_all(self, start: int) -> bool:
        """Whether the reply is nothing but fences."""
        if self._fenced is None:
            self._fenced = only_fences(self._whole[start:])
        return self._fenced and not self._spoke

    def _is_last(self, end: int) -> bool:
        """Whether nothing but marks follows."""
        trailing = self._source.match(TRAILING, end)
        return self._source.past_space(trailing.end() if trailing else end) == len(self._whole)

    # Calls

    def _object(self, event: re.Match[str]) -> int:
        """An object or a list without marks."""
        start = event.start()
        found = bare_objects(self._source, start) if start >= self._objects_from else None
        if found is None:
            if start >= self._objects_from and not _CALL_LIKE.match(self._whole, start):
                self._objects_from = self._paragraph_end(start)
            return self._quote(start, start + 1)
        self.doubtful = self.doubtful or bool(found.wishes)
        before = self._whole[max(start - 99, 0) : start].rstrip(" \t")
        if not found.wishes or not self._bare or (before and before[-1] not in _BEFORE_OBJECT):
            return self._quote(start, found.end)
        return self._calls(start, (bare_objects,))

    def _function(self, event: re.Match[str]) -> int:
        """A call as program text, without marks: the last thing in the reply, on lines of its own."""
        self.doubtful = True
        if not self._bare:
            return self._quote(event.start(), event.end())
        start = self._source.past_space(event.start())
        wishes, end = read_block(self._source, start, (functions,), (functions,))
        last = self._source.past_space(end) == len(self._whole)
        known = all(self._source.tools.known(wish.name) for wish in wishes)
        if wishes and last and known and self._take(wishes, start, end):
            return end
        return self._quote(event.start(), event.end())

    def _line(self, event: re.Match[str]) -> int:
        """A call that begins a line."""
        self.doubtful = True
        if not self._bare:
            return self._quote(event.start(), event.end())
        return self._calls(event.start(), FORMS_AT_LINES)

    def _calls(self, start: int, forms: Sequence[Form]) -> int:
        """The calls that begin at `start`, or the marks there as words."""
        wishes, end = read_block(self._source, start, forms)
        if wishes and self._take(wishes, start, end):
            return end
        if not wishes:
            self._note_broken(end)
        return self._quote(start, max(end, start + 1))

    def _note_broken(self, start: int) -> None:
        """Remember what stands behind marks and names a tool, but can't be read."""
        piece = EDGE.split(self._whole[start : start + _SHOWN], 1)[0].strip()
        if start >= self._broken_until and any(self._source.tools.known(name) for name in _WORD.findall(piece)):
            self.broken.append(f"the arguments can't be read in {piece}")
            self._broken_until = start + len(piece)

    def _take(self, wishes: list[Wish], start: int, end: int) -> bool:
        """Whether the calls are the model's own and of tools that are there: they are kept then."""
        known = [wish for wish in wishes if wish.args is not None and self._source.tools.known(wish.name)]
        if not known or quoted(self._whole, self._since, start, end):
            return False
        self.wishes += known
        for wish in wishes:
            if wish.args is None:
                self.broken.append(f"the arguments of a call of {wish.name or 'a tool'} can't be read")
            elif wish not in known:
                self.broken.append(f"there is no tool {wish.name!r}")
        self._thinking, self._since = False, end
        return True
