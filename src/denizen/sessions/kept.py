"""Transcripts of closed sessions, in memory: to open one again costs nothing while its file is as it was left."""

from typing import NamedTuple

from denizen.sessions.disk import State
from denizen.sessions.transcript import Transcript

MOST_BYTES = 16 * 1024 * 1024
"""Bytes of all their files together; in memory they take about four times as many."""
MOST = 512
"""How many are kept."""


class Closed(NamedTuple):
    """A session as it was left. `named`: its file's name is on disk for good."""

    transcript: Transcript
    state: State
    named: bool
