"""Contexts that grow too long: before the call, and when the provider refuses."""

from collections.abc import Awaitable, Callable

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import DEFAULT, Host, call, requests_of, run_agent, say

from denizen import Agent, tool
from denizen.engine.compact import compact
from denizen.entries import AnyEntry, CompactionEntry
from denizen.errors import ModelError
from denizen.events import Compacted, Notice
from denizen.messages import AssistantMessage, Text, ToolResult
from denizen.ports import Limits, ModelRequest, Traits
from denizen.testing import ScriptedModel

Entries = Callable[[Agent], Awaitable[list[AnyEntry]]]

TOO_LONG = ModelError("prompt is too long", kind="context_overflow", status=400)


@tool(traits=Traits.READS | Traits.REPEATABLE)
def look(size: int = 10) -> str:
    """Look."""
    return "x" * size


async def _talk(agent: Agent, turns: int) -> None:
    for number in range(turns):
        await run_agent(f"question {number}", agent=agent)


async def test_a_refused_context_is_summarised_and_the_call_made_again(
    agent_of: MakeAgent, host: Host, entries_of: Entries
) -> None:
    talk = [say(f"answer {number}") for number in range(8)]
    agent = agent_of(*talk, TOO_LONG, say("they talked about numbers"), say("answer 8"))
    await _talk(agent, 8)
    result = await run_agent("question 8", agent=agent, io=host)
    assert result.reply == "answer 8"
    assert host.of(Compacted) == [Compacted(17, 11)]
    first = requests_of(agent)[-1].messages[0]
    assert first.text == "[Conversation summary]\nthey talked about numbers"
    assert any(isinstance(entry, CompactionEntry) for entry in await entries_of(agent))


async def test_the_summary_is_there_after_a_restart(agent_of: MakeAgent) -> None:
    talk = [say(f"answer {number}") for number in range(8)]
    agent = agent_of(*talk, TOO_LONG, say("they talked about numbers"), say("answer 8"))
    await _talk(agent, 9)
    again = agent_of(say("still here"))
    await run_agent("and now?", agent=again)
    texts = [message.text for message in requests_of(again)[0].messages]
    assert texts[0].endswith("they talked about numbers")
    assert not any("question 0" in text for text in texts)


async def test_long_results_are_truncated_where_a_summary_is_not_enough(agent_of: MakeAgent) -> None:
    agent = agent_of(call(("look", {"size": 30_000})), TOO_LONG, say("seen"), tools=[look])
    result = await run_agent("look", agent=agent)
    assert result.reply == "seen"
    told = [m for m in requests_of(agent)[-1].messages if isinstance(m, ToolResult)]
    assert told[0].content == [Text("x" * 20_000), Text("\n[truncated 10000 chars]")]


async def test_what_overflows_all_the_same_is_given_up(agent_of: MakeAgent) -> None:
    agent = agent_of(call(("look", {"size": 30_000})), TOO_LONG, TOO_LONG, tools=[look])
    with pytest.raises(ModelError, match="too long"):
        await run_agent("look", agent=agent)


async def test_after_a_message_that_is_too_long_the_session_goes_on(agent_of: MakeAgent) -> None:
    def strict(request: ModelRequest) -> AssistantMessage | ModelError:
        return TOO_LONG if sum(len(message.text) for message in request.messages) > 30_000 else say("Yes.")

    agent = agent_of(model=ScriptedModel([strict] * 10, limits=Limits(window=10_000)))
    await run_agent("Hello?", agent=agent)
    with pytest.raises(ModelError, match="too long"):
        await run_agent("x" * 100_000, agent=agent)
    assert (await run_agent("Are you there?", agent=agent)).reply == "Yes."


async def test_the_last_results_are_shortened_to_what_fits(agent_of: MakeAgent) -> None:
    """A local model with a small window goes on, though the last ten messages are too many for it."""

    def strict(request: ModelRequest) -> AssistantMessage | ModelError:
        return TOO_LONG if sum(len(message.text) for message in request.messages) > 24_000 else say("Done.")

    looks = [call(("look", {"size": 5_000})) for _ in range(8)]
    script = ScriptedModel([*looks[:4], *[strict] * 4], limits=Limits(window=8_000))
    result = await run_agent("look around", agent=agent_of(model=script, tools=[look]))
    assert result.reply == "Done."
    last = script.requests[-1].messages
    results = [len(message.text) for message in last if isinstance(message, ToolResult)]
    assert len(results) == 4
    assert all(500 < length < 5_000 for length in results)


async def test_without_a_summary_the_old_messages_are_cut_and_the_user_is_told(agent_of: MakeAgent, host: Host) -> None:
    talk = [say(f"answer {number}") for number in range(8)]
    agent = agent_of(*talk, TOO_LONG, ModelError("down", kind="timeout"), say("answer 8"))
    await _talk(agent, 8)
    result = await run_agent("question 8", agent=agent, io=host)
    assert result.reply == "answer 8"
    assert any("no summary" in notice.text for notice in host.of(Notice))


