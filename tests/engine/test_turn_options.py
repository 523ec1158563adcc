"""What belongs to one turn alone, and turns that nobody's message begins."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host, call, requests_of, say, user

from denizen import Agent, Config, tool
from denizen.actions import Native
from denizen.config.settings import AgentSettings, BudgetSettings
from denizen.context import Transcript
from denizen.engine import Cycle, Resume, TurnOptions, run_turn, state_of
from denizen.engine.next_request import ReadSession
from denizen.engine.spending import check_budgets
from denizen.engine.turn import Start, Turn
from denizen.engine.turn_over import TurnOver
from denizen.entries import AnyEntry, AssistantEntry, CompactionEntry, StateEntry, ToolEntry
from denizen.events import RunResult
from denizen.messages import Message, Text, UserMessage
from denizen.ports import ActionFormat, Answer, AskModel, ToolContext, Toolset, Traits, View, WorldLine
from denizen.runtime.cache import SharedCache
from denizen.sessions import MemoryStore
from denizen.testing import FakeClock
from denizen.worlds.world import Profile


async def turn(agent: Agent, host: Host, start: Start, options: TurnOptions | None = None) -> RunResult:
    session = await agent.open("s")
    try:
        return await run_turn(agent.record, session, start, host, options)
    finally:
        await agent.leave(session)


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text.partition("\n\n<time>")[0] for message in messages]


@tool(traits=Traits.READS)
def where(turn: ToolContext) -> str:
    """Say it."""
    return f"{turn.channel} {turn.chat} {turn.depth}"


@tool(traits=Traits.WRITES)
def change() -> str:
    """Change something."""
    return "changed"


@tool(traits=Traits.READS | Traits.REPEATABLE)
async def consult(turn: ToolContext) -> str:
    """Ask the person."""
    return (await turn.ask("Well?")).text


async def test_a_tool_knows_channel_and_chat_of_its_own_turn(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(call(("where", {})), say("There."), tools=[where])
    result = await turn(agent, host, user("where?"), TurnOptions(channel="irc", chat="#moo", depth=2))
    assert texts(result.messages)[2] == "irc #moo 2"


async def test_one_turn_is_read_only_and_the_next_is_not(agent_of: MakeAgent, host: Host) -> None:
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


async def test_what_a_turn_spends_counts_once_and_in_the_turn_and_session_around_it(
    agent_of: MakeAgent, host: Host
) -> None:
    config = Config(agent=AgentSettings(max_cost_usd=1.0), budget=BudgetSettings(session_usd=2.0, day_usd=1.8))
    replies = [call(("where", {}), cost_usd=0.6), call(("where", {}), cost_usd=0.6), say("Late.", cost_usd=0.5)]
    agent = agent_of(*replies, say("never"), tools=[where], config=config)
    parent = Turn(agent.record, await agent.open("parent"), host, TurnOptions())
    child = await turn(agent, host, user("go"), TurnOptions(parent=parent, depth=1))
    assert (child.stop_reason, child.usage.cost_usd) == ("budget", pytest.approx(1.2))
    assert "this turn" in child.error
    with pytest.raises(TurnOver, match="this turn"):
        await check_budgets(parent)
    assert await agent.record.budget.check("s", 0.0) == ""
    assert (await turn(agent, host, user("go"))).reply == "Late."
    await agent.record.budget.charge(parent.session.key, 0.01, "m")
    assert await agent.record.budget.check(parent.session.key, 0.0) == ""


async def test_a_session_pays_for_the_turns_that_its_turns_begin(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(say("Dear.", cost_usd=1.5), config=Config(budget=BudgetSettings(session_usd=1.0)))
    parent = Turn(agent.record, await agent.open("parent"), host, TurnOptions())
    await turn(agent, host, user("go"), TurnOptions(parent=parent))
    assert "this session" in await agent.record.budget.check(parent.session.key, 0.0)


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
    state = state_of(agent.record, session)
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
    assert state_of(agent.record, session).head == session.entries[-1].id
    cast("list[AnyEntry]", session.entries).pop()
    assert state_of(agent.record, session).head == session.entries[-1].id


async def test_options_hold_until_the_turn_is_over_whoever_goes_on_with_it(agent_of: MakeAgent, host: Host) -> None:
    replies = [call(("consult", {})), call(("change", {}), ("where", {})), say("Done.")]
    first = agent_of(replies.pop(0), tools=[consult, change, where])
    parked = await turn(first, host, user("go"), TurnOptions(read_only=True, channel="irc", chat="#moo", depth=2))
    host.answer = lambda ask: Answer(ask.call_id, allow=True)
    other = agent_of(*replies, call(("change", {}), ("where", {})), say("Again."), tools=[consult, change, where])
    result = await turn(other, host, Resume())
    after = await turn(other, host, user("go"))
    assert (parked.stop_reason, result.reply) == ("parked", "Done.")
    assert "read-only" in texts(result.messages)[4]
    assert texts(result.messages)[5] == "irc #moo 2"
    assert texts(after.messages)[2:4] == ["changed", "  0"]


async def test_calls_that_a_read_only_turn_left_open_stay_refused_when_another_message_comes(
    agent_of: MakeAgent, host: Host
) -> None:
    agent = agent_of(call(("consult", {})), say("Done."), tools=[consult, change])
    await turn(agent, host, user("go"), TurnOptions(read_only=True))
    session = await agent.open("s")
    await session.append(AssistantEntry(message=call(("change", {}))))
    await session.close()
    await turn(agent, host, user("and now?"))
    [result] = [entry for entry in await agent.store.read("s") if isinstance(entry, ToolEntry)]
    assert "read-only" in result.message.text


async def test_an_option_that_holds_for_many_turns_is_written_once(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(say("1"), say("2"), say("3"))
    for options in (TurnOptions(channel="irc"), TurnOptions(channel="irc"), TurnOptions()):
        await turn(agent, host, user("go"), options)
    states = [entry for entry in await agent.store.read("s") if isinstance(entry, StateEntry)]
    assert [entry.value for entry in states if entry.name == "options"] == [{"channel": "irc"}, {}]


async def test_what_the_operator_wrote_for_a_cycle_is_no_quotation(agent_of: MakeAgent, host: Host) -> None:
    shell = Config(agent=AgentSettings(actions="shell"))
    agent = agent_of(say("$(change)"), say("Done."), tools=[change], config=shell)
    result = await turn(agent, host, Cycle("If the plants are dry, $(change)"))
    assert any("changed" in text for text in texts(result.messages))


async def test_in_working_memory_the_text_of_a_cycle_stays_until_it_is_over(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(say("$(where)"), say("$(where)"), say("Done."), tools=[where], profile="coder")
    await turn(agent, host, Cycle("Look after the plants."))
    assert all("Look after the plants." in repr(request.messages) for request in requests_of(agent))


async def test_lines_of_a_world_are_seen_though_many_sessions_came_between(agent_of: MakeAgent, host: Host) -> None:
    profile = Profile("player", Native(), lambda actions, tools: Window())
    agent = agent_of(say("Hello."), say("I wave."), profile=profile)
    record = replace(agent.record, states=SharedCache(1, 100))
    session = await agent.open("moo")
    state = state_of(record, session)
    state.observe(WorldLine("A frog sits here.", datetime(2026, 1, 1, tzinfo=UTC)))
    await run_turn(record, await agent.open("another"), user("hello"), host)
    await run_turn(record, session, Cycle(), host)
    assert texts(requests_of(agent)[1].messages) == ["A frog sits here."]


async def test_one_turn_may_have_other_tools_than_the_next(agent_of: MakeAgent, host: Host) -> None:
    seen: list[int] = []

    def context(actions: ActionFormat, tools: Toolset) -> Transcript:
        seen.append(len([*tools]))
        return Transcript(actions, tools)

    replies = [call(("where", {})), say("There."), call(("where", {})), say("Where?")]
    store = MemoryStore(clock=FakeClock())
    agent = agent_of(*replies, store=store, tools=[], profile=Profile("caller", Native(), context))
    session = await agent.open("s")
    with_tool = replace(agent.record, tools=Toolset([where]))
    first = await run_turn(with_tool, session, user("where?"), host, TurnOptions(channel="http"))
    second = await run_turn(agent.record, session, user("where?"), host)
    assert texts(first.messages)[2] == "http  0"
    assert "unknown tool 'where'" in texts(second.messages)[2]
    assert [len(request.tools) for request in requests_of(agent)] == [1, 1, 0, 0]
    assert seen == [1, 0]
