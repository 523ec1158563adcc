"""Whoever watches an agent of a text world: a screen, or a terminal with plain lines."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

Status = Literal["ready", "waiting", "sleeping", "thinking", "away"]
"""What an agent is doing: it may act by itself, waits for a page, is about to be woken, asks its model, isn't there."""
Kind = Literal["server", "server_error", "thought", "goal", "action", "system", "operator", "patch"]
"""What a line is."""
REMEMBERED = 100
"""Cycles of which a tally has the durations."""
SLOW = 3
"""How often the time of a slow cycle may pass before its agent counts as stalled, or stale."""


def slow_cycle(seconds: Sequence[float]) -> float:
    """How long 95 of 100 cycles took at most; of none: 0."""
    return sorted(seconds)[math.ceil(len(seconds) * 0.95) - 1] if seconds else 0.0


class Tally(msgspec.Struct, frozen=True):
    """The finished cycles of a run: how many had which outcome, and what they took.

    `seconds` are the durations of the last ones, `ended_at` is when the last one ended (POSIX seconds; 0: none has).
    """

    outcomes: Mapping[str, int] = {}
    tokens: int = 0
    cost_usd: float = 0.0
    seconds: Sequence[float] = ()
    ended_at: float = 0.0

    def after(self, outcome: str, tokens: int, cost_usd: float, seconds: float, at: float) -> "Tally":
        """With one more cycle."""
        return Tally(
            {**self.outcomes, outcome: self.outcomes.get(outcome, 0) + 1},
            self.tokens + tokens,
            self.cost_usd + cost_usd,
            [*self.seconds[1 - REMEMBERED :], seconds],
            at,
        )

    def plus(self, later: "Tally") -> "Tally":
        """With those of a later run."""
        return Tally(
            Counter(self.outcomes) + Counter(later.outcomes),
            self.tokens + later.tokens,
            self.cost_usd + later.cost_usd,
            [*self.seconds, *later.seconds][-REMEMBERED:],
            later.ended_at or self.ended_at,
        )


class Facts(msgspec.Struct, frozen=True):
    """What an agent knows of itself: `token` is who holds the token, `tally` what this run has done and spent."""

    room: str = ""
    exits: Sequence[str] = ()
    goal: str = ""
    plan: Sequence[str] = ()
    token: str = ""
    tally: Tally = Tally()


class CharacterListener(Protocol):
    """Hears what happens, as it does; it must be quick, and raise nothing."""

    def status(self, status: Status) -> None:
        """It is doing something else now."""

    def line(self, kind: Kind, text: str) -> None:
        """Something was seen, said or done."""

    def facts(self, facts: Facts) -> None:
        """It knows something new."""
