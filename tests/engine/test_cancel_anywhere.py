"""Cancelling a turn wherever it waits: nothing is lost, nothing happens twice, and the session goes on."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Literal

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host, requests_of, say
from tests.pairs import calls_are_paired

from denizen import Agent, run_agent, tool
from denizen.entries import AnyEntry, EndEntry
from denizen.events import Done
from denizen.messages import AssistantMessage, ToolCall, ToolResult, Usage
from denizen.ports import Answer, Ask, Traits
from denizen.tools.function import FunctionTool

How = Literal["while it waits", "when what it waited for is there"]


class CancelledAt:
    """Runs a coroutine and cancels it at some of its suspensions, which count from 1."""

    def __init__(self, work: Coroutine[Any, Any, Any], steps: set[int], how: How) -> None:
        self._work, self._steps, self._how = work, steps, how
        self.passed = 0

    def __await__(self) -> Generator[Any, None, Any]:
        error: BaseException | None = None
        while True:
            try:
                waits_for = self._work.throw(error) if error else self._work.send(None)
            except StopIteration as end:
                return end.value
            error = None
            self.passed += 1
            here = self.passed in self._steps
            task = asyncio.current_task()
            assert task
            if here and self._how == "while it waits":
                task.cancel()
            try:
                yield waits_for
            except BaseException as raised:  # noqa: BLE001 (whatever the loop throws in goes on to the coroutine)
                error = raised
            if here and self._how != "while it waits":
                task.cancel()


class Agreeable(Host):
    """Says yes, after a moment."""

    async def ask(self, request: Ask) -> Answer:
        await asyncio.sleep(0)
        return Answer(request.call_id, allow=True)


def effects(done: list[str]) -> list[FunctionTool]:
    """Tools that note what they did."""

    @tool(traits=Traits.WRITES)
    async def mark(what: str) -> str:
        """Leave a mark."""
        await asyncio.sleep(0)
        done.append(what)
        await asyncio.sleep(0)
        return f"did {what}"

    @tool(traits=Traits.SENDS)
    async def send(what: str) -> str:
        """Send."""
        done.append(what)
        await asyncio.sleep(0)
        return f"did {what}"

    @tool(traits=Traits.READS | Traits.REPEATABLE)
    async def look() -> str:
        """Look."""
        await asyncio.sleep(0)
        return "seen"

    return [mark, send, look]


def asks_for(*calls: ToolCall) -> AssistantMessage:
    return AssistantMessage([*calls], "scripted", Usage(cost_usd=0.0), "tool_calls")


SCRIPT = (
    asks_for(
        ToolCall("a", "mark", {"what": "one"}),
        ToolCall("b", "look", {}),
        ToolCall("c", "look", {}),
        ToolCall("d", "send", {"what": "two"}),
    ),
    asks_for(ToolCall("e", "mark", {"what": "three"})),
    say("done"),
)


async def _go(agent: Agent, host: Host, key: str, steps: set[int], how: How) -> tuple[int, bool]:
    """How often the turn waited, and whether it was cancelled."""
    work = CancelledAt(run_agent("go", agent=agent, io=host, session_key=key), steps, how)

    async def turn() -> None:
        await work

    task = asyncio.create_task(turn())
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    assert isinstance(host.events[-1], Done), f"{key}: not told that it is over"
    return work.passed, task.cancelled()


async def _all_is_well(agent: Agent, key: str, done: list[str], again: Agent, when: str) -> None:
    before = [*done]
    entries: list[AnyEntry] = [*await agent.store.read(key)]
    if any(entry.__struct_config__.tag == "user" for entry in entries):
        assert isinstance(entries[-1], EndEntry), when
    assert (await run_agent("and?", agent=again, session_key=key)).reply == "here", when
    assert done == before, f"{when}: a call ran that had been cancelled"
    assert len(done) == len(set(done)), f"{when}: an effect happened twice"
    messages = requests_of(again)[-1].messages
    assert calls_are_paired(messages), when
    told = [message.text for message in messages if isinstance(message, ToolResult)]
    assert all(text.removeprefix("did ") in done for text in told if text.startswith("did ")), when


@pytest.mark.parametrize("how", ["while it waits", "when what it waited for is there"])
async def test_a_turn_cancelled_wherever_it_waits_leaves_a_session_that_goes_on(agent_of: MakeAgent, how: How) -> None:
    done: list[str] = []
    waits, cancelled = await _go(agent_of(*SCRIPT, tools=effects(done)), Agreeable(), "whole", set(), how)
    assert not cancelled
    assert waits > 12
    for step in range(1, waits + 1):
        done = []
        agent, host, again = agent_of(*SCRIPT, tools=effects(done)), Agreeable(), agent_of(say("here"), tools=[])
        _, cancelled = await _go(agent, host, f"s{step}", {step}, how)
        assert cancelled, f"step {step}"
        await _all_is_well(agent, f"s{step}", done, again, f"cancelled at step {step}")


async def test_a_second_cancel_during_the_clean_up_does_no_harm(agent_of: MakeAgent) -> None:
    waits, _ = await _go(agent_of(*SCRIPT, tools=effects([])), Agreeable(), "whole", set(), "while it waits")
    for step in range(1, waits + 1):
        done: list[str] = []
        agent, host, again = agent_of(*SCRIPT, tools=effects(done)), Agreeable(), agent_of(say("here"), tools=[])
        await _go(agent, host, f"s{step}", {step, step + 1}, "while it waits")
        await _all_is_well(agent, f"s{step}", done, again, f"cancelled at steps {step} and {step + 1}")
