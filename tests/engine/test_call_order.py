"""Results reach the model, and the program, in the order of their calls, whatever order they finished in."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import call, requests_of, results, say, user

from denizen import Agent, Config, run_agent, tool
from denizen.config.settings import AgentSettings, AuthProfileSettings, ProviderSettings
from denizen.entries import AssistantEntry, ToolEntry, UserEntry
from denizen.messages import AssistantMessage, Text, ToolResult
from denizen.ports import Tool, Traits
from denizen.testing import FakeClock, LoopbackAnthropic, LoopbackOpenAI

READS = Traits.READS | Traits.REPEATABLE
CALLS = (("look", {"at": "a"}), ("look", {"at": "b"}), ("look", {"at": "c"}))
ANSWERS = ["seen a", "seen b", "seen c"]
WRITTEN = {
    "native": call(*CALLS),
    "shell": AssistantMessage([Text("$(look a)\n$(look b)\n$(look c)")]),
    "recovered": AssistantMessage(
        [Text("".join(f'<tool_call>{{"name": "look", "arguments": {{"at": "{at}"}}}}</tool_call>' for at in "abc"))]
    ),
}


@pytest.fixture
def look() -> Tool:
    """Looks at `a` are over last, at `c` first."""
    over = {at: asyncio.Event() for at in "abc"}
    over["c"].set()

    @tool(traits=READS)
    async def look(at: str) -> str:
        """Look at something."""
        await over[at].wait()
        if at != "a":
            over["ab"["abc".index(at) - 1]].set()
        return f"seen {at}"

    return look


def in_order(text: str) -> list[str]:
    """The answers, as they come in a text."""
    return sorted(ANSWERS, key=text.index)


@pytest.mark.parametrize("profile", ["assistant", "coder"])
@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("server", [LoopbackAnthropic, LoopbackOpenAI])
async def test_parallel_results_reach_every_provider_in_the_order_of_their_calls(
    tmp_path: Path, look: Tool, written: str, profile: str, server: type[LoopbackAnthropic | LoopbackOpenAI]
) -> None:
    actions = "shell" if written == "shell" else "native"
    with server() as provider:
        provider.say(WRITTEN[written], "Done.")
        keys = [AuthProfileSettings(id="main", api_key="a-long-enough-key")]
        api = "anthropic" if server is LoopbackAnthropic else "openai"
        config = Config(
            model="test:scripted",
            home=tmp_path / "home",
            workspace=tmp_path,
            agent=AgentSettings(actions=actions),
            providers={"test": ProviderSettings(base_url=provider.base_url, api=api, auth_profiles=keys)},
        )
        async with Agent(config, profile=profile, tools=[look], clock=FakeClock(), environ={}) as agent:
            result = await run_agent("go", agent=agent)
    assert in_order(provider.requests[-1].body.decode()) == ANSWERS
    assert [each.text for each in results(result)] == ANSWERS


async def test_the_transcript_keeps_the_order_in_which_they_finished(agent_of: MakeAgent, look: Tool) -> None:
    agent = agent_of(call(*CALLS), say("ok"), tools=[look])
    key = (await run_agent("go", agent=agent, session_key="work")).session_key
    written = [entry.message.text for entry in await agent.store.read(key) if isinstance(entry, ToolEntry)]
    assert written == ANSWERS[::-1]


async def crashed(agent: Agent, *finished: int) -> None:
    """A session whose turn died when only these of its calls had their results."""
    session = await agent.open("work")
    await session.append(UserEntry(message=user("go")))
    await session.append(AssistantEntry(message=call(*CALLS)))
    for number in finished:
        result = ToolResult(f"c{number}", "look", [Text(ANSWERS[number - 1])])
        await session.append(ToolEntry(message=result))
    await session.close()


@pytest.mark.parametrize("finished", [[2], [3], [3, 2]], ids=["the middle one", "the last", "the last two"])
async def test_a_resumed_turn_keeps_the_order_of_the_calls(agent_of: MakeAgent, finished: Sequence[int]) -> None:
    @tool(traits=READS)
    def look(at: str) -> str:
        """Look at something."""
        return f"seen {at}"

    agent = agent_of(say("ok"), tools=[look])
    await crashed(agent, *finished)
    result = await run_agent(None, session_key="work", agent=agent)
    told: list[Any] = [message for message in requests_of(agent)[0].messages if isinstance(message, ToolResult)]
    assert [each.text for each in told] == ANSWERS
    assert [each.text for each in results(result)] == ANSWERS
