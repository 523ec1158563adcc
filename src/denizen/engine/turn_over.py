"""What ends a turn, or a model call, from anywhere in it."""

from denizen.events import TurnStop
from denizen.ports import TurnEnded


class TurnOver(TurnEnded):
    """Ends the turn with that reason."""

    def __init__(self, reason: TurnStop, note: str = "") -> None:
        super().__init__(note)
        self.reason: TurnStop = reason
        self.note = note


class Interrupted(Exception):
    """The person interrupts the model's answer."""
