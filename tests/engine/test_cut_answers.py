"""Answers that the length limit cuts are continued once; the result says what is missing still."""

from dataclasses import dataclass

import msgspec
import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host, requests_of, run_agent, say, user

from denizen.entries import AssistantEntry, EndEntry, UserEntry
from denizen.events import Notice
from denizen.messages import AssistantMessage
from denizen.sessions import session_key

CUT_OFF = "The answer was cut off by the length limit (agent.max_tokens)."


def cut(text: str) -> AssistantMessage:
    return msgspec.structs.replace(say(text), stop_reason="length")


@pytest.mark.parametrize("profile", ["assistant", "coder"])
async def test_a_text_that_was_cut_is_continued_once_and_joined(agent_of: MakeAgent, host: Host, profile: str) -> None:
    agent = agent_of(cut("Once upon a ti"), say("me there was a fox."), say("A fox."), profile=profile, tools=[])
    result = await run_agent("Tell me a story", agent=agent, io=host)
    assert (result.reply, result.error, result.iterations) == ("Once upon a time there was a fox.", "", 2)
    assert host.of(Notice) == []
    asked = requests_of(agent)[1].messages
    assert "Once upon a ti" in str(asked[-2])
    assert "Go on exactly where it stops" in str(asked[-1])
    await run_agent("Who was it?", agent=agent)
    words = "".join(str(message) for message in requests_of(agent)[2].messages)
    assert "Once upon a ti" in words
    assert "me there was a fox." in words


async def test_what_is_still_cut_then_is_the_answer_and_the_result_says_so(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(cut("Once "), cut("upon "), say("never asked for"))
    result = await run_agent("Tell me a story", agent=agent, io=host)
    assert (result.reply, result.stop_reason, result.error) == ("Once upon ", "answered", CUT_OFF)
    assert [notice.text for notice in host.of(Notice)] == [CUT_OFF]
    end = (await agent.store.read(session_key("default")))[-1]
    assert isinstance(end, EndEntry)
    assert end.error == CUT_OFF


async def test_an_empty_answer_says_so_in_the_result(agent_of: MakeAgent) -> None:
    result = await run_agent("hi", agent=agent_of(say("  ")))
    assert (result.stop_reason, result.error) == ("answered", "The model's answer is empty.")


async def test_a_whole_answer_has_no_error(agent_of: MakeAgent) -> None:
    assert (await run_agent("hi", agent=agent_of(say("Hello.")))).error == ""


@dataclass
class Price:
    amount: int


async def test_a_typed_answer_that_was_cut_is_read_as_a_whole(agent_of: MakeAgent) -> None:
    agent = agent_of(cut('{"amo'), say('unt": 40}'))
    assert (await run_agent("How much?", agent=agent, output=Price)).output == Price(40)


async def test_a_cut_answer_is_continued_after_a_crash(agent_of: MakeAgent) -> None:
    agent = agent_of(say("a time."))
    session = await agent.open("default")
    await session.append(UserEntry(message=user("go")))
    await session.append(AssistantEntry(message=cut("Once upon ")))
    await session.close()
    assert (await run_agent(None, agent=agent)).reply == "Once upon a time."
