"""`ask`: a question that only the user can answer waits for them, durably."""

from typing import Any

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import DEFAULT, Host, call, run_agent

from denizen import Config, tool
from denizen.config.settings import PolicySettings, Rule
from denizen.engine.resume import question_of
from denizen.entries import AnswerEntry, StartedEntry
from denizen.messages import AssistantMessage, ToolCall, ToolResult
from denizen.ports import Answer, ToolContext, Traits
from denizen.testing import FakeClock
from denizen.worlds.code.tools.ask import ask


@pytest.fixture
def asking() -> list[Any]:
    call = ToolCall("call-1", "ask", {"question": "Which module?"})
    return [AssistantMessage([call], stop_reason="tool_calls"), "done"]


def answered(result: Any) -> str:
    return next(message.text for message in result.messages if isinstance(message, ToolResult))


async def test_the_answer_is_the_result(agent_of: MakeAgent, host: Host, asking: list[Any]) -> None:
    host.answer = lambda request: Answer(request.call_id, allow=True, text="the parser")
    result = await run_agent("go", agent=agent_of(*asking, tools=[ask]), io=host)
    assert host.asked[0].question == "Which module?"
    assert answered(result) == "The user answers: the parser"


async def test_where_nobody_is_there_the_turn_is_parked_and_goes_on_with_the_answer(
    agent_of: MakeAgent, asking: list[Any]
) -> None:
    agent = agent_of(*asking, tools=[ask])
    assert (await run_agent("go", agent=agent)).stop_reason == "parked"
    waiting = question_of(await agent.store.read(DEFAULT))
    assert waiting
    assert waiting.question == "Which module?"
    session = await agent.open("default")
    await session.append(AnswerEntry(call_id=waiting.call_id, allow=True, text="the lexer"))
    await session.close()
    result = await run_agent(None, agent=agent)
    assert result.reply == "done"
    assert answered(result) == "The user answers: the lexer"


async def test_after_the_time_for_an_answer_it_goes_on_without(
    agent_of: MakeAgent, clock: FakeClock, asking: list[Any]
) -> None:
    agent = agent_of(*asking, tools=[ask])
    await run_agent("go", agent=agent)
    await clock.sleep(25 * 3600)
    told = answered(await run_agent(None, agent=agent))
    assert told == "nobody answered in time; go on without, and say what you assumed"


async def test_other_tools_that_ask_run_again_with_each_answer(agent_of: MakeAgent) -> None:
    began: list[str] = []

    @tool(traits=Traits.SENDS)
    async def order(turn: ToolContext) -> str:
        """Order."""
        began.append("order")
        given = [(await turn.ask(question)).text for question in ("How many?", "Which?")]
        return f"ordered {given}"

    allowed = Config(policy=PolicySettings(rules=[Rule(tool="order", decide="allow")]))
    agent = agent_of(call(("order", {})), "done", tools=[order], config=allowed)
    await run_agent("go", agent=agent)
    for question, text in (("How many?", "three"), ("Which?", "red")):
        waiting = question_of(await agent.store.read(DEFAULT))
        assert waiting
        assert waiting.question == question
        session = await agent.open("default")
        await session.append(AnswerEntry(call_id=waiting.call_id, allow=True, text=text))
        await session.close()
        result = await run_agent(None, agent=agent)
    assert answered(result) == "ordered ['three', 'red']"
    assert len(began) == 3


async def test_a_call_that_asked_and_was_interrupted_after_the_answer_is_not_run_again(agent_of: MakeAgent) -> None:
    @tool(traits=Traits.WRITES)
    async def order(turn: ToolContext) -> str:
        """Order."""
        return (await turn.ask("How many?")).text

    agent = agent_of(call(("order", {})), "done", tools=[order])
    await run_agent("go", agent=agent)
    waiting = question_of(await agent.store.read(DEFAULT))
    assert waiting
    session = await agent.open("default")
    await session.append(AnswerEntry(call_id=waiting.call_id, allow=True, text="three"))
    await session.append(StartedEntry(call_id=waiting.call_id.rpartition(".")[0], name="order"))
    await session.close()
    assert "interrupted" in answered(await run_agent(None, agent=agent))
