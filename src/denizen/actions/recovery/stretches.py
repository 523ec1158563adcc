"""Stretches of a reply that are taken in their own way while it streams: code in fences, thoughts, and calls."""

import re
from collections.abc import Callable
from typing import Final, Protocol

from denizen.actions.recovery.suspects import TOKEN, TOKEN_BEGUN

_IN_FENCE: Final = re.compile("[\n<｜]")
"""Where something may be in a fence, but at the beginning of a line."""
_LONGEST_LINE: Final = 99
"""Characters of a line that may end a fence."""

Quick = Callable[[str], object] | None
"""Finds nothing in a piece that may be shown as it is; None: the next one must be looked at, whatever it holds."""


class Stretch(Protocol):
    """Takes the pieces of a reply from its own beginning to its end."""

    quick: Quick

    def take(self, piece: str) -> tuple[str, str | None]:
        """What can be shown, and what follows when the stretch is over; None: it goes on."""
        ...


class Silence:
    """The rest of the reply, of which nothing is shown."""

    quick: Quick = None

    def take(self, piece: str) -> tuple[str, str | None]:
        """Nothing."""
        return "", None


class Thought:
    """Up to its end mark, and to the words behind it; nothing of it is shown."""

    quick: Quick = None

    def __init__(self, end: str) -> None:
        self._end = end
        self._tail = ""  # where the end mark may have begun
        self._over = False

    def take(self, piece: str) -> tuple[str, str | None]:
        """Nothing, and the words behind it."""
        if not self._over:
            text = self._tail + piece
            _, mark, piece = text.partition(self._end)
            if not mark:
                self._tail = text[1 - len(self._end) :]
                return "", None
            self._over = True
        return "", piece.lstrip() or None


class Fence:
    """What stands behind the first line of fenced code, and its last line: all of it is shown.

    Behind a special token, as servers leave it at the end of a reply, nothing is.
    """

    def __init__(self, ticks: str) -> None:
        self.close = re.compile(rf"^[ \t]{{0,40}}{ticks[0]}{{{len(ticks)},}}[ \t]{{0,40}}\n", re.MULTILINE)
        self.quick: Quick = None
        self._line = ""  # the beginning of the last line, which is shown already
        self._held = ""  # what may become a special token
        self._broken = False  # by one

    def take(self, piece: str) -> tuple[str, str | None]:
        """The code as it comes."""
        if self._broken:
            return "", None
        piece, self._held = self._held + piece, ""
        text, before = self._line + piece, len(self._line)
        close = self.close.search(text)
        end = close.end() if close else len(text)
        special = "<" in piece or "｜" in piece
        if special and (token := TOKEN.search(text, before, end)):
            self._broken, self.quick = True, None
            return text[before : token.start()], None
        if close:
            return text[before:end], text[end:]
        if special and (begun := TOKEN_BEGUN.search(text, before)):
            end = begun.start()
            self._held = text[end:]
        self._line = text[text.rfind("\n", 0, end) + 1 : end][:_LONGEST_LINE]
        ordinary = self._line.strip(" \t`~") and not self._held
        self.quick = _IN_FENCE.search if ordinary else None
        return text[before:end], None
