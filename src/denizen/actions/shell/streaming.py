"""Shows a reply with commands while it streams: the prose, without the commands."""

import re
from functools import lru_cache
from typing import Final

from denizen.actions.recovery.streaming import HoldCalls, Openings
from denizen.config.pattern import pattern

_INDENT: Final = r"^[ \t]{0,40}(?:(?:[-*+]|\d{1,3}[.)])[ \t]{1,9})?"
_BEFORE: Final = r"(?<![A-Za-z0-9_\"'`=\\$@])"
_MAX_HELD_CHARS: Final = 2_000
"""Characters of an answer that may wait for a quote to be closed; with more, the rest waits for the end."""
_DONE: Final = pattern(r"\s*\$\(\s*done(?=[\s)])\s{0,400}")
_MAYBE_DONE: Final = pattern(r"\s{0,400}(?:\$(?:\(\s{0,400}(?:d(?:o(?:ne?)?)?)?)?)?\Z")
_PIECE: Final = pattern(
    r"""
      "(?:[^"\\\n$]|\$(?!\())*+"(?=.)
    | `[^`\n]++`
    | (?P<stop>\\|["`](?=[^\n]*+\Z)|\)\Z)
    | (?P<paren>[()])
    | [^\\"`()]++
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


@lru_cache(maxsize=16)
def _openings_of(tools: tuple[str, ...]) -> Openings:
    """Openings of commands and of native calls."""
    return Openings(
        tools,
        opening=rf"{_BEFORE}\$\((?:\s*[a-z]|\s{{400}})|^[ \t]*\[\d{{1,3}}\][ \t]*\$[ \t]|{_INDENT}`{{1,2}}\s*\$\(",
        begun=rf"{_BEFORE}\$(?:\(\s{{0,400}})?|^[ \t]*\[(?:\d{{1,3}}(?:\][ \t]*\$?)?)?|"
        rf"{_INDENT}`{{1,2}}\s{{0,400}}\$?|^[ \t]{{1,400}}",
        letters="$",
        fenced=r"^\s*\$\(",
    )


class HoldCommands:
    """Shows the words up to the first command, or the answer, where the reply begins with `$(done ANSWER)`."""

    def __init__(self, tools: tuple[str, ...]) -> None:
        self._feed = self._begin
        self._words = HoldCalls(_openings_of(tools))
        self._held = ""
        self._depth = 0

    def feed(self, piece: str) -> str:
        """What can be shown now."""
        if self._held:
            piece, self._held = self._held + piece, ""
        return self._feed(piece)

    def _begin(self, piece: str) -> str:
        done = _DONE.match(piece)
        if done and done.end() < len(piece):
            self._feed = _nothing if piece[done.end()] in "\"'$" else self._answer
            return self._feed(piece[done.end() :])
        if done or _MAYBE_DONE.match(piece):
            self._held = piece
            return ""
        self._feed = self._words.feed
        return self._feed(piece)

    def _answer(self, piece: str) -> str:
        """Up to the parenthesis that closes the command, or to what isn't meant as it is written."""
        at = 0
        while (found := _PIECE.match(piece, at)) and not found["stop"]:
            self._depth += {"(": 1, ")": -1}.get(found["paren"] or "", 0)
            if self._depth < 0:
                break
            at = found.end()
        self._held = piece[at:]
        if self._depth < 0 or piece.startswith("\\", at) or len(self._held) > _MAX_HELD_CHARS:
            self._feed = _nothing
        return piece[:at]


def _nothing(piece: str) -> str:
    return ""
