"""Values as models write them: JSON, Python literals, and Gemma's, with the usual slips in each."""

import re
from typing import Any, Final

from denizen.actions.recovery.scanner import Scanner
from denizen.config.pattern import pattern

MAX_DEPTH: Final = 64
"""Levels of brackets in brackets; a text with more isn't a call."""

_CLOSING: Final = {"{": "}", "[": "]", "(": ")"}
_NUMBER: Final = pattern(r"[-+]?[\d.][\w.+-]{0,400}")
_JSON_NUMBER: Final = pattern(r"-?(?:0|[1-9]\d{0,300})(?:\.\d{1,300})?(?:[eE][-+]?\d{1,3})?\Z")
_WORD: Final = pattern(r"[A-Za-z]\w{0,40}")
_KEY: Final = pattern(r"[^\W\d][\w.-]{0,127}")
_PLAIN: Final = {quote: re.compile(rf"[^\\{quote}]*") for quote in "\"'"}
_CONSTANTS: Final = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_WRAPPERS: Final = ('<|"|>', "<escape>")
_ESCAPE: Final = pattern(
    r"\\(?:u(?P<high>[dD][89abAB][\da-fA-F]{2})\\u(?P<low>[dD][c-fC-F][\da-fA-F]{2})"
    r"|u(?P<u>[\da-fA-F]{4})|x(?P<x>[\da-fA-F]{2})|U(?P<U>[\da-fA-F]{8})|(?P<letter>.))",
    re.DOTALL,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0", "\n": ""} | {
    c: c for c in "\"'\\/`"
}
_AFTER_STRING: Final = {
    ",": re.compile(rf"\s*[\"']?{_KEY.pattern}[\"']?\s*[:=]"),
    ")": re.compile(r"\s*(?:[\]),;<\n]|\Z)"),
}
"""What must follow this sign where it ends a string of a call that may have quotes of its own."""


class Unreadable(Exception):
    """Nothing here reads as a value."""


class Untyped(str):
    """A value that only its parameter's schema can give a type: the text between two tags, a bare word."""

    __slots__ = ()


class Verbatim(str):
    """A value that its writer calls a string."""

    __slots__ = ()


