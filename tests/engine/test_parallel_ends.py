"""A turn that ends while calls run side by side ends with them: the model isn't asked again."""

import asyncio

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host, call, requests_of, results, run_agent, say

from denizen import tool
from denizen.ports import Stop, ToolContext, Traits

READS = Traits.READS | Traits.REPEATABLE


@tool(traits=READS)
def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.parametrize("names", [("wonder", "look"), ("look", "wonder"), ("look", "wonder", "look")])
async def test_a_call_that_waits_for_a_person_parks_the_turn_after_the_others(
    names: tuple[str, ...], agent_of: MakeAgent
) -> None:
    @tool(traits=READS)
    async def wonder(turn: ToolContext) -> str:
        """Ask."""
        return (await turn.ask("Which?")).text

    agent = agent_of(call(*((name, {}) for name in names)), say("too early"), tools=[look, wonder])
    result = await run_agent("go", agent=agent, io=Host())
    assert (result.stop_reason, result.error) == ("parked", "Which?")
    assert [each.text for each in results(result)] == ["seen"] * names.count("look")
    assert len(requests_of(agent)) == 1


async def test_a_stop_ends_calls_that_run_side_by_side(agent_of: MakeAgent) -> None:
    host = Host()

    @tool(traits=READS)
    async def wait() -> str:
        """Wait for ever."""
        host.say(Stop())
        await asyncio.Event().wait()
        return ""

    agent = agent_of(call(("wait", {}), ("wait", {})), say("too early"), tools=[wait])
    async with asyncio.timeout(30):
        result = await run_agent("go", agent=agent, io=host)
    assert result.stop_reason == "cancelled"
    assert len(requests_of(agent)) == 1
