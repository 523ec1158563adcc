"""Values as models write them: JSON, Python literals, and Gemma's, with the slips that are usual in each."""

import re
from typing import Any, Final

from denizen.actions.recovery.source import Source

DEPTH: Final = 64
"""Levels of brackets in brackets; a text with more is no call."""

_CLOSING: Final = {"{": "}", "[": "]", "(": ")"}
_NUMBER: Final = re.compile(r"[-+]?[\d.][\w.+-]{0,400}")
_JSON_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d{0,300})(?:\.\d{1,300})?(?:[eE][-+]?\d{1,3})?\Z")
_WORD: Final = re.compile(r"[A-Za-z]\w{0,40}")
_KEY: Final = re.compile(r"[^\W\d][\w.-]{0,127}")
_PLAIN: Final = {quote: re.compile(rf"[^\\{quote}]*") for quote in "\"'"}
_WORDS: Final = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_WRAPPERS: Final = ('<|"|>', "<escape>")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0", "\n": ""}
_LOW: Final = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_ENDS: Final = {
    ",": re.compile(rf"\s*[\"']?{_KEY.pattern}[\"']?\s*[:=]"),
    ")": re.compile(r"\s*(?:[\]),;<\n]|\Z)"),
}
"""What follows the sign that ends a string of a call, where quotes in it may be its own."""
_HEX: Final = re.compile(r"[0-9a-fA-F]+")


class Unreadable(Exception):
    """No value stands there."""


class Written(str):
    """A value that only its parameter's schema can give a type: the text between two tags, a bare word."""

    __slots__ = ()


class Verbatim(str):
    """A value that its writer calls a string."""

    __slots__ = ()