async def test_each_iteration_may_relieve_the_context_anew(agent_of: MakeAgent, host: Host) -> None:
    talk = [say(f"answer {number}") for number in range(8)]
    more = call(*[("look", {})] * 12)
    agent = agent_of(*talk, TOO_LONG, say("first"), more, TOO_LONG, say("second"), say("end"), tools=[look])
    await _talk(agent, 8)
    result = await run_agent("question 8", agent=agent, io=host)
    assert result.reply == "end"
    assert len(host.of(Compacted)) == 2


async def test_a_call_that_would_not_fit_is_relieved_before_it_is_made(agent_of: MakeAgent, host: Host) -> None:
    talk = [say(f"answer {number}", input=100, output=10) for number in range(7)]
    script = [*talk, say("full", input=9_000, output=10), say("they talked"), say("fits", input=500, output=5)]
    agent = agent_of(model=ScriptedModel(script, limits=Limits(window=10_000)))
    await _talk(agent, 8)
    result = await run_agent("one more", agent=agent, io=host)
    assert result.reply == "fits"
    assert len(host.of(Compacted)) == 1


async def test_nothing_is_cut_without_a_summary_before_the_provider_refused(agent_of: MakeAgent, host: Host) -> None:
    talk = [say(f"answer {number}", input=100, output=10) for number in range(7)]
    full = say("full", input=9_000, output=10)
    script = [*talk, full, ModelError("down", kind="timeout"), say("fits all the same")]
    agent = agent_of(model=ScriptedModel(script, limits=Limits(window=10_000)))
    await _talk(agent, 8)
    result = await run_agent("one more", agent=agent, io=host)
    assert result.reply == "fits all the same"
    assert len(requests_of(agent)[-1].messages) == 17
    assert host.of(Compacted) == []


async def test_where_no_summary_can_be_made_the_next_is_asked_for_when_the_context_has_grown(
    agent_of: MakeAgent,
) -> None:
    def reply(request: ModelRequest) -> AssistantMessage:
        return call(("look", {})) if "Summarise" in request.messages[-1].text else say("yes", input=used, output=1)

    async def requests(turns: int) -> int:
        agent = agent_of(model=ScriptedModel([reply] * 99, limits=Limits(window=10_000)))  # as a new process
        await _talk(agent, turns)
        return len(requests_of(agent))

    used = 100
    await requests(7)
    used = 9_000
    await requests(1)
    assert await requests(1) == 2, "one asks for a summary, the other has it all"
    assert await requests(3) == 3
    used = 10_000
    await requests(1)
    assert await requests(1) == 2
    assert await requests(1) == 1


async def test_the_summariser_is_told_what_must_last_and_shown_what_goes(agent_of: MakeAgent) -> None:
    talk = [say(f"answer {number}") for number in range(8)]
    agent = agent_of(*talk, TOO_LONG, say("summary"), say("answer 8"), tools=[look])
    await _talk(agent, 9)
    asked = requests_of(agent)[-2]
    assert asked.tools == ()
    for what in ("what the user wants", "decided and why", "names of files", "still open"):
        assert what in asked.system
    [shown] = asked.messages
    assert "User: question 0" in shown.text
    assert "question 8" not in shown.text


@pytest.mark.parametrize("by_hand", [False, True])
async def test_after_a_compaction_the_prompt_is_made_anew(agent_of: MakeAgent, host: Host, *, by_hand: bool) -> None:
    talk = [say(f"answer {number}") for number in range(8)]
    agent = agent_of(*talk, *([] if by_hand else [TOO_LONG]), say("summary"), say("answer 8"))
    await _talk(agent, 8)
    (agent.config.agent.workspace_dir / "MEMORY.md").write_text("- the user likes Rome\n")
    if by_hand:
        session = await agent.open("default")
        assert await compact(agent.record, session, host)
        await session.close()
    await run_agent("question 8", agent=agent)
    prompts = [request.system for request in requests_of(agent) if request.session_key == DEFAULT]
    assert "likes Rome" in prompts[-1]
    assert not any("likes Rome" in prompt for prompt in prompts[:-1])


async def test_the_summary_costs_and_is_counted(agent_of: MakeAgent) -> None:
    talk = [say(f"answer {number}") for number in range(8)]
    script = [*talk, TOO_LONG, say("summary", input=100, output=20), say("answer", input=30, output=4)]
    agent = agent_of(*script)
    await _talk(agent, 8)
    result = await run_agent("question 8", agent=agent)
    assert (result.usage.input, result.usage.output) == (130, 24)
    assert result.last_call_usage.input == 30
