"""The assistant with commands in its text in place of structured calls."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host, call, requests_of, results, run_agent, say

from denizen import Agent, Config, tool
from denizen.config.settings import AgentSettings, PolicySettings, ProviderSettings, Rule
from denizen.engine.resume import question_of
from denizen.entries import AnswerEntry, AnyEntry, AssistantEntry, StartedEntry, UserEntry
from denizen.errors import SessionError
from denizen.events import LlmStream, RunEvent, TextDelta, TextEnd, ToolStart
from denizen.messages import Image, Text, ToolResult, UserMessage
from denizen.ports import Answer, Steer, ToolContext, Traits
from denizen.testing import LoopbackAnthropic, LoopbackOpenAI
from denizen.worlds.code.tools.ask import ask

SHELL = Config(agent=AgentSettings(actions="shell"))
ASKS = Config(agent=AgentSettings(actions="shell"), policy=PolicySettings(rules=[Rule(tool="mark", decide="ask")]))
INTERRUPTED = "[Tool result missing — session was interrupted]"

Entries = Callable[[Agent], Awaitable[list[AnyEntry]]]


@tool(traits=Traits.READS | Traits.REPEATABLE)
def look(path: str = ".", deep: bool = False) -> str:
    """Look at something."""
    return f"{path} deep" if deep else path


@tool(traits=Traits.WRITES)
def mark(text: str) -> str:
    """Leave a mark."""
    return f"marked {text}"


@tool(traits=Traits.READS)
def show(turn: ToolContext) -> list[Text | Image]:
    """Show a picture."""
    return [Text("this:"), Image("image/png", b"png")]


TOOLS = [look, mark, show]


def told(agent: Agent, number: int = -1) -> str:
    """What the model was told last, in its request of that number."""
    messages = requests_of(agent)[number].messages
    return "\n".join(message.text for message in messages[-2:] if isinstance(message, UserMessage))


async def test_commands_run_and_their_outputs_come_back_numbered(agent_of: MakeAgent) -> None:
    agent = agent_of(
        "Looking.\n$(look src --deep)\n$(mark it's here)", "$(done All is well.)", config=SHELL, tools=TOOLS
    )
    result = await run_agent("go", agent=agent)
    assert (result.reply, result.stop_reason) == ("All is well.", "answered")
    assert told(agent) == "[1] $ look\nsrc deep\n\n[2] $ mark\nmarked it's here"


async def test_the_model_gets_a_grammar_and_no_schemas(agent_of: MakeAgent) -> None:
    agent = agent_of("Hello.", config=SHELL, tools=TOOLS)
    await run_agent("go", agent=agent)
    [request] = requests_of(agent)
    assert request.tools == ()
    assert "$(look [PATH] [--deep])" in request.system


async def test_a_reply_without_a_command_is_the_answer(agent_of: MakeAgent) -> None:
    agent = agent_of("I would use `$(look src)` here.", config=SHELL, tools=TOOLS)
    assert (await run_agent("go", agent=agent)).reply == "I would use `$(look src)` here."


async def test_done_ends_once_the_other_commands_have_run(agent_of: MakeAgent) -> None:
    agent = agent_of("$(done Marked.)\n$(mark a)\n$(mark b)", config=SHELL, tools=TOOLS)
    result = await run_agent("go", agent=agent)
    assert (result.reply, result.iterations) == ("Marked.", 1)
    assert [each.text for each in results(result)] == ["marked a", "marked b"]


async def test_of_eleven_commands_ten_run_and_the_model_is_told_which_did_not(agent_of: MakeAgent) -> None:
    many = " ".join(f"$(mark {number})" for number in range(1, 12))
    agent = agent_of(f"{many} $(done All marked.)", "$(mark 11) $(done Now all.)", config=SHELL, tools=TOOLS)
    result = await run_agent("go", agent=agent)
    assert result.reply == "Now all."
    assert [each.text for each in results(result)] == [f"marked {number}" for number in range(1, 12)]
    assert "$(mark 11)" in told(agent)


async def test_a_misuse_is_answered_with_usage_and_runs_nothing(agent_of: MakeAgent) -> None:
    agent = agent_of("$(look --deeep) $(done Seen.)", "I give up.", config=SHELL, tools=TOOLS)
    result = await run_agent("go", agent=agent)
    [refused] = results(result)
    assert refused.is_error
    assert "did you mean --deep?" in refused.text
    assert "usage: $(look [PATH] [--deep])" in refused.text
    assert told(agent).startswith("[1] $ look (failed)\n")
    assert result.reply == "I give up."


async def test_an_unknown_command_names_the_nearest(agent_of: MakeAgent) -> None:
    agent = agent_of("$(loook src)", "I see.", config=SHELL, tools=TOOLS)
    [refused] = results(await run_agent("go", agent=agent))
    assert refused.is_error
    assert "did you mean $(look)?" in refused.text


async def test_made_up_outputs_are_cut_off_and_the_model_is_told(agent_of: MakeAgent) -> None:
    invented = "$(look src)\n[1] $ look src\ninvented.py\n$(mark invented.py)"
    agent = agent_of(invented, "$(done I see.)", config=SHELL, tools=TOOLS)
    result = await run_agent("go", agent=agent)
    assert [each.text for each in results(result)] == ["src"]
    assert "made up" in told(agent)
    assert all("invented" not in message.text for message in requests_of(agent)[1].messages)


async def test_help_is_an_answer_and_no_failure(agent_of: MakeAgent) -> None:
    agent = agent_of("$(help look)", "$(help)", "Thanks.", config=SHELL, tools=TOOLS)
    one, every = results(await run_agent("go", agent=agent))
    assert not one.is_error
    assert one.text.startswith("usage: $(look [PATH] [--deep])\n")
    assert [line.split()[0] for line in every.text.splitlines()] == ["done", "help", "look", "mark", "show"]


async def test_a_picture_stays_one(agent_of: MakeAgent) -> None:
    agent = agent_of("$(show)", "I see.", config=SHELL, tools=TOOLS)
    await run_agent("go", agent=agent)
    outputs = requests_of(agent)[1].messages[-1]
    assert isinstance(outputs, UserMessage)
    assert outputs.content == [Text("[1] $ show\nthis:"), Image("image/png", b"png")]


async def test_a_question_is_parked_and_answered_later(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of("$(look a)\n$(mark b)", "$(done Marked.)", config=ASKS, tools=TOOLS)
    parked = await run_agent("go", agent=agent, io=host)
    assert parked.stop_reason == "parked"
    host.answer = lambda ask: Answer(ask.call_id, allow=True)
    result = await run_agent(None, agent=agent, io=host)
    assert result.reply == "Marked."
    assert told(agent) == "[1] $ look\na\n\n[2] $ mark\nmarked b"


async def test_after_a_crash_what_never_started_is_run_and_the_rest_is_reported(
    agent_of: MakeAgent, entries_of: Entries
) -> None:
    reply = say("$(mark a)\n$(mark b)")
    first = agent_of(config=SHELL, tools=TOOLS)
    ids = [call.id for call in first.record.calls_of(reply)]
    session = await first.open("default")
    for entry in (
        UserEntry(message=UserMessage([Text("go")])),
        AssistantEntry(message=reply),
        StartedEntry(call_id=ids[0], name="mark"),
    ):
        await session.append(entry)
    await session.close()
    agent = agent_of("$(done I don't know.)", config=SHELL, tools=TOOLS)
    result = await run_agent(None, agent=agent)
    assert [each.text for each in results(result)] == [INTERRUPTED, "marked b"]
    assert told(agent) == f"[1] $ mark (failed)\n{INTERRUPTED}\n\n[2] $ mark\nmarked b"


async def test_the_same_reply_twice_in_a_session_has_its_own_results(agent_of: MakeAgent) -> None:
    same = ["$(mark a)", "$(done Marked.)"] * 2
    agent = agent_of(*same, config=SHELL, tools=TOOLS)
    await run_agent("go", agent=agent)
    result = await run_agent("again", agent=agent)
    assert [each.text for each in results(result)] == ["marked a"]
    outputs = [message.text for message in requests_of(agent)[-1].messages if message.text.startswith("[1]")]
    assert outputs == ["[1] $ mark\nmarked a"] * 2


class Steering(Host):
    """A person who says something when the first tool starts."""

    def emit(self, event: RunEvent) -> None:
        super().emit(event)
        if isinstance(event, ToolStart):
            self.say(Steer("Rather b"))


async def test_the_user_is_heard_before_the_next_model_call(agent_of: MakeAgent) -> None:
    agent = agent_of("$(look a) $(done A.)", "$(done B, then.)", config=SHELL, tools=TOOLS)
    result = await run_agent("go", agent=agent, io=Steering())
    assert result.reply == "B, then."
    assert "Rather b" in told(agent)


async def test_a_typed_answer_comes_out_of_done(agent_of: MakeAgent) -> None:
    agent = agent_of('$(look a) $(done {"right": "a) b"})', config=SHELL, tools=TOOLS)
    result = await run_agent("go", agent=agent, output={"type": "object", "required": ["right"]})
    assert result.output == {"right": "a) b"}


async def test_structured_calls_are_honoured_all_the_same(agent_of: MakeAgent) -> None:
    agent = agent_of(call(("look", {"path": "a"}), text="$(mark b)"), "$(done Seen.)", config=SHELL, tools=TOOLS)
    result = await run_agent("go", agent=agent)
    assert [each.text for each in results(result)] == ["a"]
    later = requests_of(agent)[1]
    assert isinstance(later.messages[-2], ToolResult)
    assert "not run" in told(agent)
    assert later.tools != (), "providers refuse structured calls without the tools they name"


async def test_no_command_streams(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of("$(look a)", "$(done Seen.)", config=SHELL, tools=TOOLS)
    result = await run_agent("go", agent=agent, io=host)
    assert result.reply == "Seen."
    assert [event.event for event in host.of(LlmStream)] == [TextDelta("Seen."), TextEnd("Seen.")]


async def test_what_the_length_limit_cut_off_is_not_run_and_ends_nothing(agent_of: MakeAgent) -> None:
    cut = msgspec.structs.replace(say("$(done Marked.) $(mark a) $(mark b"), stop_reason="length")
    agent = agent_of(cut, "$(done Not yet.)", config=SHELL, tools=TOOLS)
    result = await run_agent("go", agent=agent)
    assert result.reply == "Not yet."
    assert all("cut off by the length limit" in each.text for each in results(result))


async def test_an_agent_without_tools_can_still_answer(agent_of: MakeAgent) -> None:
    agent = agent_of("$(done Hello.)", config=SHELL, tools=[])
    assert (await run_agent("go", agent=agent)).reply == "Hello."


async def test_the_offline_model_acts_natively_whatever_is_set(tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text("def hello(): ...\n")
    config = Config(model="offline", home=tmp_path / "home", workspace=tmp_path, agent=AgentSettings(actions="shell"))
    async with Agent(config, environ={}) as agent:
        result = await run_agent("Where is hello defined?", agent=agent)
    assert "hello.py" in result.reply


@pytest.mark.parametrize(("kind", "api"), [(LoopbackAnthropic, "anthropic"), (LoopbackOpenAI, "openai")])
async def test_over_the_wire(
    tmp_path: Path, kind: type[LoopbackAnthropic | LoopbackOpenAI], api: Literal["anthropic", "openai"]
) -> None:
    (tmp_path / "hello.py").write_text("print(1)\n")
    with kind() as server:
        server.say("$(read hello.py)", "$(done It prints 1 (once).)")
        providers = {"test": ProviderSettings(base_url=server.base_url, api=api)}
        config = Config(
            model="test:scripted", providers=providers, agent=SHELL.agent, home=tmp_path / "home", workspace=tmp_path
        )
        async with Agent(config, environ={}) as agent:
            result = await run_agent("What does it do?", agent=agent, on_event=lambda event: None)
        first, second = [request.json for request in server.requests]
    assert result.reply == "It prints 1 (once)."
    assert "tools" not in first
    assert "print(1)" in str(second["messages"][-1])


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        *[("open", "view"), ("cat", "view"), ("ls", "view"), ("read", "view"), ("search", "text-search")],
        *[("glob", "find"), ("str_replace", "replace"), ("execute", "run"), ("shell", "run"), ("pytest", "run")],
        *[("todo_write", "task"), ("finish", "done"), ("undo", "rollback"), ("commit", "git"), ("callers", "analyze")],
    ],
)
async def test_a_coder_is_told_the_command_that_does_what_it_wanted(agent_of: MakeAgent, said: str, meant: str) -> None:
    agent = agent_of(f"$({said} x)", "Stop.", profile="coder", config=SHELL)
    [refused] = results(await run_agent("go", agent=agent))
    assert f"unknown command {said!r}; did you mean $({meant})?" in refused.text


async def test_the_grammar_of_all_tools_of_a_coder_is_short(agent_of: MakeAgent) -> None:
    agent = agent_of("Hello.", profile="coder", config=SHELL)
    await run_agent("go", agent=agent)
    [request] = requests_of(agent)
    grammar = request.system[request.system.index("<commands>") :]
    assert len(agent.tools) > 20
    assert len(grammar) <= 3_600
    assert grammar.count("\n$(") >= len(agent.tools)


async def test_a_turn_that_was_cut_off_goes_on_only_in_the_format_it_was_begun_in(agent_of: MakeAgent) -> None:
    agent = agent_of("$(ask which one?)", config=SHELL, tools=[ask])
    assert (await run_agent("go", agent=agent)).stop_reason == "parked"
    other = agent_of("hello", tools=[ask])
    with pytest.raises(SessionError, match="--actions"):
        await run_agent(None, agent=other)
    with pytest.raises(SessionError, match="--actions"):
        await run_agent("something else", agent=other)
    assert requests_of(other) == []
    again = agent_of("As you like.", config=SHELL, tools=[ask])
    session = await again.open("default")
    asked = question_of(session.entries)
    assert asked is not None
    await session.append(AnswerEntry(call_id=asked.call_id, allow=True, text="the first"))
    await session.close()
    assert (await run_agent(None, agent=again)).reply == "As you like."
    assert "the first" in requests_of(again)[0].messages[-1].text
