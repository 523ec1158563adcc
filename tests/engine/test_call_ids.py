"""Calls have ids of ours, unique in their session; the provider's own ids are on the wire alone."""

from collections.abc import Sequence

import pytest
from tests.engine.conftest import Host, MakeAgent
from tests.engine.scene import call, requests_of, results, run_agent, say

from denizen import Config, tool
from denizen.config.settings import ProviderSettings
from denizen.entries import AnyEntry, AssistantEntry, ToolEntry
from denizen.messages import AssistantMessage, Text, ToolCall
from denizen.ports import Answer, ModelRequest, Traits
from denizen.testing import LoopbackOpenAI

LONG = "call_0__thought__" + "QUJD" * 1000


@tool(traits=Traits.SENDS)
def send(text: str) -> str:
    """Send it."""
    return f"sent {text}"


def sending(text: str, id: str) -> AssistantMessage:
    return AssistantMessage([ToolCall(id, "send", {"text": text})], stop_reason="tool_calls")


def wire_ids(server: LoopbackOpenAI) -> list[tuple[list[str], str]]:
    """The ids that the last request calls, and that of the result after them."""
    messages = server.requests[-1].json["messages"]
    called = [[each["id"] for each in message.get("tool_calls", ())] for message in messages]
    return [(ids, messages[at + 1]["tool_call_id"]) for at, ids in enumerate(called) if ids]


@pytest.mark.parametrize("first", ["call_0", LONG])
async def test_each_question_has_an_id_of_its_own_and_the_provider_gets_its_own_back(
    agent_of: MakeAgent, host: Host, loopback_openai: LoopbackOpenAI, first: str
) -> None:
    loopback_openai.say(sending("a", first), sending("b", first), "done")
    config = Config(model="test:m", providers={"test": ProviderSettings(base_url=loopback_openai.base_url)})
    host.answer = lambda ask: Answer(ask.call_id, allow=ask.args["text"] == "a")
    result = await run_agent("go", agent=agent_of(config=config, model=None, tools=[send]), io=host)
    assert [each.text for each in results(result)] == ["sent a", "not run: the user said no"]
    ids = [ask.call_id for ask in host.asked]
    assert len({*ids}) == 2
    assert all(len(each) <= 40 for each in ids)
    (sent, answered), (sent_again, answered_again) = wire_ids(loopback_openai)
    assert (sent, answered) == ([first], first)
    assert sent_again == [answered_again] != [first]


async def test_calls_of_one_reply_with_the_same_id_are_kept_apart(agent_of: MakeAgent) -> None:
    twice = AssistantMessage([ToolCall("", "send", {"text": text}) for text in "ab"], stop_reason="tool_calls")
    agent = agent_of(twice, say("done"), tools=[send], config=Config(), read_only=True)
    done = results(await run_agent("go", agent=agent))
    assert len({each.call_id for each in done}) == 2
    assert [each.sent_id for each in done] == [each.call_id for each in done]


@pytest.mark.parametrize("profile", ["assistant", "coder"])
async def test_calls_in_the_same_words_have_ids_of_their_own(agent_of: MakeAgent, host: Host, profile: str) -> None:
    words = '<tool_call>{"name": "send", "arguments": {"text": "a"}}</tool_call>'
    said = AssistantMessage([Text(words if profile == "assistant" else "$(send a)")])
    host.answer = lambda ask: Answer(ask.call_id, allow=len(host.asked) == 1)
    agent = agent_of(said, said, say("done"), tools=[send], profile=profile)
    result = await run_agent("go", agent=agent, io=host)
    assert len({ask.call_id for ask in host.asked}) == 2
    assert [each.text for each in results(result)] == ["sent a", "not run: the user said no"]


async def test_transcripts_with_the_ids_of_providers_go_on(agent_of: MakeAgent) -> None:
    agent = agent_of(call(("send", {"text": "b"})), say("done"), tools=[send], read_only=True)
    session = await agent.open("default")
    await session.append(AssistantEntry(message=sending("a", "c1")))
    await session.close()
    assert (await run_agent("go", agent=agent)).reply == "done"
    calls = ids_of(requests_of(agent)[-1])
    assert len({*calls}) == 2
    assert calls[0] == "c1"


def ids_of(request: ModelRequest) -> Sequence[str]:
    replies = (each for each in request.messages if isinstance(each, AssistantMessage))
    return [call.sent_id for reply in replies for call in reply.tool_calls]


async def test_results_are_kept_under_the_ids_of_their_calls(agent_of: MakeAgent) -> None:
    agent = agent_of(call(("send", {"text": "b"})), say("done"), tools=[send], read_only=True)
    await run_agent("go", agent=agent)
    entries: Sequence[AnyEntry] = await agent.store.read("agent:main:channel:cli:account:default:peer:direct:default")
    called = [each.id for entry in entries if isinstance(entry, AssistantEntry) for each in entry.message.tool_calls]
    assert called == [entry.message.call_id for entry in entries if isinstance(entry, ToolEntry)]
    assert "c1" not in called
