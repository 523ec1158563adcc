"""The library's entry points."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, assert_type

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine.conftest import MakeAgent
from tests.engine.scene import DEFAULT, Host, call, requests_of, results, run_agent, say

import denizen
from denizen import Agent, Config, load_config, run_agent_sync, stream_agent, tool
from denizen.entries import AnyEntry, AssistantEntry, EndEntry, ToolEntry, UserEntry
from denizen.errors import DenizenError, ModelError
from denizen.events import Done, LlmStart, LlmStream, RunEvent, RunResult, ToolStart
from denizen.messages import AssistantMessage, Text, Thinking, ToolCall, Usage, UserMessage
from denizen.ports import Answer, FollowUp, Traits
from denizen.testing import FakeClock, LoopbackOpenAI, ScriptedModel


class Town(msgspec.Struct):
    """Where."""

    name: str


@tool
async def weather(city: str) -> str:
    """The weather."""
    return f"rain in {city}"


@tool
async def wait() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return "never"


@tool(traits=Traits.SENDS)
async def send(to: str) -> str:
    """Send it."""
    return f"sent to {to}"


def test_what_there_is_is_listed() -> None:
    assert {*denizen.__all__} < {*dir(denizen)}


async def test_blocking_inside_an_event_loop_says_what_to_do(agent_of: MakeAgent) -> None:
    with pytest.raises(DenizenError, match="await run_agent"):
        run_agent_sync("hi", agent=agent_of(say("never")))


async def test_blocking_works_in_threads(agent_of: MakeAgent) -> None:
    def ask(number: int) -> str:
        return run_agent_sync("hi", session_key=f"s{number}", agent=agent_of(say(f"hello {number}"))).reply

    replies = await asyncio.gather(*(asyncio.to_thread(ask, number) for number in range(4)))
    assert replies == [f"hello {number}" for number in range(4)]


async def test_an_agent_serves_one_event_loop_at_a_time(agent_of: MakeAgent) -> None:
    agent = agent_of(say("one"), say("two"))
    assert await asyncio.to_thread(lambda: run_agent_sync("hi", agent=agent).reply) == "one"
    assert (await run_agent("hi", agent=agent)).reply == "two"
    with pytest.raises(DenizenError, match=r"another thread.*Make one for each"):
        await asyncio.to_thread(lambda: run_agent_sync("hi", agent=agent))


async def test_a_model_can_be_named(tmp_path: Path) -> None:
    with LoopbackOpenAI() as server:
        server.say("Here.")
        environ = {"DENIZEN_HOME": str(tmp_path)}
        overrides = {"model": "offline", "providers": {"office": {"base_url": server.base_url}}}
        config = load_config(environ=environ, cwd=tmp_path, overrides=overrides)
        result = await run_agent("hi", config=config, model="office:large", tools=[])
        assert (result.reply, server.requests[0].json["model"]) == ("Here.", "large")


async def test_an_agent_runs_turns_itself(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(say("one"), say("two"), say('{"city": "Ulm"}'))
    assert (await agent.run("first", session_key="work")).reply == "one"
    assert (await agent.run("second", session_key="work", io=host)).reply == "two"
    assert host.of(Done)
    assert [message.text for message in requests_of(agent)[1].messages if message.text == "one"]
    assert (await agent.run("Where?", output=dict[str, str])).output["city"] == "Ulm"


def test_an_agent_of_a_name_has_the_users_configuration(tmp_path: Path) -> None:
    (tmp_path / "denizen.toml").write_text('model = "offline"\n[agent]\nmax_iterations = 7\n')
    environ = {"DENIZEN_HOME": str(tmp_path), "OPENAI_API_KEY": "key"}
    agent = Agent("openai:gpt-5-mini", environ=environ)
    assert (agent.model.name, agent.config.agent.max_iterations) == ("openai:gpt-5-mini", 7)
    assert Agent(environ=environ).model.name == "offline"
    with pytest.raises(TypeError, match="two models"):
        Agent("openai:gpt-5-mini", model="offline", environ=environ)


def test_what_is_no_configuration_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a Config .* or a model's name"):
        Agent({"model": "offline"}, environ={})  # pyrefly: ignore[bad-argument-type]


async def test_instructions_say_who_the_agent_is(agent_of: MakeAgent) -> None:
    agent = agent_of(say("Hello."), instructions="You sell `lamps`.")
    await agent.run("Hello")
    assert "<identity>\nYou sell `lamps`.\n</identity>" in requests_of(agent)[0].system
    assert "Denizen" not in requests_of(agent)[0].system


async def test_a_session_goes_by_the_instructions_of_today(agent_of: MakeAgent) -> None:
    agents = [agent_of(say("Hello."), instructions=text) for text in ("You sell lamps.", "You mend lamps.")]
    for agent in agents:
        await agent.run("Hello", session_key="shop")
    assert "You mend lamps." in requests_of(agents[1])[0].system


async def test_a_result_is_of_the_type_that_was_asked_for(agent_of: MakeAgent) -> None:
    agent = agent_of(*[say('{"name": "Ulm"}')] * 2)
    by_function = await denizen.run_agent("Where?", agent=agent, output=Town)
    by_agent = await agent.run("Where?", output=Town)
    assert assert_type(by_function, RunResult[Town]).output == assert_type(by_agent, RunResult[Town]).output
    assert by_agent.output == Town("Ulm")


async def test_what_an_agent_has_is_not_given_twice(agent_of: MakeAgent) -> None:
    agent = agent_of(say("hi"))
    given: list[dict[str, Any]] = [{"model": ScriptedModel([])}, {"tools": [weather]}, {"instructions": "Be brief."}]
    for options in given:
        with pytest.raises(TypeError, match="give them to Agent"):
            await run_agent("hi", agent=agent, **options)


async def test_a_program_that_has_a_configuration_may_pass_it_with_its_agent(
    agent_of: MakeAgent, tmp_path: Path
) -> None:
    result = await run_agent("hello", config=load_config(environ={}, cwd=tmp_path), agent=agent_of(say("hi")))
    assert result.reply == "hi"


async def test_what_is_no_message_is_refused_before_the_turn(agent_of: MakeAgent) -> None:
    for wrong in (5, b"hi", ["hi"]):
        with pytest.raises(TypeError, match=f"not {type(wrong).__name__}"):
            await run_agent(wrong, agent=agent_of(say("hi")))  # pyrefly: ignore[no-matching-overload]


def test_a_function_that_is_no_tool_is_reported_as_such(agent_of: MakeAgent) -> None:
    with pytest.raises(TypeError, match="put @tool above"):
        agent_of(tools=[weather.function])


async def test_half_a_character_is_a_question_mark(agent_of: MakeAgent) -> None:
    @tool
    def names(of: str) -> str:
        """The names of files, one of which isn't UTF-8."""
        return f"caf\udce9.txt of {of}"

    agent = agent_of(call(("names", {"of": "\ud83d"})), say("half: \ud83d"), tools=[names])
    result = await run_agent("which\udce9?", agent=agent)
    assert result.reply == "half: ?"
    assert [message.text for message in results(result)] == ["caf?.txt of ?"]


