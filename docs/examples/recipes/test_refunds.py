"""Tests of an agent that pays orders back: what it calls, what it asks, and what it does after a no."""

from pathlib import Path

import pytest

from denizen import Agent, run_agent_sync, tool
from denizen.errors import ModelError
from denizen.events import RunEvent
from denizen.messages import AssistantMessage, ToolCall, ToolResult
from denizen.ports import Answer, Ask, NoControls, Traits
from denizen.testing import ScriptedModel

REFUND = AssistantMessage([ToolCall("1", "refund", {"order": 7})], stop_reason="tool_calls")


class Person(NoControls):
    """A host whose person always gives the same answer, and notes the questions."""

    def __init__(self, *, allow: bool) -> None:
        self.allow = allow
        self.asked: list[str] = []

    def emit(self, event: RunEvent) -> None:
        """Nothing is shown."""

    async def ask(self, request: Ask) -> Answer:
        """Answer, and note the question."""
        self.asked.append(request.question)
        return Answer(request.call_id, self.allow)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of a test are in a folder of its own."""
    monkeypatch.setenv("DENIZEN_HOME", str(tmp_path))


@pytest.fixture
def paid() -> list[int]:
    """The orders that were paid back."""
    return []


@pytest.fixture
def model() -> ScriptedModel:
    """Asks for a refund, then says so."""
    return ScriptedModel([REFUND, "Done."])


@pytest.fixture
def agent(paid: list[int], model: ScriptedModel) -> Agent:
    """The agent under test."""

    @tool(traits=Traits.SENDS)
    def refund(order: int) -> str:
        """Pay an order back."""
        paid.append(order)
        return "paid"

    return Agent(instructions="You pay orders back.", tools=[refund], model=model)


def test_a_refund_is_paid_after_a_yes(agent: Agent, paid: list[int]) -> None:
    person = Person(allow=True)
    result = run_agent_sync("My money back!", agent=agent, io=person)
    assert (result.reply, paid) == ("Done.", [7])
    assert person.asked == ["Allow refund(order=7)? It sends data to others."]


def test_nothing_is_paid_after_a_no_and_the_model_learns_why(
    agent: Agent, paid: list[int], model: ScriptedModel
) -> None:
    run_agent_sync("My money back!", agent=agent, io=Person(allow=False))
    assert paid == []
    refused = model.requests[1].messages[-1]
    assert isinstance(refused, ToolResult)
    assert refused.is_error


def test_the_turn_waits_if_nobody_is_there(agent: Agent, paid: list[int]) -> None:
    assert run_agent_sync("My money back!", agent=agent).stop_reason == "parked"
    assert paid == []


def test_a_failing_provider_raises_and_pays_nothing(paid: list[int]) -> None:
    down = ScriptedModel([ModelError("overloaded", kind="timeout", status=529)])
    with pytest.raises(ModelError, match="overloaded"):
        run_agent_sync("My money back!", model=down)
    assert paid == []