class Values:
    """Reads values from `at` on, which moves past them.

    `bare`: keys and words may be without quotes (Gemma). `loose`: a quote ends a string only where something may
    follow a string, as in `'sed -n '1,2p' file'`. A bracket that is open when the text ends is closed there, unless
    something is missing before it.
    """

    def __init__(self, scanner: Scanner, at: int, *, bare: bool = False, loose: bool = False) -> None:
        self.at = at
        self._scanner = scanner
        self._text = scanner.text
        self._bare = bare
        self._loose = loose
        self._depth = 0

    def value(self, inside: str = "") -> Any:
        """The value that comes next, in a bracket `inside`. Raises Unreadable."""
        here = self.here()
        if here == "{":
            return self._object()
        if here in {"[", "("}:
            return self._items(here)
        if here and here in "\"'":
            return self._string(here, inside)
        for wrapper in _WRAPPERS:
            if here == "<" and self._text.startswith(wrapper, self.at):
                return self._delimited(wrapper, whole=False)
        if self._bare and inside:
            begin, self.at = self.at, self._scanner.first((",", _CLOSING[inside]), self.at)
            word = self._text[begin : self.at].strip()
            if self.at == len(self._text) or "<|" in word or "|>" in word:
                raise Unreadable
            return _CONSTANTS[word] if word in _CONSTANTS else _number(word)
        if match := self._scanner.match(_NUMBER, self.at):
            self.at = match.end()
            return _number(match[0])
        match = self._scanner.match(_WORD, self.at)
        if not match or match[0] not in _CONSTANTS:
            raise Unreadable
        self.at = match.end()
        return _CONSTANTS[match[0]]

    def here(self) -> str:
        """The next character that isn't white space; empty at the end."""
        self.at = self._scanner.past_space(self.at)
        return self._text[self.at : self.at + 1]

    def _take(self, wanted: str) -> bool:
        """Whether the next character is `wanted`, which is then passed."""
        if self.here() != wanted:
            return False
        self.at += 1
        return True

    def key(self) -> str | None:
        """The name of a member or an argument with the `:` or `=` after it; None if none is here."""
        before = self.at
        here = self.here()
        if here and here in "\"'":
            name: str | None = self._string(here, "key")
        else:
            match = self._scanner.match(_KEY, self.at)
            name = match[0] if match else None
            self.at = match.end() if match else self.at
        if name is not None and (self._take(":") or self._take("=")):
            return name
        self.at = before
        return None

    def open(self, bracket: str) -> None:
        """Enter a bracket. Raises Unreadable if none is here, or the nesting is too deep."""
        self._depth += 1
        if self._depth > MAX_DEPTH or not self._take(bracket):
            raise Unreadable

    def more(self, bracket: str, *, first: bool) -> bool:
        """Whether the bracket has one more element; its end, or the text's, is passed."""
        at_end = not self.here() and not first
        comma = not at_end and not first and self._take(",")
        if at_end or self._take(_CLOSING[bracket]):
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
            if name is None and first and not self._bare and self.here() not in {"{", "["}:
                return self._items("{", [self.value("{")])
            if name is None:
                raise Unreadable
            members[name] = self.value("{")
            first = False
        return members

    def _items(self, bracket: str, items: list[Any] | None = None) -> list[Any]:
        """A list; or the rest of a Python set after its first item."""
        if items is None:
            items = []
            self.open(bracket)
        while self.more(bracket, first=not items):
            items.append(self.value(bracket))
        if bracket == "{" and not self._text.endswith("}", 0, self.at):
            raise Unreadable
        return items

    def _string(self, quote: str, inside: str) -> str:
        if self._text.startswith(quote * 3, self.at):
            return self._delimited(quote * 3, whole=True)
        self.at += 1
        parts: list[str] = []
        while True:
            match = self._scanner.match(_PLAIN[quote], self.at)
            parts.append(match[0] if match else "")
            self.at = match.end() if match else self.at
            here = self._text[self.at : self.at + 1]
            self.at += 1
            if not here:
                raise Unreadable
            if here == "\\":
                parts.append(self._text[self.at - 1 : self.at + 1])
                self.at += 1
            elif self._loose and not self._may_end(inside):
                parts.append(quote)
            else:
                text = "".join(parts)
                return _ESCAPE.sub(_unescaped, text) if "\\" in text else text

    def _may_end(self, inside: str) -> bool:
        """Whether something may follow a string here."""
        at = self._scanner.past_space(self.at)
        after = self._text[at : at + 1] if inside else ""
        if inside == "key":
            return after in (":", "=")
        ends = _AFTER_STRING.get(after) if inside != "[" else None
        return after in ("", ",", _CLOSING.get(inside)) and (ends is None or ends.match(self._text, at + 1) is not None)

    def _delimited(self, mark: str, *, whole: bool) -> str:
        """The text between two marks; the end of the text is one, too, unless it must be `whole`."""
        begin = self.at + len(mark)
        end = self._scanner.find(mark, begin)
        if end < 0 and whole:
            raise Unreadable
        self.at = len(self._text) if end < 0 else end + len(mark)
        return self._text[begin : self.at if end < 0 else end]


def _unescaped(escape: re.Match[str]) -> str:
    if escape["high"]:
        return chr(0x10000 + ((int(escape["high"], 16) - 0xD800) << 10) + int(escape["low"], 16) - 0xDC00)
    if digits := escape["u"] or escape["x"] or escape["U"]:
        code = int(digits, 16)
        if code > 0x10FFFF:
            return escape[0]
        return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)
    return _ESCAPES.get(escape["letter"], escape[0])


def _number(text: str) -> Any:
    """The number, or its text unchanged if it isn't valid JSON: `07` may be a month or a post code."""
    if not _JSON_NUMBER.match(text):
        return Untyped(text)
    return float(text) if {".", "e", "E"} & set(text) else int(text)


def read_object(
    scanner: Scanner, at: int, *, bare: bool = False, loose: bool = False
) -> tuple[dict[str, Any], int] | None:
    """The object that begins at `at`, and its end; None if none begins there."""
    values = Values(scanner, at, bare=bare, loose=loose)
    try:
        value = values.value()
    except Unreadable:
        return None
    return (value, values.at) if isinstance(value, dict) else None


def read_whole(text: str, scanner: Scanner) -> Any:
    """The value that a text is, and nothing else; `scanner` pays for it. Raises Unreadable."""
    scanner.spend(len(text))
    values = Values(Scanner(text, scanner.tools), 0)
    value = values.value()
    if values.here():
        raise Unreadable
    return value
