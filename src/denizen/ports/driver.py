"""The driver: what to do before the next model call."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from denizen.messages import ToolCall, ToolResult
from denizen.ports.context import View


class Iteration(msgspec.Struct, frozen=True):
    """One model call of a turn: its text, the calls that it asked for, and their results in the same order."""

    text: str
    calls: Sequence[ToolCall]
    results: Sequence[ToolResult]


class Proceed(msgspec.Struct, frozen=True):
    """Ask the model, which sees `text` first."""

    text: str = ""


class Backtrack(msgspec.Struct, frozen=True):
    """Restore the files of before the `iterations` that led nowhere; `text` says what was learnt."""

    text: str
    iterations: int = 1


class Escalate(msgspec.Struct, frozen=True):
    """Ask the person, and give the model the answer; if nobody is there, give it `otherwise`."""

    question: str
    otherwise: str = ""


class GiveUp(msgspec.Struct, frozen=True):
    """End the turn as a loop, for this reason."""

    reason: str


Action = Proceed | Backtrack | Escalate | GiveUp


class Driver(Protocol):
    """What to do before the next model call of a turn (decisions, "Drivers").

    There is one for each turn. It is shown the turn's iterations in order, those of an earlier process too, so that it
    comes to the same state again: it keeps no other memory.
    """

    def decide(self, view: View) -> Action:
        """The next step."""

    def observe(self, iteration: Iteration) -> None:
        """Take in the last iteration."""
