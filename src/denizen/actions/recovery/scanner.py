"""A text with the tools that it may call, read with a limit on the work."""

import html
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

PREFIXES: Final = ("functions.", "function.", "tools.", "default_api.")
"""Namespaces that models put before a tool's name."""

_WORK: Final = 12
"""Characters that may be looked at for each character of the text; ordinary replies need two or three."""

_SPACE: Final = re.compile(r"\s*")


class WorkLimitReached(Exception):
    """The text is made to be expensive: what has not been read by now stays text."""


class _Schema(Protocol):
    @property
    def parameters(self) -> dict[str, Any]: ...


class _Tool(Protocol):
    name: str

    @property
    def schema(self) -> _Schema: ...


Tools = Iterable[_Tool | Mapping[str, Any]]


class OfferedTools:
    """The tools that a text may call: by name, the JSON schemas of their arguments."""

    def __init__(self, tools: Tools) -> None:
        self.schemas: dict[str, dict[str, Any]] = {}
        for tool in tools:
            if isinstance(tool, Mapping):
                inner = tool.get("function")
                described = inner if isinstance(inner, Mapping) else tool
                name, schema = described.get("name"), described.get("parameters")
            else:
                name, schema = tool.name, tool.schema.parameters
            if isinstance(name, str) and name:
                self.schemas[name] = schema if isinstance(schema, dict) else {}

    def find(self, written: str) -> str:
        """The name of the tool that is meant by `written`; empty if none is."""
        name = written.strip().partition("<|")[0]
        candidates = [name, html.unescape(name), name.removesuffix(".call")]
        candidates += [name.removeprefix(prefix) for prefix in PREFIXES]
        return next((candidate for candidate in candidates if candidate in self.schemas), "")

    def parameters(self, written: str) -> Iterable[str]:
        """The names of the tool's parameters; empty for an unknown tool."""
        return self.schemas.get(self.find(written), {}).get("properties") or ()


class WrittenCall:
    """A call as written: a tool's name, which may be unknown, and its unconverted arguments.

    `args` is None if they can't be read; `wording` is the call's text from the name on.
    """

    __slots__ = ("args", "name", "wording")

    def __init__(self, name: str, args: dict[str, Any] | None, wording: str = "") -> None:
        self.name = name
        self.args = args
        self.wording = wording


class Found(NamedTuple):
    """Calls that were found at a place, and where the text goes on."""

    calls: list[WrittenCall]
    end: int


class Scanner:
    """Searches a text; every character that is looked at counts against a limit, so the work is linear."""

    def __init__(self, text: str, tools: OfferedTools) -> None:
        self.text = text
        self.tools = tools
        self._left = _WORK * (len(text) + 1_000)
        self._searched: dict[str, tuple[int, int]] = {}  # where a piece was searched from, and found

    def spend(self, characters: int) -> None:
        """Count the characters. Raises WorkLimitReached."""
        self._left -= characters + 1
        if self._left < 0:
            raise WorkLimitReached

    def find(self, piece: str, start: int) -> int:
        """Where `piece` comes next, or -1; asked in order, the whole text is searched once for each piece."""
        since, found = self._searched.get(piece, (len(self.text) + 1, -1))
        if since <= start and (found < 0 or start <= found):
            return found
        found = self.text.find(piece, start)
        self.spend((len(self.text) if found < 0 else found) - start)
        self._searched[piece] = (start, found)
        return found

    def first(self, pieces: Iterable[str], start: int) -> int:
        """Where the first of the pieces comes next; the end of the text if none does."""
        return min([at for at in (self.find(piece, start) for piece in pieces) if at >= 0], default=len(self.text))

    def match(self, pattern: re.Pattern[str], at: int) -> re.Match[str] | None:
        """The pattern exactly there. Patterns repeat without choices, so that they look at what they match only."""
        match = pattern.match(self.text, at)
        self.spend(match.end() - at if match else 1)
        return match

    def past(self, pattern: re.Pattern[str], at: int) -> int:
        """The end of the pattern's next match, or of the text."""
        match = pattern.search(self.text, at)
        end = match.end() if match else len(self.text)
        self.spend(end - at)
        return end

    def past_space(self, at: int) -> int:
        """The next character that isn't white space."""
        match = _SPACE.match(self.text, at)
        end = match.end() if match else at
        self.spend(end - at)
        return end
