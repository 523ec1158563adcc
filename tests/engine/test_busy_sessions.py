"""Messages to one session follow each other; a message without a session begins one."""

import asyncio
import threading
from pathlib import Path

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import call, requests_of, say

from denizen import Agent, Config, run_agent, run_agent_sync, tool
from denizen.config.settings import AgentSettings
from denizen.errors import SessionError
from denizen.events import Done, RunEvent, RunResult
from denizen.messages import UserMessage
from denizen.ports import ModelRequest, Traits
from denizen.testing import ScriptedModel


def words(request: ModelRequest) -> list[str]:
    """What the user said, and the agent."""
    said = [message.content[0] for message in request.messages]
    return [str(getattr(part, "text", "")) for part in said]


async def test_a_second_message_to_a_session_waits_for_its_turn(agent_of: MakeAgent) -> None:
    agent = agent_of(say("one"), say("two"), say("three"))
    turns = [run_agent(text, session_key="work", agent=agent) for text in ("first", "second", "third")]
    results = await asyncio.gather(*turns)
    assert [result.reply for result in results] == ["one", "two", "three"]
    assert words(requests_of(agent)[2]) == ["first", "one", "second", "two", "third"]


async def test_one_that_stops_waiting_holds_up_nobody(agent_of: MakeAgent) -> None:
    agent = agent_of(say("one"), say("three"))
    first, second, third = [
        asyncio.create_task(run_agent(text, session_key="work", agent=agent)) for text in ("first", "second", "third")
    ]
    await asyncio.sleep(0)
    second.cancel()
    async with asyncio.timeout(60):
        assert [(await first).reply, (await third).reply] == ["one", "three"]


async def test_agents_in_several_threads_wait_for_each_other(tmp_path: Path) -> None:
    config = Config(home=tmp_path / "home", workspace=tmp_path)
    replies: list[str] = []

    def work(number: int) -> None:
        model = ScriptedModel([say(f"answer {number}")])
        replies.append(run_agent_sync("hi", session_key="work", config=config, model=model).reply)

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join, 60)
    assert sorted(replies) == [f"answer {number}" for number in range(4)]


async def test_as_a_setting_it_fails_at_once(agent_of: MakeAgent) -> None:
    agent = agent_of(say("one"), config=Config(agent=AgentSettings(when_busy="fail")))
    first = asyncio.create_task(run_agent("first", session_key="work", agent=agent))
    await asyncio.sleep(0)
    with pytest.raises(SessionError, match=r"is busy with another message \(agent\.when_busy = \"fail\"\)"):
        await run_agent("second", session_key="WORK", agent=agent)
    assert (await first).reply == "one"


async def test_a_tool_that_asks_its_own_session_is_refused_rather_than_waiting_for_itself(agent_of: MakeAgent) -> None:
    agents: list[Agent] = []

    @tool(traits=Traits.READS)
    async def ask_myself() -> str:
        """Ask."""
        return (await run_agent("who am I?", session_key="work", agent=agents[0])).reply

    agents.append(agent_of(call(("ask_myself", {})), say("nobody"), tools=[ask_myself]))
    async with asyncio.timeout(60):
        result = await run_agent("go", session_key="work", agent=agents[0])
    assert "in the middle of the turn that asks this" in str(result.messages[2])


async def test_a_task_that_a_turn_left_behind_waits_like_any_other(agent_of: MakeAgent) -> None:
    agent = agent_of(say("one"), say("two"), say("three"))
    goes_on, later = asyncio.Event(), list[asyncio.Task[RunResult]]()

    async def follow_up() -> RunResult:
        await goes_on.wait()
        return await run_agent("third", session_key="work", agent=agent)

    def listen(event: RunEvent) -> None:
        if isinstance(event, Done):
            later.append(asyncio.create_task(follow_up()))

    await run_agent("first", session_key="work", agent=agent, on_event=listen)
    second = asyncio.create_task(run_agent("second", session_key="work", agent=agent))
    await asyncio.sleep(0)
    goes_on.set()
    assert [(await second).reply, (await later[0]).reply] == ["two", "three"]


async def test_without_a_session_each_message_begins_one(agent_of: MakeAgent) -> None:
    agent = agent_of(say("one"), say("two"))
    first, second = await run_agent("first", agent=agent), await run_agent("second", agent=agent)
    assert words(requests_of(agent)[1]) == ["second"]
    assert first.session_key != second.session_key
    agent = agent_of(say("three"))
    await run_agent("third", session_key=second.session_key, agent=agent)
    assert [m.text.partition("\n\n<")[0] for m in requests_of(agent)[0].messages if isinstance(m, UserMessage)] == [
        "second",
        "third",
    ]


async def test_going_on_needs_a_session(agent_of: MakeAgent) -> None:
    with pytest.raises(SessionError, match=r"^Only a session can be gone on with: name it \(session_key=…\)"):
        await run_agent(None, agent=agent_of())
