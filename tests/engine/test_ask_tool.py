"""`ask`: a question that only the user can answer waits for them, durably."""

from typing import Any

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import DEFAULT, Host, run_agent

from denizen.engine.resume import question_of
from denizen.entries import AnswerEntry
from denizen.messages import AssistantMessage, ToolCall, ToolResult
from denizen.ports import Answer
from denizen.testing import FakeClock
from denizen.tools.ask import ask


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
