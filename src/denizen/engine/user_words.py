"""What the user said and searches found: a call made of that takes no private data along."""

import re

from denizen.messages import ATTACHED, Text, ToolCall, ToolResult, UserMessage

_URL = re.compile(r"https?://[^\s<>\"'`]+")
_WORD = re.compile(r"\w+")


class UserWords:
    """The addresses and the words that calls may use though private data and others' text are in sight."""

    def __init__(self) -> None:
        self._urls: set[str] = set()
        self._words: set[str] = set()

    def hear(self, message: UserMessage) -> None:
        """Take in what the user said; files and piped input that go with it are not theirs."""
        for part in message.content:
            if isinstance(part, Text) and not part.text.startswith(ATTACHED):
                self._words.update(_WORD.findall(part.text.casefold()))
                self._take(part.text)

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

    def _take(self, text: str) -> None:
        for url in _URL.findall(text):
            self._urls |= {url, url.rstrip(".,;:!?)]}*_")}
