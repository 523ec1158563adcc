"""A model whose server leaves its calls in the text works like any other: they run, and their results come back."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import kinds, requests_of, results, run_agent, say

from denizen import Agent, tool
from denizen.actions import Native
from denizen.context import WorkingMemory
from denizen.entries import AnyEntry
from denizen.messages import Text, ToolResult, UserMessage
from denizen.models.anthropic import AnthropicModel
from denizen.models.openai import OpenAIModel
from denizen.ports import Model, Traits
from denizen.testing import LoopbackAnthropic, LoopbackOpenAI
from denizen.testing.loopback import LoopbackServer
from denizen.worlds.world import Profile

Entries = Callable[[Agent], Awaitable[list[AnyEntry]]]

TOLD = "Result of weather:\nsunny in Rome\n"
CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>'
TWO = f"Let me look.\n{CALL}\n{CALL.replace('Rome', 'Oslo')}"


@tool(traits=Traits.READS | Traits.REPEATABLE)
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


async def test_its_calls_run_and_their_results_are_reported_in_words(agent_of: MakeAgent, entries_of: Entries) -> None:
    agent = agent_of(say(TWO), say("Sunny in both."), tools=[weather])
    result = await run_agent("weather in Rome and Oslo?", agent=agent)
    assert (result.reply, result.iterations, result.stop_reason) == ("Sunny in both.", 2, "answered")
    assert [each.text for each in results(result)] == ["sunny in Rome", "sunny in Oslo"]
    said = requests_of(agent)[1].messages
    assert not any(isinstance(message, ToolResult) for message in said)
    assert said[-1] == UserMessage(
        [Text("Result of weather:\nsunny in Rome\n"), Text("Result of weather:\nsunny in Oslo\n")]
    )
    assert kinds(await entries_of(agent))[2:] == ["user", "assistant", "tool", "tool", "assistant", "end"]


async def test_a_session_that_is_opened_again_knows_its_results(agent_of: MakeAgent) -> None:
    first = agent_of(say(TWO), say("Sunny in both."), tools=[weather])
    await run_agent("weather in Rome and Oslo?", agent=first)
    again = agent_of(say("You are welcome."), tools=[weather])
    await run_agent("thanks", agent=again)
    texts = [message.text for message in requests_of(again)[0].messages]
    assert texts[1:4] == [
        TWO,
        "Result of weather:\nsunny in Rome\nResult of weather:\nsunny in Oslo\n",
        "Sunny in both.",
    ]


async def test_the_same_reply_twice_is_run_twice(agent_of: MakeAgent) -> None:
    agent = agent_of(say(CALL), say(CALL), say("Still sunny."), tools=[weather])
    result = await run_agent("weather in Rome? look twice", agent=agent)
    assert [each.text for each in results(result)] == ["sunny in Rome", "sunny in Rome"]
    assert [message.text for message in requests_of(agent)[2].messages][1:] == [CALL, TOLD, CALL, TOLD]


async def test_a_working_memory_shows_their_outputs(agent_of: MakeAgent) -> None:
    profile = Profile("coder", Native(), WorkingMemory)
    agent = agent_of(say(TWO), say("Sunny in both."), tools=[weather], profile=profile)
    result = await run_agent("weather in Rome and Oslo?", agent=agent)
    assert (result.reply, result.iterations) == ("Sunny in both.", 2)
    said = requests_of(agent)[1].messages
    assert not any(isinstance(message, ToolResult) for message in said)
    assert "sunny in Oslo" in said[-1].text


async def test_what_a_reply_shows_as_code_is_the_answer(agent_of: MakeAgent) -> None:
    agent = agent_of(say(f"The page says: `{CALL}`"), tools=[weather])
    result = await run_agent("what does the page say?", agent=agent)
    assert (result.reply, results(result)) == (f"The page says: `{CALL}`", [])


async def test_a_call_that_the_length_limit_may_have_cut_is_not_run(agent_of: MakeAgent) -> None:
    cut = say("<function=weather>\n<parameter=city>\nRo")
    agent = agent_of(type(cut)(cut.content, cut.model, cut.usage, "length"), say("Sorry."), tools=[weather])
    result = await run_agent("weather in Rome?", agent=agent)
    assert [each.is_error for each in results(result)] == [True]
    assert "cut off" in requests_of(agent)[1].messages[-1].text


SERVERS: Sequence[tuple[type[LoopbackServer], Callable[..., Model]]] = (
    (LoopbackAnthropic, AnthropicModel),
    (LoopbackOpenAI, OpenAIModel),
)


@pytest.mark.parametrize(("served_by", "client"), SERVERS, ids=["anthropic", "openai"])
async def test_no_provider_is_sent_a_result_without_a_call(
    agent_of: MakeAgent, served_by: type[LoopbackServer], client: Callable[..., Model]
) -> None:
    with served_by() as server:
        server.say(TWO, "Sunny in both.")
        agent = agent_of(model=client("m", base_url=server.base_url, api_key="k"), tools=[weather])
        result = await run_agent("weather in Rome and Oslo?", agent=agent)
        assert (result.reply, result.iterations) == ("Sunny in both.", 2)
        sent: dict[str, Any] = server.requests[1].json
        messages = json.dumps(sent["messages"])
        assert [message["role"] for message in sent["messages"] if message["role"] != "system"] == [
            "user",
            "assistant",
            "user",
        ]
        assert "Result of weather:\\nsunny in Oslo" in messages
        assert not any(word in messages for word in ('"tool_result"', '"tool_use"', '"tool_calls"', '"tool_call_id"'))
