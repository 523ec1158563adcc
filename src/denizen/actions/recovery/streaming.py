"""Shows a reply while it streams: the words before a call begins."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from denizen.actions.recovery.forms import NAME_KEYS
from denizen.actions.recovery.marks import CALL_INFO, CALLS, FENCE, INDENT, INFO, LABEL, THOUGHTS
from denizen.config.pattern import pattern

_MARK: Final = r"<(?:[|｜][\w▁./:\"-]|[\w▁./:\"-]{1,48}[|｜])"
_OPENING: Final = "|".join(
    (
        _MARK,
        rf"<(?:[\w-]{{1,20}}:)?(?:(?i:{CALLS})>|(?:function|invoke)(?:[\s=]|name))",
        r"<start_function_call>|<call:|\]<\]minimax|｜DSML｜|\[TOOL_|\[BEGIN FINAL RESPONSE\]|\bto=functions\.",
        r">>>[^\W\d][\w.-]{0,127}\n",
        r"<(?:SPECIAL_11|start_of_turn|seed:bos|role)>",
        *map(re.escape, (*THOUGHTS, *THOUGHTS.values())),
    )
)
_BEGUN: Final = (
    r"<[^\s<>]{0,60}|>{1,2}|>>>[\w.-]{0,127}|\](?:<(?:\]\w{0,7})?)?|\[[A-Z_/ ]{0,26}|◁[/a-z]{0,6}|｜[A-Z]{0,4}"
)
"""The end of a text that more text may turn into an opening."""
_ANY: Final = r"[<>\[\]`\n=｜◁]"
"""Found in every piece in which an opening or a line begins, or goes on."""

_HEADS: Final = (
    *("to=functions.", "analysisto=functions.", "commentaryto=functions.", "to=self<|", "to=user<|", "assistant:"),
    *("assistant<|", "]~b]", "functools[", "functioncall<", "function<", '{"tool_calls":['),
)
"""Beginnings of lines that are a call, or belong to one, without white space and with one kind of quotes."""
_HEADS_BY_NAME: Final = (
    *("{}(", "[{}(", "{}{{", "Action:{}", "call:{}", "tool_call:{}", "tool_code:{}", "tool_use:{}", "TOOL_CALL:{}"),
    *("TOOL:{}", *(f'{bracket}"{key}":"{{}}"' for key in NAME_KEYS for bracket in ("{{", "[{{"))),
)
_MAX_HEAD_CHARS: Final = 200
_MAX_BLANK_CHARS: Final = 400
"""Characters of white space that may wait for what comes after them."""

_FENCE: Final = pattern(rf"{FENCE}(?P<info>[^`\n]*\n)")
_FENCE_BEGUN: Final = pattern(rf"{INDENT}(?:{LABEL}\s{{0,9}})?(?:`{{1,2}}|~{{1,2}}|(?:`{{3,}}|~{{3,}})[^`\n]*)?\Z")
_FIRST_LINE: Final = pattern(r"(?:[ \t]*#[^\n]*\n|[^\w\n]*\n)*[^\n]{0,400}")
"""The lines of a fence up to the first with a word, comments aside."""
_IN_FENCE_BEGUN: Final = pattern(r"<[^\s<>]{0,60}\Z|｜[A-Z]{0,4}\Z|^[ \t]*[`~]*[ \t]*\Z", re.MULTILINE)
_SPECIAL: Final = pattern(rf"{_MARK}|｜DSML｜")

_STRIPPED: Final = ("analysis", "commentary", "assistantanalysis", "assistantcommentary")
"""Harmony's channels for thoughts, without their special tokens."""


class Openings:
    """What opens a call of these tools; made once for all replies.

    A format of its own adds to it: `opening` and `begun` are patterns of what opens its calls, whole and cut off, each
    with a character of `letters`; a fence whose first line matches `fenced` holds some.
    """

    def __init__(
        self, names: Sequence[str], *, opening: str = "", begun: str = "", letters: str = "", fenced: str = "(?!)"
    ) -> None:
        alternatives = "|".join(map(re.escape, names)) or "(?!)"
        heads = [*_HEADS, *(head.format(name) for head in _HEADS_BY_NAME for name in names)]
        self.heads = tuple(sorted(heads))
        self.opening = re.compile("|".join(filter(None, (rf"(?<!`)(?:{_OPENING})", opening))), re.MULTILINE)
        self.begun = re.compile(rf"(?:{'|'.join(filter(None, (_BEGUN, begun)))})\Z", re.MULTILINE)
        self.any = re.compile(f"{_ANY}|[{letters}]" if letters else _ANY)
        self.named = re.compile(rf"[\"'](?:{alternatives})[\"']|(?<![\w.])(?:{alternatives})\(")
        self.fenced = re.compile(fenced, re.MULTILINE)

    def may_open(self, line: str) -> bool:
        """Whether more of the line, which is without white space, may make it one that opens a call."""
        at = bisect_left(self.heads, line)
        return at < len(self.heads) and self.heads[at].startswith(line)


