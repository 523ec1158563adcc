"""Sessions in memory: nothing is left of the conversation when the program ends."""

from denizen import Agent, run_agent_sync
from denizen.runtime.clock import SystemClock
from denizen.sessions import MemoryStore
from denizen.testing import ScriptedModel

if __name__ == "__main__":
    agent = Agent(store=MemoryStore(clock=SystemClock()), tools=[], model=ScriptedModel(["Hello, Ann."]))
    print(run_agent_sync("I'm Ann.", agent=agent).reply)
