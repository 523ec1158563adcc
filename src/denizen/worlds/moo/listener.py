"""The listener of a character: a full screen, or a terminal with plain lines."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

Status = Literal["ready", "waiting", "sleeping", "thinking", "away"]
"""An agent's activity: free to act, waiting for a page, about to be woken, asking its model, not connected."""
Kind = Literal["server", "server_error", "thought", "goal", "action", "system", "operator", "patch"]
"""The kinds of lines."""
MAX_DURATIONS = 100
"""Cycles of which a tally has the durations."""
STALLED_AFTER_SLOW_CYCLES = 3
"""Multiples of a slow cycle's duration after which its agent counts as stalled, or stale."""


def slow_cycle(seconds: Sequence[float]) -> float:
    """The 95th percentile of the durations; 0 without any."""
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
            [*self.seconds[1 - MAX_DURATIONS :], seconds],
            at,
        )

    def plus(self, later: "Tally") -> "Tally":
        """With those of a later run."""
        return Tally(
            Counter(self.outcomes) + Counter(later.outcomes),
            self.tokens + later.tokens,
            self.cost_usd + later.cost_usd,
            [*self.seconds, *later.seconds][-MAX_DURATIONS:],
            later.ended_at or self.ended_at,
        )


class Facts(msgspec.Struct, frozen=True):
    """An agent's facts about itself: `token` is the token's holder, `tally` the work and cost of this run."""

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
