"""The user's words and found addresses: a call made only of them leaks no private data."""

import re
from collections.abc import Mapping
from typing import Any

from denizen.config.pattern import pattern
from denizen.messages import ATTACHED, Text, ToolCall, ToolResult, UserMessage

_URL = pattern(r"https?://[^\s<>\"'`]+")
_WORD = pattern(r"\w+")
_ABOUT_THE_USER = frozenset({"the", "user", "s"})
"""Words by which an agent refers to a user who said `I`."""

_MIN_CHARS = 8
"""Letters and digits of all arguments together: fewer, such as a `13`, may be in what the user wrote by chance."""


class UserWords:
    """The addresses and words that calls may use although private data and others' text are in sight."""

    def __init__(self) -> None:
        self._urls: set[str] = set()
        self._words: set[str] = set()
        self._texts: list[str] = []

    def hear(self, message: UserMessage) -> None:
        """Take in what the user said; files and piped input that go with it are not theirs."""
        for part in message.content:
            if isinstance(part, Text) and not part.text.startswith(ATTACHED):
                self._words.update(_WORD.findall(part.text.casefold()))
                self._take(part.text)
                self._texts.append(part.text)

    def find(self, result: ToolResult) -> None:
        """Take in what a search found."""
        if result.name == "web_search":
            self._take(result.text)

    def covers(self, call: ToolCall) -> bool:
        """Whether it fetches an address that is there verbatim, or searches for the user's own words."""
        match call.name, call.args:
            case "web_fetch", {"url": str(url)}:
                return url in self._urls
            case "web_search", {"query": str(query)}:
                return self._words.issuperset(_WORD.findall(query.casefold()))
            case _:
                return False

    def hold_all(self, args: Mapping[str, Any]) -> bool:
        """Whether the user wrote each of the arguments, word for word, and together they are no coincidence."""
        values = [each for value in args.values() for each in (value if isinstance(value, list) else [value])]
        size = sum(map(str.isalnum, "".join(map(str, values))))
        return size >= _MIN_CHARS and all(map(self._hold, values))

    def _hold(self, value: object) -> bool:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        words = " ".join(str(value).casefold().split())
        if isinstance(value, bool) or not isinstance(value, str | int | float) or not words:
            return False
        whole = re.compile(rf"(?<!\w){re.escape(words)}(?!\w)")
        return any(whole.search(" ".join(text.casefold().split())) for text in self._texts)

    def have_all_words(self, sentence: str) -> bool:
        """Whether the user has said all the words of a sentence."""
        return (self._words | _ABOUT_THE_USER).issuperset(_WORD.findall(sentence.casefold()))

    def _take(self, text: str) -> None:
        for url in _URL.findall(text):
            self._urls |= {url, url.rstrip(".,;:!?)]}*_")}
