"""Making a session smaller in the background, whatever its turns do meanwhile."""

from dataclasses import replace
from functools import partial

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host, call, requests_of, say, user

from denizen import Agent, tool
from denizen.actions import Native
from denizen.context import Transcript
from denizen.engine import run_turn
from denizen.engine.compact import compaction
from denizen.engine.next_request import ReadSession
from denizen.engine.undo import undo
from denizen.entries import CompactionEntry
from denizen.messages import ToolResult
from denizen.ports import Traits
from denizen.runtime.cache import SharedCache
from denizen.worlds.world import Profile

SMALL = Profile("small", Native(), partial(Transcript, keep=4))


async def talked(agent: Agent, host: Host, turns: int) -> CompactionEntry:
    """The compaction of a session with so many turns, made while it is closed."""
    for number in range(turns):
        await agent.run(f"question {number}", session_key="s", io=host)
    entry = await compaction(agent.record, ReadSession(await agent.record.store.read("s")), host)
    assert entry
    return entry


def shown(agent: Agent) -> list[str]:
    return [message.text.partition("\n\n<time>")[0] for message in requests_of(agent)[-1].messages]


async def test_it_keeps_as_many_messages_as_the_context_says(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of("0", "1", "2", "3", "So far.", "4", profile=SMALL)
    entry = await talked(agent, host, 4)
    session = await agent.open("s")
    await session.append(entry)
    await run_turn(agent.record, session, user("question 4"), host)
    assert shown(agent) == ["[Conversation summary]\nSo far.", "question 2", "2", "question 3", "3", "question 4"]


@pytest.mark.parametrize("reopened", [False, True])
async def test_it_may_come_while_calls_of_the_next_turn_run(agent_of: MakeAgent, host: Host, reopened: bool) -> None:
    @tool(traits=Traits.READS)
    async def look() -> str:
        """Look."""
        await session.append(entry)
        return "seen"

    replies = ["0", "1", "2", "3", "So far.", call(("look", {})), say("4"), say("5")]
    agent = agent_of(*replies, profile=SMALL, tools=[look])
    entry = await talked(agent, host, 4)
    session = await agent.open("s")
    await run_turn(agent.record, session, user("question 4"), host)
    kept = ["[Conversation summary]\nSo far.", "question 2", "2", "question 3", "3", "question 4", "", "seen"]
    assert shown(agent) == kept
    if reopened:
        agent.record = replace(agent.record, states=SharedCache(1, 100))
    await run_turn(agent.record, session, user("question 5"), host)
    assert shown(agent) == [*kept, "4", "question 5"]
    assert any(isinstance(message, ToolResult) for message in requests_of(agent)[-1].messages)


async def test_it_counts_for_nothing_where_what_it_covers_was_undone(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of("0", "1", "2", "3", "So far.", "again", profile=SMALL)
    entry = await talked(agent, host, 4)
    session = await agent.open("s")
    for _ in range(3):
        await undo(agent.record, session)
    await session.append(entry)
    await run_turn(agent.record, session, user("otherwise"), host)
    assert shown(agent) == ["question 0", "0", "otherwise"]