# Listening


async def test_an_async_listener_hears_one_event_after_the_other(agent_of: MakeAgent) -> None:
    heard: list[str] = []

    async def listen(event: RunEvent) -> None:
        await asyncio.sleep(0)
        heard.append(type(event).__name__)

    plain: list[RunEvent] = []
    agent = agent_of(*(call(("weather", {"city": "Ulm"})), say("rain")) * 2, tools=[weather])
    result = await run_agent("weather?", agent=agent, on_event=listen)
    await run_agent("weather?", agent=agent, session_key="plain", on_event=plain.append)
    assert result.reply == "rain"
    assert heard == [type(event).__name__ for event in plain]
    assert heard[-1] == "Done"


async def test_what_an_async_listener_raises_ends_the_turn(agent_of: MakeAgent) -> None:
    async def listen(event: RunEvent) -> None:
        if isinstance(event, ToolStart):
            raise ZeroDivisionError("the screen is gone")

    agent = agent_of(call(("wait", {})), say("fine"), tools=[wait])
    with pytest.raises(ZeroDivisionError):
        await run_agent("go", agent=agent, on_event=listen)
    assert (await run_agent("never mind", agent=agent)).reply == "fine"


async def test_a_listener_whose_coroutines_nobody_would_await_is_refused(agent_of: MakeAgent) -> None:
    async def listen(event: RunEvent) -> None:
        pass

    with pytest.raises(TypeError, match="async def"):
        await run_agent("go", agent=agent_of(say("fine")), on_event=lambda event: listen(event))  # noqa: PLW0108


async def test_a_turn_ends_once_even_if_the_listener_breaks_on_its_end(
    agent_of: MakeAgent, entries_of: Callable[[Agent], Awaitable[list[AnyEntry]]]
) -> None:
    def listen(event: RunEvent) -> None:
        if isinstance(event, Done):
            raise ZeroDivisionError("the screen is gone")

    agent = agent_of(say("fine"))
    message = UserMessage([Text("go")], id="m1")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await run_agent(message, agent=agent, on_event=listen)
    assert [entry.stop_reason for entry in await entries_of(agent) if isinstance(entry, EndEntry)] == ["answered"]
    assert (await run_agent(message, agent=agent)).reply == "fine"
    assert len(requests_of(agent)) == 1


async def test_a_failure_reaches_the_caller_of_an_async_listener(agent_of: MakeAgent) -> None:
    async def listen(event: RunEvent) -> None:
        pass

    with pytest.raises(ModelError, match="on fire"):
        await run_agent("go", agent=agent_of(ModelError("it is on fire")), on_event=listen)


