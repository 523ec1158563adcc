"""What a person and a program get of a reply while it streams."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host, call, run_agent, say

from denizen import Agent, Config, tool
from denizen.config.settings import AgentSettings
from denizen.entries import AnyEntry, AssistantEntry
from denizen.events import Finished, LlmEnd, LlmStream, StreamEvent, TextDelta, TextEnd, Withdrawn
from denizen.messages import AssistantMessage, Text
from denizen.ports import ModelRequest, Traits
from denizen.testing import ScriptedModel

SHELL = Config(agent=AgentSettings(actions="shell"))
CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>'
KEY = "sk-canary-1234567890abcdef"


@tool(traits=Traits.READS | Traits.REPEATABLE)
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


class InPieces(ScriptedModel):
    """Streams its one reply in pieces, and stays silent then if it shall hang."""

    def __init__(self, *pieces: str, hangs: bool = False) -> None:
        super().__init__(())
        self._pieces = pieces
        self._hangs = hangs
        self.spoke = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        for piece in self._pieces:
            yield TextDelta(piece)
        self.spoke.set()
        if self._hangs:
            await asyncio.Event().wait()
        text = "".join(self._pieces)
        yield TextEnd(text)
        yield Finished(AssistantMessage([Text(text)], self.name))


def _words(host: Host) -> str:
    """The words that count: what was taken back doesn't."""
    words = ""
    for event in host.events:
        match event:
            case LlmStream(event=TextDelta(delta=delta)):
                words += delta
            case Withdrawn(text=text):
                assert words.endswith(text)
                words = words.removesuffix(text)
            case _:
                pass
    return words


async def _heard(agent: Agent, host: Host) -> str:
    await run_agent("weather in Rome?", agent=agent, io=host)
    return _words(host)


async def test_a_call_in_the_text_is_not_shown(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(say(f"Let me look.\n{CALL}"), say("Sunny."), tools=[weather])
    assert (await _heard(agent, host)).split() == ["Let", "me", "look.", "Sunny."]
    assert host.of(Withdrawn) == []
    assert host.of(LlmEnd)[0].message.text == f"Let me look.\n{CALL}"
    assert "tool_call" not in str(host.of(LlmStream))


@pytest.mark.parametrize("reply", ["Well. $(weather Rome)", "$(weather Rome)\nThat's it."])
async def test_no_command_is_shown(agent_of: MakeAgent, host: Host, reply: str) -> None:
    agent = agent_of(reply, "$(done Sunny.)", tools=[weather], config=SHELL)
    words = await _heard(agent, host)
    assert words.replace(" ", "") == reply.replace("$(weather Rome)", "").strip().replace(" ", "") + "Sunny."
    assert "$(" not in str(host.of(LlmStream))


@pytest.mark.parametrize("config", [Config(), SHELL], ids=["native", "shell"])
async def test_an_example_is_shown_whole_at_the_end(agent_of: MakeAgent, host: Host, config: Config) -> None:
    text = f'For example, you can write "{CALL}" to ask for it.'
    assert await _heard(agent_of(say(text), tools=[weather], config=config), host) == text
    assert host.of(Withdrawn) == []


@pytest.mark.parametrize("config", [Config(), SHELL], ids=["native", "shell"])
async def test_words_come_before_the_reply_is_complete(agent_of: MakeAgent, host: Host, config: Config) -> None:
    model = InPieces("Here", " it", " is", hangs=True)
    turn = asyncio.create_task(_heard(agent_of(model=model, tools=[weather], config=config), host))
    await model.spoke.wait()
    assert _words(host) == "Here it is"
    turn.cancel()
    await asyncio.wait([turn])


async def test_the_end_of_a_part_says_what_was_shown_of_it(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(say(f"Let me look.\n{CALL}"), say("Sunny."), tools=[weather])
    await _heard(agent, host)
    ends = [event.event.text for event in host.of(LlmStream) if isinstance(event.event, TextEnd)]
    assert [end.strip() for end in ends] == ["Let me look.", "Sunny."]


async def test_words_that_were_a_thought_are_taken_back(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(say("They want the weather.\n</think>\nSunny."), tools=[weather])
    assert await _heard(agent, host) == "Sunny."
    assert [event.text.strip() for event in host.of(Withdrawn)] == ["They want the weather."]


async def test_a_call_that_is_recovered_from_words_that_streamed_is_taken_back(agent_of: MakeAgent, host: Host) -> None:
    json = '{"id": "1", "type": "function", "function": {"name": "weather", "arguments": {"city": "Rome"}}}'
    agent = agent_of(say(f"Let me look.\n{json}"), say("Sunny."), tools=[weather])
    assert await _heard(agent, host) == "Let me look.Sunny."
    assert [event.text for event in host.of(Withdrawn)] == [f"Let me look.\n{json}"]


async def test_a_fence_that_holds_no_call_is_shown_at_the_end(agent_of: MakeAgent, host: Host) -> None:
    text = 'Write\n```json\n{"name": "weather", "arguments": {"city": "Rome"}}\n```\nto ask for it.'
    assert await _heard(agent_of(say(text), tools=[weather]), host) == text
    assert host.of(Withdrawn) == []


async def test_words_before_an_answer_that_stands_alone_are_taken_back(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of("Now I know. $(done Sunny.)", tools=[weather], config=SHELL)
    assert await _heard(agent, host) == "Sunny."
    assert [event.text.strip() for event in host.of(Withdrawn)] == ["Now I know."]


async def test_beside_structured_calls_all_words_are_shown(agent_of: MakeAgent, host: Host) -> None:
    asks = call(("weather", {"city": "Rome"}), text="<think>Hm.</think>Let me look [at it")
    assert await _heard(agent_of(asks, say("Sunny."), tools=[weather]), host) == "Let me look [at itSunny."
    assert host.of(Withdrawn) == []


async def test_a_secret_next_to_a_call_is_not_shown_in_pieces_either(agent_of: MakeAgent, host: Host) -> None:
    pieces = [*f"It is {KEY} <b> {KEY}, [1] or {KEY[:8]}"]
    agent = agent_of(model=InPieces(*pieces), tools=[weather], environ={"SOME_KEY": KEY})
    assert await _heard(agent, host) == f"It is [redacted:SOME_KEY] <b> [redacted:SOME_KEY], [1] or {KEY[:8]}"


async def test_a_cancelled_turn_keeps_the_words_that_were_shown(
    agent_of: MakeAgent, host: Host, entries_of: Callable[[Agent], Awaitable[list[AnyEntry]]]
) -> None:
    agent = agent_of(model=(model := InPieces("Let me", " look.", CALL, hangs=True)), tools=[weather])
    turn = asyncio.create_task(_heard(agent, host))
    await model.spoke.wait()
    turn.cancel()
    await asyncio.wait([turn])
    kept = [entry.message for entry in await entries_of(agent) if isinstance(entry, AssistantEntry)]
    assert [(message.text, message.stop_reason) for message in kept] == [("Let me look.", "aborted")]
