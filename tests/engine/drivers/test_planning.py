"""The `planning` driver: a plan first, revised on the way."""

from typing import Any

from tests.engine.conftest import MakeAgent
from tests.engine.scene import call, requests_of, run_agent, say

from denizen import Agent, Config, tool
from denizen.actions import Shell
from denizen.config.settings import AgentSettings
from denizen.context import WorkingMemory
from denizen.messages import ToolResult, UserMessage
from denizen.ports import Traits
from denizen.tools.task import task
from denizen.worlds.code.tools.working_notes import keep
from denizen.worlds.world import Profile

CONFIG = Config(agent=AgentSettings(driver="planning"))


@tool(traits=Traits.READS | Traits.REPEATABLE)
def look(at: int) -> str:
    """Look."""
    return f"this is {at}"


def told(agent: Agent) -> list[str]:
    """What the system told the model, in order."""
    messages = requests_of(agent)[-1].messages
    texts = [message.text for message in messages if isinstance(message, UserMessage)]
    return [text.removeprefix("[system] ") for text in texts if text.startswith("[system] ")]


def plan(text: str, action: str = "plan") -> tuple[str, dict[str, str]]:
    return ("task", {"action": action, "text": text})


async def play(agent_of: MakeAgent, *steps: tuple[str, Any]) -> list[str]:
    """What is told in a turn where the model makes these calls, one an iteration, and then answers."""
    agent = agent_of(*map(call, steps), say("Done."), tools=[look, task], config=CONFIG)
    await run_agent("go", agent=agent)
    return told(agent)


async def test_a_plan_is_asked_for_before_anything_else(agent_of: MakeAgent) -> None:
    [begin] = await play(agent_of)
    assert begin.startswith("Begin with a plan: set it with the tool `task`")


async def test_a_plan_that_is_kept_up_needs_no_word(agent_of: MakeAgent) -> None:
    steps = [plan("a\nb"), ("look", {"at": 1}), plan("1", "done"), ("look", {"at": 2})]
    assert len(await play(agent_of, *steps)) == 1


async def test_a_plan_that_lies_untouched_is_brought_to_mind(agent_of: MakeAgent) -> None:
    steps = [plan("Read\nWrite\nTest (after 2)"), plan("1", "start"), *[("look", {"at": n}) for n in range(6)]]
    [_, reminder] = await play(agent_of, *steps)
    assert reminder.startswith(
        "The plan lies untouched since 5 iterations. To do next, as it says: 1 Read, 2 Write. Mark"
    )


async def test_a_missing_plan_is_asked_for_again(agent_of: MakeAgent) -> None:
    [_, again] = await play(agent_of, *[("look", {"at": n}) for n in range(6)])
    assert again.startswith("There is no plan after 5 iterations. Begin with a plan")


async def test_when_all_is_done_it_is_time_to_check_and_answer(agent_of: MakeAgent) -> None:
    [_, done] = await play(agent_of, plan("Read\nWrite"), plan("1 2", "done"), ("look", {"at": 1}), ("look", {"at": 2}))
    assert done.startswith("Every task of the plan is done. Check the result")


async def test_a_plan_of_an_earlier_turn_is_gone_on_with(agent_of: MakeAgent) -> None:
    script = [call(plan("Read\nWrite")), say("Later."), say("Done.")]
    agent = agent_of(*script, tools=[look, task], config=CONFIG)
    await run_agent("go", agent=agent)
    await run_agent("go on", agent=agent)
    assert told(agent)[-1].startswith("There is a plan from before. Go on with it")


async def test_a_plan_that_is_done_is_no_plan_for_the_next_turn(agent_of: MakeAgent) -> None:
    script = [call(plan("[x] Read")), say("Done."), say("Hello.")]
    agent = agent_of(*script, tools=[look, task], config=CONFIG)
    await run_agent("go", agent=agent)
    await run_agent("Something else", agent=agent)
    assert told(agent)[-1].startswith("Begin with a plan")


async def test_the_tool_comes_with_it(agent_of: MakeAgent) -> None:
    assert "task" in agent_of(config=CONFIG).tools
    assert "task" not in agent_of().tools
    assert [tool.name for tool in agent_of(profile="coder", config=CONFIG).tools].count("task") == 1


async def test_two_additions_in_one_reply_are_both_kept(agent_of: MakeAgent) -> None:
    both = call(plan("Read", "add"), plan("Write", "add"))
    agent = agent_of(both, say("Done."), tools=[look, task], config=CONFIG)
    result = await run_agent("go", agent=agent)
    last = result.messages[-2]
    assert isinstance(last, ToolResult)
    assert last.details["plan"].splitlines()[1:] == ["1 [ ] Read", "2 [ ] Write"]


async def test_a_plan_is_kept_by_commands_in_text_and_shown_with_each_call(agent_of: MakeAgent) -> None:
    replies = [
        "$(task plan\nRead the spec\nWrite (after 1)\n  the parser\n  the printer)",
        "$(look 1) $(task done 1) $(task start 2.1)",
        "$(keep all)",
        "Half of it is written.",
    ]
    profile = Profile("planner", Shell(), WorkingMemory, driver="planning")
    agent = agent_of(*replies, tools=[look, task, keep], profile=profile)
    result = await run_agent("go", agent=agent)
    assert result.reply == "Half of it is written."
    first, second, third, last = ["\n".join(message.text for message in each.messages) for each in requests_of(agent)]
    assert "[system] Begin with a plan" in first
    assert "[plan]\nPlan: 0 of 3 done; ready: 1\n" in second
    assert third.count("[plan]") == 1
    assert (
        "[plan]\nPlan: 1 of 3 done; ready: 2.2\n1 [x] Read the spec\n2 [>] Write (after 1)\n  2.1 [>] the parser"
        in third
    )
    assert "this is 1" in last
    assert last.count("Plan: ") == 1, "the plan is there anyway"
