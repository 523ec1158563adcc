"""A transcript that damage, or another version, has changed: the session goes on, and providers take what is sent."""

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import call, requests_of, run_agent, say, user
from tests.pairs import calls_are_paired

from denizen import Agent, tool
from denizen.engine.resume import question_of, unfinished
from denizen.engine.undo import redo, undo
from denizen.entries import AnswerEntry, AssistantEntry, CompactionEntry, StateEntry, SystemEntry, UserEntry
from denizen.errors import DenizenError
from denizen.messages import AssistantMessage, Message, Text, UserMessage
from denizen.ports import Traits
from denizen.worlds.code.work import last_task_spec, unfinished_task_spec


@tool(traits=Traits.READS | Traits.REPEATABLE)
def look(path: str) -> str:
    """Look."""
    return f"this is {path}"


@tool(traits=Traits.WRITES)
def mark(what: str) -> str:
    """Leave a mark."""
    return f"marked {what}"


@tool(traits=Traits.SENDS)
def send(what: str) -> str:
    """Send it."""
    return f"sent {what}"


TOOLS = (look, mark)
Make = Callable[..., Agent]


@pytest.fixture(params=["assistant", "coder"])
def make(request: pytest.FixtureRequest, agent_of: MakeAgent) -> Make:
    return functools.partial(agent_of, tools=TOOLS, profile=request.param)


def sound(messages: Sequence[Message]) -> bool:
    """Whether providers take it: the user begins and has the last word, and each call has its one result after it."""
    begins_and_ends_well = isinstance(messages[0], UserMessage) and not isinstance(messages[-1], AssistantMessage)
    return begins_and_ends_well and calls_are_paired(messages)


async def lived(agent: Agent, tmp_path: Path) -> tuple[Path, list[str]]:
    """The lines of a session with calls, a compaction, and a turn that was taken back."""
    for text in ("first", "second"):
        await run_agent(text, agent=agent)
    session = await agent.open("default")
    asked = [entry.id for entry in session.entries if isinstance(entry, AssistantEntry)]
    await session.append(CompactionEntry(last=asked[-1], summary="They have met."))
    await session.close()
    await run_agent("third", agent=agent)
    session = await agent.open("default")
    await undo(agent.record, session)
    await session.append(SystemEntry(text="The light is on."))
    await session.close()
    await run_agent("fourth", agent=agent)
    [file] = (tmp_path / "home" / "sessions").rglob("*.jsonl")
    return file, file.read_text().splitlines(keepends=True)


REPLIES = (
    call(("look", {"path": "a"}), ("mark", {"what": "b"}), text="Let me see."),
    say("Seen."),
    call(("look", {"path": "c"})),
    say("That's it."),
    call(("mark", {"what": "d"})),
    say("Done."),
    call(("mark", {"what": "e"})),
    say("At last."),
)


def damaged(lines: list[str]) -> Iterator[list[str]]:
    """The lines with each of them missing, twice, later than it was, of another type, or without its words."""
    for at, line in enumerate(lines):
        yield lines[:at] + lines[at + 1 :]
        yield [*lines[:at], line, *lines[at:]]
        yield [*lines[:at], *lines[at + 1 : at + 3], line, *lines[at + 3 :]]
        yield [*lines[:at], line.replace('"type":', '"type":"x","kind":', 1), *lines[at + 1 :]]
        yield [*lines[:at], line.replace('"content":[', '"content":[],"more":[', 1), *lines[at + 1 :]]


async def test_whatever_became_of_its_lines_the_next_message_is_answered(agent_of: MakeAgent, tmp_path: Path) -> None:
    file, lines = await lived(agent_of(*REPLIES, tools=TOOLS), tmp_path)
    for number, kept in enumerate(damaged(lines)):
        text = "".join(kept)
        file.write_text(text)
        agent = agent_of(call(("look", {"path": "x"})), say("Here."), tools=TOOLS)
        assert (await run_agent("Go on", agent=agent)).reply == "Here.", number
        assert all(sound(request.messages) for request in requests_of(agent)), number
        assert file.read_text().startswith(text), number


async def test_any_beginning_of_a_session_goes_on(agent_of: MakeAgent, tmp_path: Path) -> None:
    """What a crash leaves, also one amid a compaction, an undo, and a question to a person."""
    ask = call(("send", {"what": "f"}))
    agent = agent_of(*REPLIES, ask, say("Sent."), tools=[*TOOLS, send])
    file, _ = await lived(agent, tmp_path)
    assert (await run_agent("send", agent=agent)).stop_reason == "parked"
    session = await agent.open("default")
    question = question_of(session.entries)
    assert question is not None
    await session.append(AnswerEntry(call_id=question.call_id, allow=True))
    await session.close()
    assert (await run_agent(None, agent=agent)).reply == "Sent."
    lines = file.read_text().splitlines(keepends=True)
    for end in range(1, len(lines)):
        file.write_text("".join(lines[:end]) + lines[end][:40])
        agent = agent_of(call(("look", {"path": "x"})), say("Here."), say("And here."), tools=[*TOOLS, send])
        session = await agent.open("default")
        left = unfinished(session.entries)
        await session.close()
        stopped = (await run_agent(None, agent=agent)).stop_reason if left else "answered"
        assert stopped in {"answered", "parked"}, end
        if stopped == "answered":
            assert (await run_agent("Go on", agent=agent)).stop_reason == "answered", end
        assert all(sound(request.messages) for request in requests_of(agent)), end
        assert file.read_text().startswith("".join(lines[:end])), end


VALUES = [7, None, "text", [], [1], {}, {"text": 5}, {"to": 1}, {"job": 3}, {"folder": 1}, {"tool": {}}]
NAMES = ["prompt", "approved", "recalled", "undo", "undone", "task", "copy", "plan"]


@pytest.mark.parametrize("name", NAMES)
async def test_state_that_makes_no_sense_is_passed_over(make: Make, name: str) -> None:
    agent = make(*[say("Hello.")] * 2 * len(VALUES))
    for value in VALUES:
        session = await agent.open("default")
        await session.append(StateEntry(name=name, value=value))
        assert unfinished_task_spec(session.entries) is last_task_spec(session.entries) is None
        with pytest.raises(DenizenError, match="nothing to redo"):
            await redo(agent.record, session)
        await session.close()
        assert (await run_agent("Hi", agent=agent)).reply == "Hello."


async def test_a_conversation_whose_beginning_is_lost_begins_with_the_user(make: Make, tmp_path: Path) -> None:
    file, lines = await lived(make(*REPLIES), tmp_path)
    asked = next(at for at, line in enumerate(lines) if '"type":"user"' in line)
    file.write_text("".join(lines[:asked] + lines[asked + 1 : asked + 2]))
    agent = make(say("I see."))
    await run_agent(None, agent=agent)
    [request] = requests_of(agent)
    assert sound(request.messages)
    assert request.messages[0].text == "[What was said before this is missing from the transcript.]"


async def test_an_answer_that_broke_off_is_given_anew(make: Make) -> None:
    agent = make(say("All of it."))
    session = await agent.open("default")
    await session.append(UserEntry(message=user("go")))
    await session.append(AssistantEntry(message=AssistantMessage([Text("Half of")], stop_reason="aborted")))
    await session.close()
    assert (await run_agent(None, agent=agent)).reply == "All of it."
    [request] = requests_of(agent)
    assert sound(request.messages)
    assert "Your answer was broken off. Give it again." in request.messages[-1].text
