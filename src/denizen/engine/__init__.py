"""The one loop, and what it is run with."""

from denizen.engine.agent import Agent
from denizen.engine.loop import run_turn
from denizen.engine.run import run_agent, run_agent_sync, stream_agent

__all__ = ["Agent", "run_agent", "run_agent_sync", "run_turn", "stream_agent"]
