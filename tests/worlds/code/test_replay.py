"""Sessions gone through again: each turn with its own replies, whatever became of it then."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cli.test_cancel import wait_until
from tests.engine.scene import Host, run_agent

from denizen import Agent, Config
from denizen.config.settings import AgentSettings, PolicySettings
from denizen.engine import TurnOptions
from denizen.engine.undo import undo
from denizen.entries import EndEntry
from denizen.errors import SessionError
from denizen.messages import Text, UserMessage
from denizen.ports import Answer
from denizen.testing import FakeClock, ScriptedModel
from denizen.worlds.code.replay import ReplayedCall, replay
from denizen.worlds.code.work import CodeTask, TaskSpec, work

LOOK = "$(view hello.py)"


@pytest.fixture
def coder(tmp_path: Path) -> Callable[..., Agent]:
    project = tmp_path / "project"
    project.mkdir()
    (project / "hello.py").write_text('print("hello")\n')

    def make(*replies: Any) -> Agent:
        config = Config(home=tmp_path / "home", workspace=project, policy=PolicySettings(auto_approve="medium"))
        return Agent(config, profile="coder", model=ScriptedModel(replies), clock=FakeClock())

    return make


async def replayed(agent: Agent, start: str = "") -> Sequence[ReplayedCall]:
    session = await agent.open("default")
    await session.close()
    return [step async for step in replay(agent, session.entries, start=start)]


def shown(steps: Sequence[ReplayedCall]) -> list[tuple[str, bool, bool]]:
    """The calls, whether they were run again, and whether they differ."""
    return [(step.shown, step.now is not None, step.differs) for step in steps]


async def test_what_a_check_said_is_said_again_and_the_turn_goes_on(coder: Callable[..., Agent], host: Host) -> None:
    async with coder(
        "$(write a.txt 1)", "Done.", "$(keep all)\n$(write a.txt 2)", "Done now.", LOOK, "Hello."
    ) as agent:
        session = await agent.open("default")
        spec = TaskSpec(validators=["grep -q 2 a.txt"])
        task = CodeTask(agent, session, UserMessage([Text("Write it")]), host, spec, TurnOptions())
        assert (await work(task)).done
        await session.close()
        await run_agent("And the other?", agent=agent)
        steps = await replayed(agent)
    assert [step.shown for step in steps] == ["write a.txt 1", "keep all", "write a.txt 2", "view hello.py"]
    assert not any(step.differs for step in steps), [step.difference() for step in steps]


async def test_a_cancelled_call_is_not_run_again_and_the_next_turn_is(coder: Callable[..., Agent], host: Host) -> None:
    async with coder("$(run echo > started; sleep 1000)", LOOK, "Hello.") as agent:
        turn = asyncio.create_task(run_agent("Wait", agent=agent, io=host))
        await asyncio.to_thread(wait_until, (agent.workspace / "started").exists)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        await run_agent("What is here?", agent=agent)
        steps = await replayed(agent)
    assert [ran for _, ran, _ in shown(steps)] == [False, True]
    assert not any(step.differs for step in steps)


async def test_what_a_person_refused_is_refused_again(coder: Callable[..., Agent], host: Host) -> None:
    host.answer = lambda ask: Answer(ask.call_id, allow=False)
    async with coder(f"$(write hello.py '')\n{LOOK}", "Then not.") as agent:
        await run_agent("Empty it", agent=agent, io=host)
        steps = await replayed(agent)
    assert [ran for _, ran, _ in shown(steps)] == [False, True]


async def test_a_parked_turn_and_an_undone_one_are_no_trouble(coder: Callable[..., Agent]) -> None:
    async with coder(LOOK, "Hello.", "$(write b.txt 1)", "Done.", "$(ask Which?)") as agent:
        await run_agent("What is here?", agent=agent)
        await run_agent("Write b", agent=agent)
        session = await agent.open("default")
        await undo(agent.record, session)
        await session.close()
        assert (await run_agent("Choose", agent=agent)).stop_reason == "parked"
        steps = await replayed(agent)
    assert shown(steps) == [("view hello.py", True, False)]


async def test_it_goes_on_as_long_as_the_session_did_whatever_the_limit_is_now(coder: Callable[..., Agent]) -> None:
    async with coder(LOOK, "$(text-search hello)", "Hello.") as agent:
        await run_agent("What is here?", agent=agent)
        agent.config = msgspec.structs.replace(agent.config, agent=AgentSettings(max_iterations=1))
        steps = await replayed(agent)
    assert shown(steps) == [("view hello.py", True, False), ("text-search hello", True, False)]


async def test_it_begins_at_the_turn_of_an_entry(coder: Callable[..., Agent]) -> None:
    async with coder(LOOK, "Hello.", "$(text-search hello)", "There.") as agent:
        await run_agent("What is here?", agent=agent)
        session = await agent.open("default")
        (end,) = [entry for entry in session.entries if isinstance(entry, EndEntry)]
        await session.close()
        await run_agent("Where?", agent=agent)
        steps = await replayed(agent)
        assert [step.shown for step in await replayed(agent, steps[1].entry)] == [steps[1].shown]
        assert await replayed(agent, end.id) == steps
        with pytest.raises(SessionError, match="no entry"):
            await replayed(agent, "nothing")
