"""What of a reply with commands is shown while it streams."""

import re
from typing import Final

from denizen.actions.recovery.streaming import HoldCalls, Openings
from denizen.ports import Toolset

_INDENT: Final = r"^[ \t]{0,40}(?:(?:[-*+]|\d{1,3}[.)])[ \t]{1,9})?"
_BEFORE: Final = r"(?<![A-Za-z0-9_\"'`=\\$@])"
_DONE: Final = re.compile(r"\s*\$\(\s*done(?=[\s)])\s*")
_MAYBE_DONE: Final = re.compile(r"\s*(?:\$(?:\(\s*(?:d(?:o(?:ne?)?)?)?)?)?\Z")
_PIECE: Final = re.compile(
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


def openings_of(tools: Toolset) -> Openings:
    """What opens a command, besides what opens a native call."""
    return Openings(
        [tool.name for tool in tools],
        opening=rf"{_BEFORE}\$\(\s*[a-z]|^[ \t]*\[\d{{1,3}}\][ \t]*\$[ \t]|{_INDENT}`{{1,2}}\s*\$\(",
        begun=rf"{_BEFORE}\$(?:\(\s*)?|^[ \t]*\[(?:\d{{1,3}}(?:\][ \t]*\$?)?)?|{_INDENT}`{{1,2}}\s*\$?|^[ \t]+",
        letters="$",
        fenced=r"^\s*\$\(",
    )


class HoldCommands:
    """Shows the words up to the first command, or the answer, where the reply begins with `$(done ANSWER)`."""

    def __init__(self, openings: Openings) -> None:
        self._words = HoldCalls(openings)
        self._feed = self._begin
        self._held: list[str] = []
        self._size = self._wait = 0  # how much is held, and how much must be there until it is looked at again
        self._depth = 0

    def feed(self, piece: str) -> str:
        """What can be shown now."""
        if not self._wait:
            return self._feed(piece)
        self._held.append(piece)
        self._size += len(piece)
        if self._size < self._wait:
            return ""
        text = "".join(self._held)
        self._held.clear()
        self._wait = 0
        return self._feed(text)

    def _begin(self, piece: str) -> str:
        done = _DONE.match(piece)
        if done and done.end() < len(piece):
            self._feed = _nothing if piece[done.end()] in "\"'$" else self._answer
            return self._feed(piece[done.end() :])
        if done or _MAYBE_DONE.match(piece):
            self._hold(piece)
            return ""
        self._feed = self._words.feed
        return self._feed(piece)

    def _answer(self, piece: str) -> str:
        """Up to the parenthesis that closes the command, or to what isn't meant as it is written."""
        at = 0
        while found := _PIECE.match(piece, at):
            if found["stop"]:
                break
            if found["paren"]:
                self._depth += 1 if found["paren"] == "(" else -1
                if self._depth < 0:
                    break
            at = found.end()
        self._hold(piece[at:])
        if self._depth < 0 or piece.startswith("\\", at):
            self._feed = _nothing
        return piece[:at]

    def _hold(self, text: str) -> None:
        """Look at it again when it has grown by a part, so that the work stays linear."""
        if text:
            self._held, self._size = [text], len(text)
            self._wait = self._size + self._size // 16


def _nothing(piece: str) -> str:
    return ""
