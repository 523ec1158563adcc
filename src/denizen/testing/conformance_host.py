"""The conformance suite of hosts: tests to subclass."""
# ruff: noqa: S101 - tests assert

import asyncio
from collections.abc import Callable, Sequence
from typing import get_args

import pytest

from denizen import events
from denizen.errors import ModelError
from denizen.messages import AssistantMessage, Text, ToolCall
from denizen.ports import Answer, Ask, Control, Parked, TurnIO
from denizen.sessions import session_key

CALL = ToolCall("call-1", "bash", {"command": "make\x1b[2J\nmake test"})
EVENTS: Sequence[events.RunEvent] = (
    events.LlmStart(1, "test:m"),
    events.Retry(1, "rate_limit", "default", 2.0, "test:m", "slow down", asked=True),
    events.LlmStream(events.ThinkingDelta("Hm.")),
    events.LlmStream(events.TextDelta("I will ")),
    events.Withdrawn("I will "),
    events.LlmStream(events.TextDelta("Let me *test* it.")),
    events.LlmStream(events.ToolCallDelta(CALL.id, CALL.name, "{")),
    events.LlmEnd(AssistantMessage([Text("Let me *test* it."), CALL], "test:m", stop_reason="tool_calls")),
    events.ToolStart(CALL.name, CALL.id, CALL.args),
    events.ToolUpdate(CALL.name, CALL.id, "1 passed\n"),
    events.ToolEnd(
        CALL.name, CALL.id, 12.5, is_error=False, summary="1 passed", details={"exit_code": 0}, text="1 passed"
    ),
    events.ToolEnd("grep", "call-that-never-began", 0.0, is_error=True),
    events.Compacted(40, 11),
    events.Notice("The answer was cut.", "warning"),
    events.TurnParked(session_key("desk"), CALL.id, "May it run?"),
    events.Done(events.RunResult("", stop_reason="error", error=str(ModelError("down", kind="timeout")))),
    events.Done(events.RunResult("It works.")),
)
"""All that may happen, in an order in which it may."""

QUESTIONS = [
    Ask("call-1", "May this run?", "bash", {"command": "make"}),
    Ask("call-2", "It repeats what the agent has read. May it run?", "bash", {"command": "make"}, quotation=True),
    Ask("call-3", "Which of the two?"),
]

_PATIENCE_S = 30.0


async def _waiter(host: TurnIO) -> asyncio.Task[None]:
    """A task that waits for a control, and has had time to return at once."""
    waiting = asyncio.create_task(host.changed())
    for _ in range(5):
        await asyncio.sleep(0)
    return waiting


class HostConformance:
    """Subclass it in a test module as `TestMyHost`, with the fixtures `host` and `unattended`."""

    @pytest.fixture
    def host(self) -> TurnIO:
        """The host."""
        raise NotImplementedError("give the suite a fixture `host`")

    @pytest.fixture
    def unattended(self) -> TurnIO:
        """One whose person isn't there to be asked, whatever they allowed beforehand."""
        raise NotImplementedError("give the suite a fixture `unattended`")

    @pytest.fixture
    def speak(self) -> Callable[[], None] | None:
        """Lets a control arrive at the host; None: nothing is ever said to a turn."""
        return None

    async def test_every_event_is_taken(self, host: TurnIO) -> None:
        assert {type(event) for event in EVENTS} == {*get_args(events.RunEvent)}
        for event in EVENTS:
            host.emit(event)

    async def test_control_is_handed_out_once(self, host: TurnIO) -> None:
        first = [*host.controls()]
        assert all(isinstance(each, get_args(Control)) for each in first)
        assert [*host.controls()] == []

    async def test_changed_waits_while_no_control_does(self, host: TurnIO) -> None:
        host.controls()
        waiting = await _waiter(host)
        assert not waiting.done(), "`changed` returned, and there was no control"
        waiting.cancel()

    async def test_changed_returns_once_a_control_arrives(self, host: TurnIO, speak: Callable[[], None] | None) -> None:
        """Also after it was cancelled, which happens whenever a model or a tool is done."""
        if speak is None:
            pytest.skip("nothing is ever said to a turn of this host")
        host.controls()
        cancelled, waiting = await _waiter(host), await _waiter(host)
        cancelled.cancel()
        speak()
        late = await _waiter(host)
        async with asyncio.timeout(_PATIENCE_S):
            await waiting
            await late
        assert len(host.controls()) == 1

    @pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: each.call_id)
    async def test_answer_is_to_the_question_that_was_asked(self, unattended: TurnIO, question: Ask) -> None:
        answer = await unattended.ask(question)
        assert isinstance(answer, Parked) or answer.call_id == question.call_id

    @pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: each.call_id)
    async def test_refusal_by_nobody_says_so(self, unattended: TurnIO, question: Ask) -> None:
        """The model is to know that no person said no."""
        answer = await unattended.ask(question)
        if isinstance(answer, Answer) and not answer.allow:
            assert answer.unasked
            assert answer.text

    async def test_quotation_is_allowed_by_nobody(self, unattended: TurnIO) -> None:
        """A yes given beforehand doesn't count: the words may be somebody else's."""
        question = next(each for each in QUESTIONS if each.quotation)
        answer = await unattended.ask(question)
        assert isinstance(answer, Parked) or not answer.allow
