"""What belongs to one turn alone, and turns that nobody's message begins."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host, call, requests_of, say, user

from denizen import Agent, tool
from denizen.actions import Native
from denizen.engine import Cycle, Resume, TurnOptions, run_turn
from denizen.engine.next_request import ReadSession
from denizen.engine.turn import Start
from denizen.entries import AnyEntry, CompactionEntry
from denizen.events import RunResult
from denizen.messages import Message, Text, UserMessage
from denizen.ports import Answer, AskModel, ToolContext, Traits, View, WorldLine
from denizen.worlds.world import Profile


async def turn(agent: Agent, host: Host, start: Start, options: TurnOptions | None = None) -> RunResult:
    session = await agent.open("s")
    try:
        return await run_turn(agent.record, session, start, host, options)
    finally:
        await agent.leave(session)


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text.partition("<time>")[0] for message in messages]


async def test_a_tool_knows_channel_and_chat_of_its_own_turn(agent_of: MakeAgent, host: Host) -> None:
    @tool(traits=Traits.READS)
    def where(turn: ToolContext) -> str:
        """Say it."""
        return f"{turn.channel} {turn.chat} {turn.depth}"

    agent = agent_of(call(("where", {})), say("There."), tools=[where])
    result = await turn(agent, host, user("where?"), TurnOptions(channel="irc", chat="#moo", depth=2))
    assert texts(result.messages)[2] == "irc #moo 2"


async def test_one_turn_is_read_only_and_the_next_is_not(agent_of: MakeAgent, host: Host) -> None:
    @tool(traits=Traits.WRITES)
    def change() -> str:
        """Change something."""
        return "changed"

    agent = agent_of(call(("change", {})), say("No."), call(("change", {})), say("Yes."), tools=[change])
    refused = await turn(agent, host, user("go"), TurnOptions(read_only=True))
    allowed = await turn(agent, host, user("go"))
    assert "read-only" in texts(refused.messages)[2]
    assert texts(allowed.messages)[2] == "changed"


async def test_without_history_the_model_sees_this_turn_alone(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(say("1"), say("2"), say("3"))
    await turn(agent, host, user("first"))
    await turn(agent, host, user("second"), TurnOptions(history=False))
    await turn(agent, host, user("third"))
    _, second, third = requests_of(agent)
    assert texts(second.messages) == ["second"]
    assert texts(third.messages) == ["first", "1", "second", "2", "third"]


class Purse:
    """A parent's budget."""

    def __init__(self) -> None:
        self.left = 0.5

    def check(self, session_key: str, turn_usd: float) -> str:
        return "" if self.left > 0 else "The parent's budget is spent."

    def charge(self, session_key: str, cost: float | None, model: str) -> str:
        self.left -= cost or 0.0
        return ""

    def close(self) -> None:
        pass


async def test_a_turn_stays_within_its_parents_budget(agent_of: MakeAgent, host: Host) -> None:
    @tool(traits=Traits.READS)
    def look() -> str:
        """Look."""
        return "seen"

    agent = agent_of(call(("look", {}), cost_usd=0.6), say("never"), tools=[look])
    result = await turn(agent, host, user("go"), TurnOptions(budget=Purse()))
    assert (result.stop_reason, result.error) == ("budget", "The parent's budget is spent.")


async def test_a_cycle_gives_the_model_its_text_and_leaves_the_prompt_as_it_is(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(say("Hello."), say("HEARTBEAT_OK"))
    await turn(agent, host, user("hello"))
    result = await turn(agent, host, Cycle("Look after the plants."))
    first, second = requests_of(agent)
    assert (result.stop_reason, result.reply) == ("answered", "HEARTBEAT_OK")
    assert second.system == first.system
    assert "Look after the plants." in texts(second.messages)[-1]
    assert isinstance(second.messages[-1], UserMessage)


class Window:
    """A context that is all that the world has shown."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def observe(self, item: AnyEntry | WorldLine) -> None:
        if isinstance(item, WorldLine):
            self._lines.append(item.text)

    def assemble(self, view: View) -> Sequence[Message]:
        return [UserMessage([Text("\n".join(self._lines))])]

    def tokens(self, view: View) -> int:
        return 10

    async def relieve(self, view: View, level: int, ask: AskModel) -> CompactionEntry | None:
        return None


async def test_a_world_is_seen_line_by_line_and_its_lines_are_not_in_the_transcript(
    agent_of: MakeAgent, host: Host
) -> None:
    @tool(traits=Traits.EXECUTES)
    def run(command: str) -> str:
        """Run it."""
        return "ran"

    profile = Profile("player", Native(), lambda actions, tools: Window())
    agent = agent_of(say("I wave."), profile=profile, tools=[run])
    session = await agent.open("moo")
    state = agent.record.states.of(session)
    state.observe(WorldLine("A frog sits here.", datetime(2026, 1, 1, tzinfo=UTC)))
    result = await run_turn(agent.record, session, Cycle(), host)
    assert result.reply == "I wave."
    assert texts(requests_of(agent)[0].messages) == ["A frog sits here."]
    assert "frog" not in repr(session.entries)


async def test_resuming_a_session_without_an_open_turn_gives_the_last_result_again(
    agent_of: MakeAgent, host: Host
) -> None:
    agent = agent_of(say("Done."))
    await turn(agent, host, user("go"))
    assert (await turn(agent, host, Resume())).reply == "Done."


@pytest.mark.parametrize("history", [True, False])
async def test_what_was_said_without_history_is_kept(agent_of: MakeAgent, host: Host, history: bool) -> None:
    agent = agent_of(say("1"))
    await turn(agent, host, user("first"), TurnOptions(history=history))
    entries = await agent.store.read("s")
    assert [entry.message.text.partition("<")[0] for entry in entries if hasattr(entry, "message")] == ["first", "1"]


async def test_a_turn_without_history_goes_on_after_its_question_was_answered(agent_of: MakeAgent, host: Host) -> None:
    @tool(traits=Traits.SENDS)
    def send() -> str:
        """Send it."""
        return "sent"

    agent = agent_of(say("1"), call(("send", {})), say("Done."), tools=[send])
    await turn(agent, host, user("first"))
    parked = await turn(agent, host, user("second"), TurnOptions(history=False))
    host.answer = lambda ask: Answer(ask.call_id, allow=True)
    result = await turn(agent, host, Resume(), TurnOptions(history=False))
    assert (parked.stop_reason, result.reply) == ("parked", "Done.")
    assert texts(requests_of(agent)[-1].messages) == ["second", "", "sent"]


async def test_a_head_that_moved_back_is_noticed_in_the_same_list(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(say("1"), say("2"))
    await turn(agent, host, user("first"))
    session = ReadSession([*await agent.store.read("s")])
    assert agent.record.states.of(session).head == session.entries[-1].id
    cast("list[AnyEntry]", session.entries).pop()
    assert agent.record.states.of(session).head == session.entries[-1].id
