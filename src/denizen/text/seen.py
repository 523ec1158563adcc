"""What the model has read and the user didn't say: a call in the same words is a quotation (decisions, "Safety")."""

import html
import re
import unicodedata
from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

COMPARED: Final = 150
"""Characters of a call, as `_plain` has them, by which it is recognised."""

_KEPT: Final = re.compile(r"\\[nrt]|([^\W\d_]+|[$()\[\]{}])")
_CODED: Final = re.compile(r"\\u([\da-fA-F]{4})")
_UNSEEN: Final = re.compile(r"[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_WORD: Final = re.compile(r"[^\W\d_]+")
_END: Final = re.compile(r"(?:</?[^<>]{1,60}>|\[/?[A-Z_]{1,30}\]|[\s\"'`,;])++\Z")
_END_CHARS: Final = 400
_CALLED: Final = (
    r"\$\(\s*{name}(?![\w-])"
    r"|\b(?i:name|tool|tool_name|function|action|recipient_name)[\s\"'\\:=]{{1,12}}(?:functions\.)?{name}(?![\w-])"
    r"|(?:^[^\w\n]{{0,12}}|[<>\[\]|]\s?){name}\s*[({{>]"
    r"|\bfunctions\.{name}(?![\w-])"
)
"""A tool's name where a call of it is written: `$(mark …)`, `"name": "mark"`, `<function=mark>`, `mark(…)`."""
_AROUND_CHARS: Final = 400
"""Characters around it that hold its arguments, besides those that the arguments have."""
_CLOSERS: Final = re.compile(r"(?<=[)\]}])(?: [)\]}])+\Z")


class SeenText:
    """What a session's model has read before its last reply: what others wrote, and what the user typed.

    Texts are searched when a call is compared with them: each once for each word that calls begin with, so that a turn
    costs what was added. White space, numbers, quotation marks, bullets and escapes don't matter, and of a long call
    the beginning counts.
    """

    def __init__(self) -> None:
        self._others = _Texts()
        self._players = _Texts()
        self._typed = _Texts()

    def observe(self, text: str, *, typed: bool = False, player: bool = False) -> None:
        """Take in one more text; `typed`: the user's own words; `player`: what another player of a world said."""
        (self._typed if typed else self._others).add(text)
        if player:
            self._players.add(text)

    def quotes(self, call: str, *, players: bool = False) -> bool:
        """Whether a call, as the reply has it from its `$(` or its tool's name on, repeats what others wrote.

        `players`: it is mere words, which count only where another player said them.
        """
        call = _decoded(call)
        # Without the marks at its end, with one closing bracket of several
        inner = call[:-_END_CHARS] + _END.sub("", call[-_END_CHARS:])
        word, wording = _WORD.search(call), _CLOSERS.sub("", _plain(inner).rstrip())[:COMPARED]
        others = self._players if players else self._others
        return bool(word) and others.hold(word[0], wording) and not self._typed.hold(word[0], wording)

    def quotes_call(self, names: Collection[str], args: Mapping[str, Any]) -> bool:
        """Whether others wrote a call of a tool of these names with these arguments, in whatever syntax."""
        values = [*_values(args)]
        return self._others.hold_call(names, values) and not self._typed.hold_call(names, values)


class _Texts:
    def __init__(self) -> None:
        self._texts: list[str] = []
        self._called: dict[str, tuple[int, list[tuple[str, int]]]] = {}  # by name: the texts searched, and where
        self._found: dict[str, tuple[int, list[str]]] = {}  # by first word: the texts searched, what goes on from it

    def add(self, text: str) -> None:
        self._texts.append(_decoded(text))

    def hold(self, word: str, wording: str) -> bool:
        searched, found = self._found.get(word, (0, []))
        for text in self._texts[searched:]:
            for each in _beginning_with(word, _plain(text)) if word in text else ():
                insort(found, each)
        self._found[word] = len(self._texts), found
        at = bisect_left(found, wording)
        return at < len(found) and found[at].startswith(wording)

    def hold_call(self, names: Collection[str], values: Collection[str]) -> bool:
        numbers = [re.compile(rf"(?<!\w){re.escape(value)}(?!\w)") for value in values if not _WORD.search(value)]
        wordings = [_plain(value)[:COMPARED].rstrip() for value in values if _WORD.search(value)]
        reach = _AROUND_CHARS + 4 * sum(min(len(value), 2 * COMPARED) for value in values)
        for name in names:
            looked_at, end = "", 0
            for text, at in self._calls_of(name):
                if text is looked_at and at < end:
                    continue
                looked_at, end = text, at + reach
                around = text[max(at - reach, 0) : end + reach]  # wide enough for the calls up to `end`
                if all(each.search(around) for each in numbers) and _contains(around, wordings):
                    return True
        return False

    def _calls_of(self, name: str) -> list[tuple[str, int]]:
        searched, places = self._called.get(name, (0, []))
        pattern = re.compile(_CALLED.format(name=re.escape(name)), re.MULTILINE)
        for text in self._texts[searched:]:
            if name in text:
                places += [(text, found.start()) for found in pattern.finditer(text)]
        self._called[name] = len(self._texts), places
        return places


def _contains(text: str, wordings: Collection[str]) -> bool:
    """Whether a text has all these words, one after the other; the first ones are looked for first, which is quick."""
    if not all(each.split(maxsplit=1)[0] in text for each in wordings):
        return False
    plain = _plain(text)
    return all(each in plain for each in wordings)


def _values(value: object) -> Iterator[str]:
    """The texts and numbers of which arguments are made."""
    match value:
        case Mapping() | list():
            for each in value.values() if isinstance(value, Mapping) else value:
                yield from _values(each)
        case str() | int() | float() if not isinstance(value, bool):
            yield str(value)
        case _:
            pass


def _beginning_with(word: str, plain: str) -> Iterator[str]:
    """The text from each place where the word is, and from the `$(` before it where it is a command's name."""
    at = plain.find(f" {word} ")
    while at >= 0:
        yield plain[at : at + COMPARED]
        if plain.endswith(" $ (", 0, at):
            yield plain[at - 4 : at - 4 + COMPARED]
        at = plain.find(f" {word} ", at + 1)


def _decoded(text: str) -> str:
    r"""A text with escapes decoded and invisible characters removed: `$(`, not `&#36;(`, `\u0024(` or `＄（`."""
    text = _CODED.sub(lambda sign: chr(int(sign[1], 16)), html.unescape(text))
    return unicodedata.normalize("NFKC", _UNSEEN.sub("", text))


def _plain(text: str) -> str:
    """The words and brackets of a text, each between blanks."""
    return f" {' '.join(filter(None, _KEPT.findall(text)))} "