async def test_a_host_and_a_listener_both_hear(agent_of: MakeAgent, host: Host) -> None:
    events: list[RunEvent] = []
    host.say(FollowUp("and tomorrow?"))
    host.answer = lambda ask: Answer(ask.call_id, allow=True)
    agent = agent_of(call(("send", {"to": "Ann"})), say("today"), say("tomorrow"), tools=[send])
    result = await run_agent("weather?", agent=agent, io=host, on_event=events.append)
    assert result.reply == "tomorrow"
    assert [message.text for message in results(result)] == ["sent to Ann"]
    assert events == host.events


# Streaming


async def test_events_of_a_turn_with_a_host_are_streamed_too(agent_of: MakeAgent, host: Host) -> None:
    events = [event async for event in stream_agent("hi", agent=agent_of(say("hello")), io=host)]
    assert events == host.events
    assert isinstance(events[0], LlmStart)
    assert isinstance(events[-1], Done)


async def test_closing_a_stream_cancels_the_turn_and_frees_the_session(agent_of: MakeAgent) -> None:
    agent = agent_of(call(("wait", {})), say("fine"), tools=[wait])
    async with aclosing(stream_agent("go", agent=agent)) as events:
        async for event in events:
            if isinstance(event, ToolStart):
                break
    assert (await run_agent("never mind", agent=agent)).reply == "fine"


async def test_a_stream_ends_with_done_and_then_the_failure(agent_of: MakeAgent) -> None:
    events: list[RunEvent] = []

    async def read() -> None:
        async for event in stream_agent("go", agent=agent_of(ModelError("it is on fire"))):
            events.append(event)

    with pytest.raises(ModelError, match="on fire"):
        await read()
    assert isinstance(events[-1], Done)
    assert (events[-1].result.stop_reason, events[-1].result.error) == ("error", "it is on fire")


async def test_a_slow_reader_misses_nothing(agent_of: MakeAgent) -> None:
    words = "".join(f"{number} " for number in range(500))
    shown = ""
    async for event in stream_agent("count", agent=agent_of(say(words))):
        await asyncio.sleep(0)
        if isinstance(event, LlmStream) and (delta := getattr(event.event, "delta", "")):
            shown += delta
    assert shown == words


# The same with and without events, and in the transcript

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_USAGE = st.builds(
    Usage,
    *[st.none() | st.integers(0, 10_000)] * 4,
    cost_usd=st.just(0.0) | st.floats(0, 0.01),
)
_PART = (
    st.builds(Text, _TEXT)
    | st.builds(Thinking, _TEXT, _TEXT)
    | st.builds(ToolCall, st.just("c"), st.sampled_from(["weather", "none"]), st.fixed_dictionaries({"city": _TEXT}))
)
_REPLY = st.builds(AssistantMessage, st.lists(_PART, max_size=4), st.just("scripted"), _USAGE)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(replies=st.lists(_REPLY, max_size=4))
def test_a_turn_is_the_same_whether_it_streams(
    replies: list[AssistantMessage], tmp_path_factory: pytest.TempPathFactory
) -> None:
    script = [*replies, *[say("That is all.")] * 2]
    buffered, kept = _play(script, tmp_path_factory.mktemp("a"), None)
    streamed, _ = _play(script, tmp_path_factory.mktemp("b"), lambda event: None)
    assert streamed == buffered
    said = [entry.message for entry in kept if isinstance(entry, UserEntry | AssistantEntry | ToolEntry)]
    assert said == buffered.messages
    [end] = [entry for entry in kept if isinstance(entry, EndEntry)]
    assert (end.usage, end.last_call_usage) == (buffered.usage, buffered.last_call_usage)
    assert (end.iterations, end.stop_reason) == (buffered.iterations, buffered.stop_reason)


def _play(script: list[AssistantMessage], folder: Path, listen: Callable[[RunEvent], None] | None) -> Any:
    async def play() -> Any:
        config = load_config(environ={"DENIZEN_HOME": str(folder)}, cwd=folder)
        model = ScriptedModel(script)
        async with Agent(config, tools=[weather], model=model, clock=FakeClock(), environ={}) as agent:
            result = await run_agent("weather?", agent=agent, on_event=listen)
            return result, await agent.store.read(DEFAULT)

    return asyncio.run(play())


async def test_an_agent_without_commands_tries_no_sandbox(tmp_path: Path) -> None:
    tried, bwrap = tmp_path / "tried", tmp_path / "bin/bwrap"
    bwrap.parent.mkdir()
    bwrap.write_text(f"#!/bin/sh\n: > {tried}; exit 1\n")
    bwrap.chmod(0o755)
    (tmp_path / "workspace").mkdir()
    config = Config(home=tmp_path / "home", workspace=tmp_path / "workspace")
    environ = {"PATH": str(bwrap.parent)}
    async with Agent(config, model=ScriptedModel(["Hi."]), tools=[weather], environ=environ) as agent:
        await agent.run("hi")
        assert not tried.exists()
        assert not agent.record.sandbox.confines
        assert tried.exists()
