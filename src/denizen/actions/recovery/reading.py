"""Going through a text once, from event to event: thoughts, quotations, calls, and the words between them."""

import re
from collections.abc import Sequence
from typing import Final

from denizen.actions.recovery import forms, marks
from denizen.actions.recovery.scanner import Scanner, WorkLimitReached, WrittenCall
from denizen.config.pattern import pattern
from denizen.text.special_tokens import scrub

_EVENTS: Final = {
    "think": "|".join(map(re.escape, marks.THOUGHTS)),
    "thought": "|".join(map(re.escape, [*marks.THOUGHTS.values(), marks.FINAL])),
    "other": marks.OTHERS,
    "element": marks.QUOTES,
    "fence": f"^{marks.FENCE}",
    "line": forms.LINES,
    "unmarked": forms.OPENERS,
    "block": f"^{marks.INDENT}>",
    "code": r"`+",
    "mark": marks.OPENS,
    "answer": marks.ANSWERS,
    "frame": marks.FRAMES,
    "object": marks.OBJECT,
    "function": rf"^[ \t]{{0,3}}\[?{marks.NAME}\(",
}
_EVENT: Final = pattern("|".join(f"(?P<{name}>{event})" for name, event in _EVENTS.items()), re.MULTILINE)
"""The next event; the group that matched last is its name."""

_MAX_SHOWN_CHARS: Final = 200
"""Characters of a call that can't be read which the model sees."""
_WORD: Final = pattern(marks.NAME)
_EDGE: Final = pattern(rf"{marks.OPENS}|{marks.CLOSES}")
_BEFORE_OBJECT: Final = frozenset(":;,.!?>)}]{*\n")
_CALL_LIKE: Final = pattern(
    r"[{\[]\s{0,99}\{?\s{0,99}[\"'](?:name|function|tool|tool_name|tool_calls|function_call)[\"']"
)
_CALL_LIST: Final = pattern(r"\s*\[\s*\{")
"""How a fence begins as xLAM and Command R have it: with a list of calls."""
_FENCE_BEGIN: Final = pattern(r"[ \t]{0,40}(`{3,}|~{3,})")
_FENCE_END: Final = pattern(r"^[ \t]{0,40}(`{3,}|~{3,})[ \t]{0,40}$", re.MULTILINE)

_MAX_PARAGRAPH_CHARS: Final = 2_000
"""Characters in which quotation marks are counted."""
_QUOTATION_MARKS: Final = "\"'`“”„‘’«»「『"
_SPAN: Final = pattern(r"`[^`]*`")
_CLOSED: Final = pattern(r"(?:(?!\n\n)[^\"“”])*[\"”]")


