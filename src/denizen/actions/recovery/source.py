"""The text that is read, with a limit on the work: reading costs at most a constant per character, whatever it says."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from denizen.actions.recovery.offered import Offered

_WORK: Final = 12
"""Characters that may be looked at for each character of the text; ordinary replies need two or three."""

_SPACE: Final = re.compile(r"\s*")


class Exhausted(Exception):
    """The text is made to be expensive: what has not been read by now stays text."""


class Wish:
    """A call as it stands in the text: a tool's name, which may be none of ours, and arguments, not converted yet.

    `args` is None where they can't be read; `wording` is how it is written, from the name on.
    """

    __slots__ = ("args", "name", "wording")

    def __init__(self, name: str, args: dict[str, Any] | None, wording: str = "") -> None:
        self.name = name
        self.args = args
        self.wording = wording


@dataclass(frozen=True, slots=True)
class Reading:
    """What a form found: calls, and where the text goes on."""

    wishes: list[Wish]
    end: int


class Source:
    """A text and the tools that it may call. Whoever looks at characters pays for them."""

    def __init__(self, text: str, tools: Offered) -> None:
        self.text = text
        self.tools = tools
        self._left = _WORK * (len(text) + 1_000)
        self._known: dict[str, tuple[int, int]] = {}  # where a piece was searched from, and found

    def parameters(self, name: str) -> Iterable[str]:
        """What the tool of that name takes; nothing where there is none."""
        known = self.tools.known(name)
        return self.tools.parameters(known).get("properties") or () if known else ()

    def spend(self, characters: int) -> None:
        """Pay for looking at so many. Raises Exhausted."""
        self._left -= characters + 1
        if self._left < 0:
            raise Exhausted

    def find(self, piece: str, start: int) -> int:
        """Where `piece` comes next, or -1; asked in order, the whole text is searched once for each piece."""
        since, found = self._known.get(piece, (len(self.text) + 1, -1))
        if since <= start and (found < 0 or start <= found):
            return found
        found = self.text.find(piece, start)
        self.spend((len(self.text) if found < 0 else found) - start)
        self._known[piece] = (start, found)
        return found

    def match(self, pattern: re.Pattern[str], at: int) -> re.Match[str] | None:
        """The pattern exactly there. Patterns repeat without choices, so that they look at what they match only."""
        match = pattern.match(self.text, at)
        self.spend(match.end() - at if match else 1)
        return match

    def past_space(self, at: int) -> int:
        """The next character that isn't white space."""
        match = _SPACE.match(self.text, at)
        end = match.end() if match else at
        self.spend(end - at)
        return end