class Values:
    """Reads values from `at` on; `at` is then behind them.

    `bare`: keys and words may stand without quotes (Gemma). `loose`: a quote ends a string only where something may
    follow a string, as in `'sed -n '1,2p' file'`. A bracket that is open when the text ends is closed there, unless
    something is missing before it.
    """

    def __init__(self, source: Source, at: int, *, bare: bool = False, loose: bool = False) -> None:
        self.at = at
        self._source = source
        self._text = source.text
        self._bare = bare
        self._loose = loose
        self._depth = 0

    def value(self, inside: str = "") -> Any:
        """The value that comes next, in a bracket `inside`. Raises Unreadable."""
        here = self.here()
        if here == "{":
            return self._object()
        if here in {"[", "("}:
            return self._list(here)
        if here and here in "\"'":
            return self._string(here, inside)
        for wrapper in _WRAPPERS:
            if here == "<" and self._text.startswith(wrapper, self.at):
                return self._wrapped(wrapper)
        return self._scalar(inside)

    def here(self) -> str:
        """The next character that isn't white space; empty at the end."""
        self.at = self._source.past_space(self.at)
        return self._text[self.at : self.at + 1]

    def take(self, wanted: str) -> bool:
        """Whether the next character is `wanted`, which is then passed."""
        if self.here() != wanted:
            return False
        self.at += 1
        return True

    def key(self) -> str | None:
        """The name of a member or an argument with the `:` or `=` behind it; None where there is none."""
        before = self.at
        here = self.here()
        if here and here in "\"'":
            name: str | None = self._string(here, "key")
        else:
            match = self._source.match(_KEY, self.at)
            name = match[0] if match else None
            self.at = match.end() if match else self.at
        if name is not None and (self.take(":") or self.take("=")):
            return name
        self.at = before
        return None

    def open(self, bracket: str) -> None:
        """Go into a bracket. Raises Unreadable where it isn't one, or too deep."""
        self._depth += 1
        if self._depth > DEPTH or not self.take(bracket):
            raise Unreadable

    def more(self, bracket: str, *, first: bool) -> bool:
        """Whether the bracket has one more element; its end, or the text's, is passed."""
        if not self.here() and not first:
            self._depth -= 1
            return False
        comma = not first and self.take(",")
        if self.take(_CLOSING[bracket]):
            self._depth -= 1
            return False
        if not first and not comma and bracket != "(":
            raise Unreadable
        return True

    def _object(self) -> Any:
        members: dict[str, Any] = {}
        self.open("{")
        first = True
        while self.more("{", first=first):
            name = self.key()
            if name is None and not members and not self._bare and self.here() not in {"{", "["}:
                return self._set()
            if name is None:
                raise Unreadable
            members[name] = self.value("{")
            first = False
        return members

    def _set(self) -> list[Any]:
        """The rest of Python's `{1, 2}`."""
        items = [self.value("{")]
        while self.more("{", first=False):
            items.append(self.value("{"))
        if not self._text.endswith("}", 0, self.at):
            raise Unreadable
        return items

    def _list(self, bracket: str) -> list[Any]:
        items: list[Any] = []
        self.open(bracket)
        while self.more(bracket, first=not items):
            items.append(self.value(bracket))
        return items

    def _string(self, quote: str, inside: str) -> str:
        if self._text.startswith(quote * 3, self.at):
            return self._tripled(quote)
        self.at += 1
        parts: list[str] = []
        while True:
            match = self._source.match(_PLAIN[quote], self.at)
            parts.append(match[0] if match else "")
            self.at = match.end() if match else self.at
            here = self._text[self.at : self.at + 1]
            self.at += 1
            if not here:
                raise Unreadable
            if here == "\\":
                parts.append(self._escape())
            elif not self._loose or self._may_end(inside):
                return "".join(parts)
            else:
                parts.append(quote)

    def _may_end(self, inside: str) -> bool:
        """Whether something may follow a string here."""
        at = self._source.past_space(self.at)
        after = self._text[at : at + 1] if inside else ""
        if inside == "key":
            return after in (":", "=")
        ends = _ENDS.get(after) if inside != "[" else None
        return after in ("", ",", _CLOSING.get(inside)) and (ends is None or ends.match(self._text, at + 1) is not None)

    def _tripled(self, quote: str) -> str:
        begin = self.at + 3
        end = self._source.find(quote * 3, begin)
        if end < 0:
            raise Unreadable
        self.at = end + 3
        return self._text[begin:end]

    def _escape(self) -> str:
        letter = self._text[self.at : self.at + 1]
        self.at += 1
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        if letter in {"u", "x", "U"}:
            return self._code({"x": 2, "u": 4, "U": 8}[letter], letter)
        return letter if letter in "\"'\\/`" else "\\" + letter

    def _code(self, digits: int, letter: str) -> str:
        number = self._text[self.at : self.at + digits]
        if len(number) < digits or not _HEX.fullmatch(number) or int(number, 16) > 0x10FFFF:
            return "\\" + letter
        self.at += digits
        code = int(number, 16)
        if not 0xD800 <= code < 0xE000:
            return chr(code)
        low = self._source.match(_LOW, self.at)
        if code >= 0xDC00 or low is None:
            return "\ufffd"
        self.at = low.end()
        return chr(0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00)

    def _wrapped(self, wrapper: str) -> str:
        begin = self.at + len(wrapper)
        end = self._source.find(wrapper, begin)
        self.at = len(self._text) if end < 0 else end + len(wrapper)
        return self._text[begin : self.at if end < 0 else end]

    def _scalar(self, inside: str) -> Any:
        if self._bare and inside:
            return self._bare_word(inside)
        match = self._source.match(_NUMBER, self.at)
        if match:
            self.at = match.end()
            return number(match[0])
        match = self._source.match(_WORD, self.at)
        if not match or match[0] not in _WORDS:
            raise Unreadable
        self.at = match.end()
        return _WORDS[match[0]]

    def _bare_word(self, inside: str) -> Any:
        begin = self.at
        ends = [end for end in (self._source.find(stop, begin) for stop in (",", _CLOSING[inside])) if end >= 0]
        if not ends:
            raise Unreadable
        self.at = min(ends)
        word = self._text[begin : self.at].strip()
        if "<|" in word or "|>" in word:
            raise Unreadable
        return _WORDS[word] if word in _WORDS else number(word)


def number(text: str) -> Any:
    """The number, or the text as it is written where it is none of JSON's: `07` may be a month or a post code."""
    if not _JSON_NUMBER.match(text):
        return Written(text)
    return float(text) if {".", "e", "E"} & set(text) else int(text)


def read_whole(text: str, source: Source) -> Any:
    """The value that a text is, and nothing else. Raises Unreadable."""
    part = Source(text, source.tools)
    source.spend(len(text))
    values = Values(part, 0)
    value = values.value()
    if values.here():
        raise Unreadable
    return value