class Reader:
    """One way through a text; afterwards `calls`, `text` and `thoughts` are what was found.

    `broken` says of calls that aren't among the `calls` why not, in words for the model.

    What reads an event says where the text goes on, which is always after it: the text is gone through once. Calls
    without marks, which may be mere words, are read only where `bare` says so; `doubtful`: there may be some.
    """

    def __init__(self, scanner: Scanner, *, bare: bool = False) -> None:
        self.calls: list[WrittenCall] = []
        self.text: list[str] = []
        self.thoughts: list[str] = []
        self.broken: list[str] = []
        self.doubtful = False
        self._bare = bare
        self._scanner = scanner
        self._whole = scanner.text
        self._thinking = False  # in a thought that has no end mark
        self._thought = False  # a thought was there
        self._has_words = False  # other than calls
        self._since = 0  # where the words before the next call begin
        self._broken_until = 0
        self._objects_from = 0  # where objects without marks may be calls again
        self._spans: dict[int, int] | None = None
        self._only_fences: bool | None = None

    def run(self) -> None:
        """Go through the text."""
        head = marks.HEADS.match(self._whole)
        at = head.end() if head else 0
        try:
            while event := _EVENT.search(self._whole, at):
                self._add_words(at, event.start())
                at = self._read(event)
        except WorkLimitReached:
            self._thinking = False
        self._add_words(at, len(self._whole))

    def _read(self, event: re.Match[str]) -> int:
        start, end = event.span()
        match event.lastgroup:
            case "think":
                return self._think(event)
            case "thought" | "answer" as kind:
                if kind == "thought" and not self._thought:
                    # it began in the prompt: all before its end was thought, its calls too
                    self.thoughts += self.text
                    self.text.clear()
                    self.calls.clear()
                    self._thought, self._has_words, self._since = True, False, end
                self._thinking = False
                return end
            case "frame":
                return end
            case "other":
                return self._add_words(start, len(self._whole))
            case "block":
                return self._add_words(start, self._paragraph_end(end))
            case "element":  # up to its last end tag: what it holds may have brought end tags of its own
                tag = f"</{event['quote']}>" if event["quote"] else "-->"
                last = self._whole.rfind(tag)
                self._scanner.spend(len(self._whole) - max(last, end))
                return self._add_words(start, last + len(tag) if last >= end else len(self._whole))
            case "fence":
                return self._fence(event)
            case "code":
                return self._code(event)
            case "object":
                return self._object(event)
            case "function":
                return self._function(event)
            case "line":
                self.doubtful = True
                return self._read_calls(start, forms.AT_LINES) if self._bare else self._add_words(start, end)
            case _:
                return self._read_calls(start, forms.UNMARKED)

    # Words

    def _add_words(self, start: int, end: int) -> int:
        words = self._whole[start:end]
        if self._thinking:
            self.thoughts.append(words)
        else:
            self.text.append(words)
            self._has_words = self._has_words or not (words.isspace() or not words)
        return end

    def _paragraph_end(self, start: int) -> int:
        return self._scanner.first(("\n\n",), start)

    # Thoughts

    def _think(self, event: re.Match[str]) -> int:
        self._thought = True
        if self._has_words and is_quoted(self._whole, *event.span(), since=self._since):
            return self._add_words(*event.span())
        end_mark = marks.THOUGHTS[event[0]]
        close = self._scanner.find(end_mark, event.end())
        if close < 0:
            self._thinking = True
            return event.end()
        self.thoughts.append(self._whole[event.end() : close])
        self._since = close + len(end_mark)
        return self._since

    # Quotations

    def _code(self, event: re.Match[str]) -> int:
        """Past a code span, or its back-ticks where it has no end: that of a single one is in the same paragraph."""
        if self._spans is None:
            ends: dict[int, int] = {}  # by the number of back-ticks
            self._spans = {}  # where the span ends that begins at a place
            for run in reversed([*re.finditer("`+", self._whole)]):
                self._spans[run.start()] = ends.get(len(run[0]), 0)
                ends[len(run[0])] = run.end()
        group = "code" if event["code"] else "ticks"
        close = self._spans.get(event.start(group), 0)
        ends_here = close and (len(event[group]) > 1 or close <= self._paragraph_end(event.end()))
        return self._add_words(event.start(), close if ends_here else event.end())

    def _fence(self, event: re.Match[str]) -> int:
        """Past a fence: what it holds is shown, unless it says that it is a call, or the reply is nothing else."""
        body = min(self._scanner.first(("\n",), event.end()) + 1, len(self._whole))
        info = self._whole[event.end() : body]
        if "`" in info:
            return self._code(event)
        inner, end = self._fence_end(event["ticks"], body)
        says = event["label"] or marks.CALL_INFO.fullmatch(info) or _CALL_LIST.match(self._whole, body)
        if marks.INFO.fullmatch(info) and (says or self._is_all(event.start())):
            calls, stop = forms.read_block(self._scanner, body, forms.IN_MARKS, forms.IN_MARKS)
            stop = self._scanner.past_space(stop)
            if says and stop < inner and self._whole.startswith(event["ticks"], stop):  # on the last line of its list
                inner, end = stop, stop + len(event["ticks"])
            last = self._is_last(end) or self._is_all(event.start())
            if calls and last and inner <= stop and self._take(calls, event.start("ticks"), end):
                return end
        return self._add_words(event.start(), end)

    def _fence_end(self, ticks: str, body: int) -> tuple[int, int]:
        """Where the fence's last line begins and ends; without one, it ends with the thought or the text."""
        for close in _FENCE_END.finditer(self._whole, body):
            if close[1].startswith(ticks):
                self._scanner.spend(close.end() - body)
                return close.span()
        self._scanner.spend(len(self._whole) - body)
        end = self._scanner.first(marks.THOUGHTS.values(), body)
        return end, end

    def _is_all(self, start: int) -> bool:
        """Whether the reply is nothing but fences."""
        if self._only_fences is None:
            ticks, self._only_fences = "", True
            for line in self._whole[start:].split("\n"):
                mark = _FENCE_END.match(line) if ticks else _FENCE_BEGIN.match(line)
                if ticks:
                    ticks = "" if mark and mark[1].startswith(ticks) else ticks
                elif mark:
                    ticks = mark[1]
                elif line.strip():
                    self._only_fences = False
                    break
        return self._only_fences and not self._has_words

    def _is_last(self, end: int) -> bool:
        """Whether nothing but marks follows."""
        trailing = self._scanner.match(forms.TRAILING, end)
        return self._scanner.past_space(trailing.end() if trailing else end) == len(self._whole)

    # Calls

    def _object(self, event: re.Match[str]) -> int:
        """An object or a list without marks."""
        start = event.start()
        found = forms.bare_objects(self._scanner, start) if start >= self._objects_from else None
        if found is None:
            if start >= self._objects_from and not _CALL_LIKE.match(self._whole, start):
                self._objects_from = self._paragraph_end(start)
            return self._add_words(start, start + 1)
        self.doubtful = self.doubtful or bool(found.calls)
        before = self._whole[max(start - 99, 0) : start].rstrip(" \t")
        if not found.calls or not self._bare or (before and before[-1] not in _BEFORE_OBJECT):
            return self._add_words(start, found.end)
        return self._read_calls(start, (forms.bare_objects,))

    def _function(self, event: re.Match[str]) -> int:
        """A call as program text, without marks: the last thing in the reply, on lines of its own."""
        self.doubtful = True
        if self._bare:
            start = self._scanner.past_space(event.start())
            calls, end = forms.read_block(self._scanner, start, (forms.functions,), (forms.functions,))
            last = self._scanner.past_space(end) == len(self._whole)
            known = all(self._scanner.tools.find(call.name) for call in calls)
            if calls and last and known and self._take(calls, start, end):
                return end
        return self._add_words(*event.span())

    def _read_calls(self, start: int, tried: Sequence[forms.Form]) -> int:
        """The calls that begin at `start`, or the marks there as words."""
        calls, end = forms.read_block(self._scanner, start, tried)
        if calls and self._take(calls, start, end):
            return end
        piece = "" if calls else _EDGE.split(self._whole[end : end + _MAX_SHOWN_CHARS], 1)[0].strip()
        if end >= self._broken_until and any(self._scanner.tools.find(name) for name in _WORD.findall(piece)):
            self.broken.append(f"the arguments can't be read in {piece}")
            self._broken_until = end + len(piece)
        return self._add_words(start, max(end, start + 1))

    def _take(self, calls: list[WrittenCall], start: int, end: int) -> bool:
        """Keep the calls if they are the model's own and name our tools; whether they were kept."""
        known = [call for call in calls if call.args is not None and self._scanner.tools.find(call.name)]
        if not known or is_quoted(self._whole, start, end, since=self._since):
            return False
        self.calls += known
        for call in calls:
            if call.args is None:
                self.broken.append(f"the arguments of a call of {call.name or 'a tool'} can't be read")
            elif call not in known:
                self.broken.append(f"unknown tool {call.name!r}")
        self._thinking, self._since = False, end
        return True


def is_quoted(text: str, start: int, end: int, *, since: int = 0) -> bool:
    """Whether a call is in quotation marks, or indented as code, by the words before it from `since` on."""
    lead = scrub(text[max(since, start - _MAX_PARAGRAPH_CHARS) : start])
    if lead and lead[-1] in _QUOTATION_MARKS:
        return True
    line = lead.rpartition("\n")[2]
    if line.isspace() and len(line.expandtabs(4)) >= 4 and "\n\n" in lead:
        return True
    paragraph = _SPAN.sub("", lead.rpartition("\n\n")[2])
    opened = paragraph.count('"') % 2 == 1 or paragraph.count("“") > paragraph.count("”")
    return opened and _CLOSED.match(text, end, end + _MAX_PARAGRAPH_CHARS) is not None
