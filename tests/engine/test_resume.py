"""Going on after a crash: what ran, what didn't, and what nobody knows."""

from collections.abc import Awaitable, Callable

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host, call, requests_of, results, run_agent, say, user

from denizen import Agent, tool
from denizen.entries import AnyEntry, AssistantEntry, EndEntry, StartedEntry, UserEntry
from denizen.errors import ModelError, SessionError
from denizen.events import Done
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult, UserMessage
from denizen.ports import Traits

Entries = Callable[[Agent], Awaitable[list[AnyEntry]]]

INTERRUPTED = "[Tool result missing — session was interrupted]"


@tool(traits=Traits.READS | Traits.REPEATABLE)
def look() -> str:
    """Look."""
    return "seen"


@tool(traits=Traits.WRITES)
def mark() -> str:
    """Leave a mark."""
    return "marked"


async def _crashed(agent: Agent, *entries: AnyEntry) -> None:
    """A session that ends in the middle of a turn."""
    session = await agent.open("default")
    for entry in (UserEntry(message=user("go")), *entries):
        await session.append(entry)
    await session.close()


async def test_a_call_that_never_started_is_run(agent_of: MakeAgent) -> None:
    agent = agent_of(say("done"), tools=[look, mark])
    await _crashed(agent, AssistantEntry(message=call(("mark", {}))))
    result = await run_agent(None, agent=agent)
    assert results(result)[0].text == "marked"
    assert result.reply == "done"


async def test_a_call_that_had_started_is_reported_as_interrupted(agent_of: MakeAgent) -> None:
    agent = agent_of(say("I don't know"), tools=[look, mark])
    await _crashed(agent, AssistantEntry(message=call(("mark", {}))), StartedEntry(call_id="c1", name="mark"))
    result = await run_agent(None, agent=agent)
    assert (results(result)[0].text, results(result)[0].is_error) == (INTERRUPTED, True)


async def test_a_repeatable_call_is_run_again(agent_of: MakeAgent) -> None:
    agent = agent_of(say("done"), tools=[look, mark])
    await _crashed(agent, AssistantEntry(message=call(("look", {}))), StartedEntry(call_id="c1", name="look"))
    assert results(await run_agent(None, agent=agent))[0].text == "seen"


async def test_a_new_message_comes_after_what_was_left_open_is_settled(agent_of: MakeAgent) -> None:
    agent = agent_of(say("done"), tools=[look, mark])
    await _crashed(agent, AssistantEntry(message=call(("mark", {}), ("look", {}))))
    await run_agent("and?", agent=agent)
    seen = [type(message).__name__ for message in requests_of(agent)[0].messages]
    assert seen == ["UserMessage", "AssistantMessage", "ToolResult", "ToolResult", "UserMessage"]


async def test_a_message_without_an_answer_is_answered(agent_of: MakeAgent) -> None:
    agent = agent_of(say("here I am"))
    await _crashed(agent)
    assert (await run_agent(None, agent=agent)).reply == "here I am"


async def test_a_turn_that_ended_before_its_answer_was_shown_is_shown_when_asked_for_again(
    agent_of: MakeAgent, host: Host
) -> None:
    agent = agent_of(say("first"), call(("look", {})), say("done", input=9, output=2), tools=[look])
    await run_agent("one", agent=agent)
    ended = await run_agent("two", agent=agent)
    again = await run_agent(None, agent=agent, io=host)
    assert (again.reply, again.stop_reason, again.usage) == ("done", "answered", ended.usage)
    assert again.messages == ended.messages
    assert host.of(Done) == [Done(again)]


async def test_a_session_where_nothing_was_said_has_nothing_to_go_on_with(agent_of: MakeAgent) -> None:
    agent = agent_of(say("done"))
    with pytest.raises(SessionError, match=r"^Session .* has nothing left to do; give it a message\.$"):
        await run_agent(None, agent=agent)


async def test_a_second_writer_is_told(agent_of: MakeAgent) -> None:
    first, second = agent_of(say("a")), agent_of(say("b"))
    session = await first.open("default")
    with pytest.raises(SessionError):
        await run_agent("hi", agent=second)
    await session.close()
    assert (await run_agent("hi", agent=second)).reply == "b"


async def test_an_answer_that_was_written_is_not_asked_for_again(agent_of: MakeAgent) -> None:
    agent = agent_of(say("never"))
    await _crashed(agent, AssistantEntry(message=say("it is 42", input=5, output=2)))
    result = await run_agent(None, agent=agent)
    assert (result.reply, result.usage.input, requests_of(agent)) == ("it is 42", 5, [])


async def test_calls_of_another_branch_are_not_run_in_a_fork(agent_of: MakeAgent, entries_of: Entries) -> None:
    agent = agent_of(say("I see"), tools=[look, mark])
    await _crashed(agent, AssistantEntry(message=call(("mark", {}))))
    await agent.store.fork("default", "other")
    result = await run_agent("and?", agent=agent, session_key="other")
    told = [m.text for m in requests_of(agent)[0].messages if isinstance(m, ToolResult)]
    assert told == ["not run: this conversation branched off before the call was"]
    assert result.reply == "I see"


async def test_calls_with_one_id_or_none_are_told_apart(agent_of: MakeAgent) -> None:
    twins = AssistantMessage([ToolCall("", "look", {}), ToolCall("", "mark", {})], stop_reason="tool_calls")
    agent = agent_of(twins, say("done"), tools=[look, mark])
    await run_agent("go", agent=agent)
    told = {m.call_id: m.text for m in requests_of(agent)[1].messages if isinstance(m, ToolResult)}
    assert sorted(told.values()) == ["marked", "seen"]


async def test_a_message_whose_turn_failed_is_tried_again_when_it_comes_again(agent_of: MakeAgent) -> None:
    agent = agent_of(ModelError("down", kind="timeout"), say("up"))
    message = UserMessage([Text("hi")], id="mail-1")
    with pytest.raises(ModelError):
        await run_agent(message, agent=agent)
    assert (await run_agent(message, agent=agent)).reply == "up"


async def test_a_session_that_was_left_in_the_middle_is_listed_as_unfinished(agent_of: MakeAgent) -> None:
    agent = agent_of(say("done"), tools=[look])
    await _crashed(agent, AssistantEntry(message=call(("look", {}))))
    assert [info.stop_reason for info in await agent.store.list()] == ["unfinished"]
    await run_agent(None, agent=agent)
    assert [info.stop_reason for info in await agent.store.list()] == ["answered"]


async def test_a_new_message_after_a_crash_begins_a_turn_of_its_own(agent_of: MakeAgent, entries_of: Entries) -> None:
    agent = agent_of(say("fresh", input=3, output=1), tools=[look])
    await _crashed(agent, AssistantEntry(message=call(("look", {}), input=100, output=10)))
    result = await run_agent("and?", agent=agent)
    assert (result.iterations, result.usage.input, result.messages[0].text) == (1, 3, "and?")
    assert [entry.stop_reason for entry in await entries_of(agent) if isinstance(entry, EndEntry)] == [
        "error",
        "answered",
    ]