@lru_cache(maxsize=16)
def openings_of(tools: tuple[str, ...]) -> Openings:
    """What opens a call of the tools with these names."""
    return Openings(tools)


class HoldCalls:
    """Shows the words of one reply as they come, up to what opens a call; the rest waits until the reply is whole.

    Ordinary fences are shown as they come. A thought at the start of the reply isn't shown.
    """

    def __init__(self, openings: Openings) -> None:
        self._openings = openings
        self._last = ""  # the last character that was shown
        self.held = ""  # may become an opening
        self._over = False  # a call was opened
        self._plain = False  # in the middle of a line of words
        self._thought = ""  # the mark that ends the thought
        self._thinks = False  # the reply begins with one
        self._fence: re.Pattern[str] | None = None  # the line that ends the fence

    def feed(self, piece: str) -> str:
        """What can be shown now: the very same object where that is all of the piece."""
        if self._over:
            return ""
        if self._plain and not self._openings.any.search(piece):
            self._last = piece[-1:]
            return piece
        text = self.held + piece
        if not self._last:
            text = self._past_thought(text)
        before = len(self._last)
        text = self._last + text
        end = self._end_of_words(text, before)
        self.held, words = text[end:], text[before:end]
        self._last = words[-1:] or self._last
        self._plain = bool(words) and not (self.held or self._fence or self._last == "\n")
        return piece if words == piece else words

    def _past_thought(self, text: str) -> str:
        """The text after the thoughts that it begins with; a mark that is cut off is kept."""
        while True:
            if self._thought:
                _, mark, after = text.partition(self._thought)
                if not mark:
                    return text[-len(self._thought) :]
                text, self._thought, self._thinks = after, "", True
            begin = text.lstrip()
            text = begin if self._thinks else text
            mark = next((mark for mark in (*THOUGHTS, *_STRIPPED) if begin.startswith(mark)), "")
            if mark in _STRIPPED and begin[len(mark) : len(mark) + 1] in {"", " ", "\t"}:
                mark = ""
            if not mark:
                return text
            self._thought = THOUGHTS.get(mark, "assistantfinal")
            text = begin[len(mark) :]

    def _end_of_words(self, text: str, at: int) -> int:
        """How far the text from `at` on can be shown."""
        if self._thought:
            return at
        waits = not self._last and len(text) < _MAX_BLANK_CHARS
        if waits and any(mark.startswith(text.strip()) for mark in (*THOUGHTS, *_STRIPPED)):
            return at
        opening = None
        while at < len(text):
            if self._fence:
                close = self._fence.search(text, at)
                special = _SPECIAL.search(text, at, close.end() if close else len(text))
                if special:
                    self._over = True
                    return special.start()
                if close is None:
                    begun = _IN_FENCE_BEGUN.search(text, at)
                    return begun.start() if begun else len(text)
                at, self._fence = close.end(), None
                continue
            if text[at - 1 : at] in {"", "\n"}:
                begin = self._begin_line(text, at)
                if begin < 0:
                    return at
                at = begin
                if self._fence:
                    continue
            if opening is None or opening.start() < at:
                opening = self._openings.opening.search(text, at)
            newline = text.find("\n", at)
            if opening and (newline < 0 or opening.start() < newline):
                self._over = True
                return opening.start()
            if newline < 0:
                begun = self._openings.begun.search(text, at)
                return begun.start() if begun else len(text)
            at = newline + 1
        return at

    def _begin_line(self, text: str, at: int) -> int:
        """Where the words of a line that begins at `at` go on; -1: they wait there."""
        fence = _FENCE.match(text, at)
        if fence:
            first = _FIRST_LINE.match(text, fence.end())
            end = first.end() if first else fence.end()
            calls = fence["label"] or CALL_INFO.fullmatch(fence["info"])
            calls = calls or (INFO.fullmatch(fence["info"]) and self._openings.named.search(text, fence.end(), end))
            if calls or self._openings.fenced.search(text, fence.end(), end):
                self._over = True
                return -1
            if end == len(text) and end - fence.end() < _MAX_HEAD_CHARS:
                return -1
            self._fence = re.compile(
                rf"^[ \t]{{0,40}}{fence['ticks'][0]}{{{len(fence['ticks'])},}}[ \t]*\n", re.MULTILINE
            )
            return fence.end()
        line = "".join(text[at : at + _MAX_HEAD_CHARS].split()).replace("'", '"')
        if line.startswith(self._openings.heads):
            self._over = True
            return -1
        blank = not line and "\n" in text[at:]
        cut_off = len(text) - at < _MAX_HEAD_CHARS and not blank
        return -1 if cut_off and (self._openings.may_open(line) or _FENCE_BEGUN.match(text, at)) else at
