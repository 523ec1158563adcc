"""The parts of an agent that are given stand in for those that the configuration names."""

from pathlib import Path

import pytest

from denizen import Agent, Config
from denizen.memory import LongTermMemory, open_memory
from denizen.messages import AssistantMessage, ToolCall, Usage
from denizen.runtime.clock import SystemClock
from denizen.testing import ScriptedModel


class Ledger:
    """A budget that keeps what it is told."""

    def __init__(self) -> None:
        self.spent: list[float | None] = []

    async def check(self, session_key: str, turn_usd: float) -> str:
        return "The books are closed." if len(self.spent) > 1 else ""

    async def charge(self, session_key: str, cost: float | None, model: str) -> str:
        self.spent.append(cost)
        return ""

    async def close(self) -> None:
        pass


@pytest.fixture
def memory(tmp_path: Path) -> LongTermMemory:
    config = Config(home=tmp_path / "kept", workspace=tmp_path)
    return open_memory(config, clock=SystemClock())


async def test_memory_and_budget_are_used_also_in_another_folder(tmp_path: Path, memory: LongTermMemory) -> None:
    calls = AssistantMessage([ToolCall("1", "remember", {"text": "Ann likes tea"})], stop_reason="tool_calls")
    script = [calls, AssistantMessage([], usage=Usage(cost_usd=0.5))]
    config, budget = Config(home=tmp_path / "home", workspace=tmp_path), Ledger()
    async with Agent(config, model=ScriptedModel(script), memory=memory, budget=budget, environ={}) as agent:
        await agent.run("Remember that I like tea.", session_key="s")
        assert [fact.text for fact in memory.facts()] == ["Ann likes tea"]
        assert budget.spent == [None, 0.5]
        there = agent.elsewhere(tmp_path)
        assert there.memory is memory
        result = await there.run("And?", session_key="s")
    assert result.error == "The books are closed."
    assert not (tmp_path / "home" / "spend.db").exists()
    assert not [*(tmp_path / "home").rglob("memory.db")]
