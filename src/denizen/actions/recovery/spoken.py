"""The words of a reply for the person, as they stream: what is a call, or may become one, is held back."""

from denizen.actions.recovery.glance import Glance
from denizen.actions.recovery.stretches import Quick, Stretch
from denizen.actions.recovery.suspects import Suspects


class SpokenWords:
    """Takes the words out of a reply that comes in pieces.

    What is held back at its end is left to who reads the whole reply: it is more than the calls, never less. Code,
    thoughts at the beginning and objects that call nothing are passed; behind what looks like a call all is held.
    """

    def __init__(self, suspects: Suspects) -> None:
        self._suspects = suspects
        self._quick: Quick = None
        self._stretch: Stretch | None = None  # what isn't words, while it lasts
        self._said: list[str] = []
        self._held: list[str] = []
        self._size = self._wait = 0  # how much is held; with less than that it isn't looked at again
        self._ticks = 0  # of the code in a line

    def feed(self, piece: str) -> str:
        """What can be shown once the piece has come: the very same object where that is all of it."""
        if self._quick and not self._quick(piece):
            self._said.append(piece)
            return piece
        shown: list[str] = []
        rest = piece
        while rest:
            words, rest = self._take(self._stretch, rest) if self._stretch else self._flow(rest)
            if words:
                shown.append(words)
                self._said.append(words)
        together = "".join(shown)
        return piece if together == piece else together

    def _take(self, stretch: Stretch, piece: str) -> tuple[str, str]:
        """What is shown of a stretch, and what follows it."""
        words, rest = stretch.take(piece)
        if rest is None:
            self._quick = stretch.quick
            return words, ""
        self._stretch = self._quick = None
        return words, rest

    def _flow(self, piece: str) -> tuple[str, str]:
        """What is shown of words, and what begins behind them."""
        self._held.append(piece)
        self._size += len(piece)
        if self._size < self._wait:
            return "", ""
        before = self._said[-1][-1:] if self._said else ""
        text = before + "".join(self._held)
        glance = Glance(self._suspects, text, len(before), self._said, self._ticks)
        at, self._stretch, unclear = glance.run()
        self._ticks = glance.ticks
        words, rest = text[len(before) : at], text[at:]
        self._hold(rest if unclear else "")
        ordinary = not (unclear or self._stretch or self._ticks or text.endswith("\n"))
        self._quick = self._suspects.quick.search if ordinary else None
        return words, "" if unclear else rest

    def _hold(self, text: str) -> None:
        """Look at it again when it has grown by a part of what there is, so that the work stays linear."""
        self._held, self._size = [text], len(text)
        self._wait = self._size + self._size // 4
