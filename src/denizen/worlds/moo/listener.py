"""Whoever watches an agent of a text world: a screen, or a terminal with plain lines."""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

Status = Literal["ready", "waiting", "sleeping", "thinking"]
"""What an agent is doing: it may act by itself, waits for a page, is about to be woken, asks its model."""
Kind = Literal["server", "server_error", "thought", "goal", "action", "system", "operator", "patch"]
"""What a line is."""


class Facts(msgspec.Struct, frozen=True):
    """What an agent knows of itself: `token` is who holds the token, `cost_usd` what this run has spent."""

    room: str = ""
    exits: Sequence[str] = ()
    goal: str = ""
    plan: Sequence[str] = ()
    token: str = ""
    cost_usd: float = 0.0


class Listener(Protocol):
    """Hears what happens, as it does; it must be quick, and raise nothing."""

    def status(self, status: Status) -> None:
        """It is doing something else now."""
        ...

    def line(self, kind: Kind, text: str) -> None:
        """Something was seen, said or done."""
        ...

    def facts(self, facts: Facts) -> None:
        """It knows something new."""
        ...
