"""The `reflective` driver: the model looks up from its work now and then."""

from typing import Any

from tests.engine.conftest import MakeAgent
from tests.engine.drivers.test_planning import look, told
from tests.engine.scene import call, say

from denizen import Config, run_agent
from denizen.config.settings import AgentSettings

CONFIG = Config(agent=AgentSettings(driver="reflective"))
FAILS: Any = ("look", {"at": "nothing"})


def looks(count: int, begin: int = 0) -> list[Any]:
    return [("look", {"at": number}) for number in range(begin, begin + count)]


async def play(agent_of: MakeAgent, *steps: Any) -> list[str]:
    agent = agent_of(*map(call, steps), say("Done."), tools=[look], config=CONFIG)
    await run_agent("go", agent=agent)
    return told(agent)


async def test_every_five_iterations_there_is_an_assessment(agent_of: MakeAgent) -> None:
    assert await play(agent_of, *looks(4)) == []
    assessments = await play(agent_of, *looks(11))
    assert len(assessments) == 2
    assert assessments[0].startswith("After 5 iterations, look up from the work: say in two sentences what was asked")


async def test_when_nothing_works_it_comes_at_once(agent_of: MakeAgent) -> None:
    [stuck] = await play(agent_of, FAILS, ("nothing", {}))
    assert stuck.startswith("All calls of the last 2 iterations failed. Before the next one, say in two sentences")


async def test_a_call_that_works_is_no_failure(agent_of: MakeAgent) -> None:
    assert await play(agent_of, FAILS, *looks(1), FAILS) == []
