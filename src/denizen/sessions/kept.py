"""Transcripts of closed sessions, in memory: to open one again costs nothing while its file is as it was left."""

from collections import OrderedDict
from typing import NamedTuple

from denizen.sessions.transcript import Transcript

MOST_BYTES = 16 * 1024 * 1024
"""Bytes of all their files together; in memory they take about four times as many."""
MOST = 64
"""How many are kept."""


class State(NamedTuple):
    """What changes whenever a file does: which one it is, its size, and when it, or the right to read it, changed."""

    inode: int
    device: int
    size: int
    changed: int


class Closed(NamedTuple):
    """A session as it was left. `named`: its file's name is on disk for good."""

    transcript: Transcript
    state: State
    named: bool


class Kept:
    """The sessions that were closed last."""

    def __init__(self) -> None:
        self._closed: OrderedDict[str, Closed] = OrderedDict()
        self._size = 0

    def put(self, key: str, closed: Closed) -> None:
        """Keep a session whose transcript is, entry by entry, what its file says."""
        self.drop(key)
        self._closed[key] = closed
        self._size += closed.state.size
        while self._size > MOST_BYTES or len(self._closed) > MOST:
            self._size -= self._closed.popitem(last=False)[1].state.size

    def take(self, key: str, state: State) -> Closed | None:
        """The session, unless its file has changed since. It isn't kept any longer."""
        closed = self._closed.get(key)
        self.drop(key)
        return closed if closed and closed.state == state else None

    def drop(self, key: str) -> None:
        """Keep it no longer."""
        if key in self._closed:
            self._size -= self._closed.pop(key).state.size
