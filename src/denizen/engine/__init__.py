"""The one loop, and what it is run with."""

from denizen.engine.loop import run_turn
from denizen.engine.record import AgentRecord
from denizen.engine.session_state import state_of
from denizen.engine.turn import Cycle, Resume, TurnOptions

__all__ = ["AgentRecord", "Cycle", "Resume", "TurnOptions", "run_turn", "state_of"]
