"""The loop: one message becomes one finished turn."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host, call, kinds, requests_of, run_agent, say

from denizen import Agent, Config, tool
from denizen.config.settings import AgentSettings
from denizen.entries import AnyEntry, AssistantEntry, EndEntry
from denizen.errors import ModelError, ToolRefused
from denizen.events import (
    Done,
    Failed,
    LlmEnd,
    LlmStart,
    LlmStream,
    Notice,
    StreamEvent,
    TextDelta,
    ToolCallEnd,
    ToolEnd,
    ToolStart,
    ToolUpdate,
    Withdrawn,
)
from denizen.messages import AssistantMessage, Image, Text, ToolCall, ToolResult, Usage, UserMessage
from denizen.ports import Schema, ToolContext, Traits

Entries = Callable[[Agent], Awaitable[list[AnyEntry]]]


@tool(traits=Traits.READS | Traits.REPEATABLE)
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


async def test_a_message_becomes_an_answer_and_a_transcript(agent_of: MakeAgent, entries_of: Entries) -> None:
    agent = agent_of(say("hello!", input=10, output=3))
    result = await run_agent("hi", agent=agent)
    assert (result.reply, result.iterations, result.stop_reason) == ("hello!", 1, "answered")
    assert [message.text for message in result.messages] == ["hi", "hello!"]
    assert kinds(await entries_of(agent)) == ["session", "state", "user", "assistant", "end"]


async def test_tools_run_until_the_model_answers(agent_of: MakeAgent, entries_of: Entries) -> None:
    agent = agent_of(call(("weather", {"city": "Rome"})), say("It is sunny."), tools=[weather])
    result = await run_agent("weather in Rome?", agent=agent)
    assert (result.reply, result.iterations) == ("It is sunny.", 2)
    assert isinstance(reply := result.messages[1], AssistantMessage)
    assert result.messages[2] == ToolResult(reply.tool_calls[0].id, "weather", [Text("sunny in Rome")], wire_id="c1")
    assert kinds(await entries_of(agent))[2:] == ["user", "assistant", "tool", "assistant", "end"]


async def test_a_call_that_may_not_run_twice_is_announced_before_it_runs(
    agent_of: MakeAgent, entries_of: Entries
) -> None:
    @tool(traits=Traits.WRITES)
    def save() -> str:
        """Save."""
        return "saved"

    agent = agent_of(call(("save", {})), say("done"), tools=[save])
    await run_agent("save it", agent=agent)
    assert kinds(await entries_of(agent))[3:6] == ["assistant", "started", "tool"]


async def test_the_model_sees_the_session_so_far(agent_of: MakeAgent) -> None:
    agent = agent_of(say("I am Den."), say("Den, as I said."))
    await run_agent("who are you?", agent=agent)
    await run_agent("again?", agent=agent)
    seen = [message.text.partition("\n\n<time>")[0] for message in requests_of(agent)[1].messages]
    assert seen == ["who are you?", "I am Den.", "again?"]


async def test_the_prompt_is_byte_identical_through_a_session_and_its_restarts(agent_of: MakeAgent) -> None:
    agent = agent_of(call(("weather", {"city": "Rome"})), say("sunny"), say("yes"))
    await run_agent("weather?", agent=agent)
    (agent.config.agent.workspace_dir / "MEMORY.md").write_text("- 2026-11-21: the user likes Rome\n")
    again = agent_of(say("still"))
    await run_agent("sure?", agent=agent)
    await run_agent("really?", agent=again)
    prompts = {request.system for request in [*requests_of(agent), *requests_of(again)]}
    assert len(prompts) == 1


async def test_the_prompt_is_made_anew_on_a_new_day(agent_of: MakeAgent, clock: object) -> None:
    agent = agent_of(say("a"), say("b"))
    await run_agent("one", agent=agent)
    (agent.config.agent.workspace_dir / "MEMORY.md").write_text("- 2026-11-21: the user likes Rome\n")
    await agent.clock.sleep(86_400)
    await run_agent("two", agent=agent)
    assert ["likes Rome" in request.system for request in requests_of(agent)] == [False, True]


async def test_default_prompt_and_tools_fit_in_ten_thousand_bytes(agent_of: MakeAgent) -> None:
    agent = agent_of(say("a"))
    (agent.config.agent.workspace_dir).mkdir(parents=True)
    (agent.config.agent.workspace_dir / "AGENTS.md").write_text("")
    await run_agent("hi", agent=agent)
    request = requests_of(agent)[0]
    assert len(request.tools) == 14
    assert len(request.system.encode()) + len(msgspec.json.encode(request.tools)) <= 10_000


async def test_events_tell_the_turn_in_order(agent_of: MakeAgent) -> None:
    agent = agent_of(call(("weather", {"city": "Rome"})), say("sunny"), tools=[weather])
    events: list[object] = []
    await run_agent("weather?", agent=agent, on_event=events.append)
    told = [type(event) for event in events if not isinstance(event, LlmStream)]
    assert told == [LlmStart, LlmEnd, ToolStart, ToolEnd, LlmStart, LlmEnd, Done]
    streamed = [event.event for event in events if isinstance(event, LlmStream)]
    assert ToolCallEnd(ToolCall("c1", "weather", {"city": "Rome"})) in streamed
    assert "".join(event.delta for event in streamed if isinstance(event, TextDelta)) == "sunny"


@pytest.mark.parametrize(
    ("output", "summary"),
    [
        (".F\n\n1 failed in 0.03s\n[exit code 1]", "exit code 1: 1 failed in 0.03s"),
        ("[exit code 7]\nworse\n\n[exit code 143 (SIGTERM)]\n[a note]", "exit code 143 (SIGTERM): worse"),
        ("[exit code 1]", "exit code 1: no output"),
        ("there is no such file\nlook elsewhere", "there is no such file"),
    ],
)
async def test_a_failed_call_is_summed_up_by_its_exit_code_and_last_line(
    agent_of: MakeAgent, host: Host, output: str, summary: str
) -> None:
    @tool
    def check() -> ToolResult:
        """Check."""
        return ToolResult("", "", [Text(output)], is_error=True)

    await run_agent("go", agent=agent_of(call(("check", {})), say("Done."), tools=[check]), io=host)
    assert [end.summary for end in host.of(ToolEnd)] == [summary]


async def test_the_end_of_a_call_holds_all_that_the_tool_gave(agent_of: MakeAgent, host: Host) -> None:
    @tool
    def look() -> str:
        """Look."""
        return "one\ntwo\nthree"

    await run_agent("go", agent=agent_of(call(("look", {})), say("Done."), tools=[look]), io=host)
    assert [end.text for end in host.of(ToolEnd)] == ["one\ntwo\nthree"]


async def test_streaming_and_buffered_give_the_same_result(agent_of: MakeAgent) -> None:
    script = (call(("weather", {"city": "Rome"}), input=5, output=2), say("sunny", input=9, output=4))
    buffered = await run_agent("weather?", agent=agent_of(*script, tools=[weather]), session_key="a")
    streamed = await run_agent(
        "weather?", agent=agent_of(*script, tools=[weather]), session_key="b", on_event=lambda _: None
    )
    assert (streamed.reply, streamed.usage) == (buffered.reply, buffered.usage)
    assert [m for m in streamed.messages if not isinstance(m, UserMessage)] == [
        m for m in buffered.messages if not isinstance(m, UserMessage)
    ]


async def test_usage_sums_tokens_and_cost_but_not_the_cache(agent_of: MakeAgent) -> None:
    agent = agent_of(
        call(("weather", {"city": "Rome"}), input=100, output=10, cache_read=1_000, cache_write=50, cost_usd=0.25),
        say("sunny", input=20, output=5, cache_read=1_100, cache_write=0, cost_usd=0.5),
        tools=[weather],
    )
    result = await run_agent("weather?", agent=agent)
    assert result.usage == Usage(120, 15, 1_100, 0, 0.75)
    assert result.last_call_usage == Usage(20, 5, 1_100, 0, 0.5)


async def test_calls_that_only_read_run_side_by_side(agent_of: MakeAgent) -> None:
    meeting = asyncio.Barrier(2)

    @tool(traits=Traits.READS | Traits.REPEATABLE)
    async def meet() -> str:
        """Wait for the other."""
        await meeting.wait()
        return "met"

    agent = agent_of(call(("meet", {}), ("meet", {})), say("both"), tools=[meet])
    async with asyncio.timeout(60):
        result = await run_agent("meet", agent=agent)
    assert [m.text for m in result.messages if isinstance(m, ToolResult)] == ["met", "met"]


async def test_calls_that_change_something_run_in_order(agent_of: MakeAgent) -> None:
    log: list[str] = []

    @tool(traits=Traits.WRITES)
    async def step(name: str) -> str:
        """Begin and end."""
        log.append(f"{name} begins")
        await asyncio.sleep(0)
        log.append(f"{name} ends")
        return name

    agent = agent_of(call(("step", {"name": "a"}), ("step", {"name": "b"})), say("ok"), tools=[step])
    await run_agent("go", agent=agent)
    assert log == ["a begins", "a ends", "b begins", "b ends"]


async def test_a_tool_that_does_not_exist_names_the_nearest(agent_of: MakeAgent) -> None:
    agent = agent_of(call(("wether", {})), say("ok"), tools=[weather])
    result = await run_agent("go", agent=agent)
    told = result.messages[2]
    assert isinstance(told, ToolResult)
    assert told.is_error
    assert "did you mean 'weather'" in told.text


async def test_what_a_tool_refuses_or_breaks_on_reaches_the_model(agent_of: MakeAgent) -> None:
    @tool
    def refuse() -> str:
        """Refuse."""
        raise ToolRefused("not on Sundays")

    @tool
    def fail() -> str:
        """Fail."""
        raise ZeroDivisionError("by zero")

    agent = agent_of(call(("refuse", {}), ("fail", {})), say("I see"), tools=[refuse, fail])
    result = await run_agent("go", agent=agent)
    texts = [m.text for m in result.messages if isinstance(m, ToolResult) and m.is_error]
    assert texts == ["not on Sundays", "fail failed: ZeroDivisionError: by zero"]
    assert result.reply == "I see"


async def test_a_long_result_is_cut_and_says_so(agent_of: MakeAgent) -> None:
    @tool
    def flood() -> str:
        """Much."""
        return "x" * 1_500

    config = Config(agent=AgentSettings(max_tool_result_chars=1_000))
    agent = agent_of(call(("flood", {})), say("ok"), tools=[flood], config=config)
    result = await run_agent("go", agent=agent)
    assert result.messages[2].text == "x" * 1_000 + (
        "\n[cut: 500 of 1500 characters; ask for a smaller part to see the rest]"
    )


async def test_tools_show_what_they_do_while_they_run(agent_of: MakeAgent, host: Host) -> None:
    @tool
    def count(turn: ToolContext) -> str:
        """Count."""
        turn.emit("one")
        turn.emit("two")
        return "done"

    await run_agent("go", agent=agent_of(call(("count", {})), say("ok"), tools=[count]), io=host)
    assert [event.text for event in host.of(ToolUpdate)] == ["one", "two"]


async def test_an_empty_answer_is_reported_as_such(agent_of: MakeAgent, host: Host) -> None:
    result = await run_agent("hi", agent=agent_of(say("")), io=host)
    assert (result.stop_reason, result.reply) == ("answered", "")
    assert [notice.text for notice in host.of(Notice)] == ["The model's answer is empty."]


async def test_an_empty_answer_whose_reason_is_known_is_reported_once(agent_of: MakeAgent, host: Host) -> None:
    refusal = AssistantMessage([], usage=Usage(cost_usd=0.0), stop_reason="refusal")
    await run_agent("hi", agent=agent_of(refusal), io=host)
    assert [notice.text for notice in host.of(Notice)] == ["The model refused to answer."]


async def test_a_call_cut_off_by_the_length_limit_is_not_run(agent_of: MakeAgent, host: Host) -> None:
    ran: list[str] = []

    @tool
    def note(text: str) -> str:
        """Note."""
        ran.append(text)
        return "noted"

    cut = AssistantMessage([ToolCall("c1", "note", {"text": "hal"})], "scripted", Usage(), "length")
    result = await run_agent("go", agent=agent_of(cut, say("sorry"), tools=[note]), io=host)
    assert ran == []
    assert "cut off by the length limit" in result.messages[2].text
    assert any("length limit" in notice.text for notice in host.of(Notice))


async def test_a_result_can_end_the_turn(agent_of: MakeAgent) -> None:
    @tool
    def wave() -> ToolResult:
        """Wave, and be done."""
        return ToolResult("", "wave", [Text("waved")], ends_turn=True)

    result = await run_agent("go", agent=agent_of(call(("wave", {}), text="Bye."), tools=[wave]))
    assert (result.reply, result.stop_reason, result.iterations) == ("Bye.", "answered", 1)


async def test_the_turn_stops_at_the_iteration_limit_and_says_why(agent_of: MakeAgent, entries_of: Entries) -> None:
    again = call(("weather", {"city": "Rome"}))
    config = Config(agent=AgentSettings(max_iterations=3))
    agent = agent_of(again, again, again, again, tools=[weather], config=config)
    result = await run_agent("go", agent=agent)
    assert (result.stop_reason, result.iterations) == ("iteration_limit", 3)
    assert "limit of 3" in result.error
    last = (await entries_of(agent))[-1]
    assert isinstance(last, EndEntry)
    assert last.stop_reason == "iteration_limit"


async def test_a_model_that_fails_raises_and_the_session_goes_on(agent_of: MakeAgent, entries_of: Entries) -> None:
    agent = agent_of(ModelError("no such model", status=404), say("back again"))
    events: list[object] = []
    with pytest.raises(ModelError, match="no such model"):
        await run_agent("hi", agent=agent, on_event=events.append)
    assert isinstance(events[-1], Done)
    assert events[-1].result.stop_reason == "error"
    assert (await run_agent("hi?", agent=agent)).reply == "back again"
    assert kinds(await entries_of(agent))[2:] == ["user", "end", "user", "assistant", "end"]


async def test_a_message_that_came_before_is_not_answered_twice(agent_of: MakeAgent, entries_of: Entries) -> None:
    agent = agent_of(say("once", input=3, output=1))
    message = UserMessage([Text("hi")], id="mail-7")
    first = await run_agent(message, agent=agent)
    second = await run_agent(message, agent=agent)
    assert (second.reply, second.usage) == (first.reply, first.usage)
    assert sum(isinstance(entry, AssistantEntry) for entry in await entries_of(agent)) == 1


async def test_pictures_reach_the_model(agent_of: MakeAgent) -> None:
    agent = agent_of(say("a cat"))
    await run_agent(UserMessage([Text("what is it?"), Image("image/png", b"\x89PNG")]), agent=agent)
    assert Image("image/png", b"\x89PNG") in requests_of(agent)[0].messages[0].content


async def test_a_tool_that_returns_nothing_of_use_is_reported_to_the_model(agent_of: MakeAgent) -> None:
    class Odd:
        name, shell_names, traits = "odd", (), Traits.NONE
        schema = Schema("odd", "Odd.", {"type": "object"})

        async def run(self, args: object, turn: object) -> object:
            return "not a result"

    result = await run_agent("go", agent=agent_of(call(("odd", {})), say("I see"), tools=[Odd()]))
    assert "its result is not a ToolResult" in result.messages[2].text
    assert result.reply == "I see"


async def test_a_tool_may_take_its_arguments_apart(agent_of: MakeAgent) -> None:
    class Spoils:
        name, shell_names, traits = "spoil", (), Traits.NONE
        schema = Schema("spoil", "Spoil.", {"type": "object"})

        async def run(self, args: dict[str, list[int]], turn: object) -> ToolResult:
            args["numbers"].clear()
            return ToolResult("", "", [Text("spoiled")])

    agent = agent_of(call(("spoil", {"numbers": [1, 2]})), say("done"), tools=[Spoils()])
    await run_agent("go", agent=agent)
    assert isinstance(reply := requests_of(agent)[1].messages[1], AssistantMessage)
    assert reply.tool_calls[0].args == {"numbers": [1, 2]}


async def test_a_host_that_breaks_leaves_no_call_open(agent_of: MakeAgent) -> None:
    def broken(event: object) -> None:
        if isinstance(event, LlmEnd):
            raise ZeroDivisionError("the screen is gone")

    agent = agent_of(call(("weather", {"city": "Rome"})), say("fine"), tools=[weather])
    with pytest.raises(ZeroDivisionError):
        await run_agent("weather?", agent=agent, on_event=broken)
    await run_agent("never mind", agent=agent)
    told = [m.text for m in requests_of(agent)[1].messages if isinstance(m, ToolResult)]
    assert told == ["not run: cancelled"]


async def test_a_stream_that_fails_at_last_is_withdrawn(agent_of: MakeAgent, host: Host) -> None:
    class Dying:
        async def stream(self, request: object) -> AsyncIterator[StreamEvent]:
            yield TextDelta("Half an ans")
            yield Failed(ModelError("the line is dead", kind="timeout"))

    with pytest.raises(ModelError):
        await run_agent("go", agent=agent_of(model=Dying()), io=host)
    assert host.of(Withdrawn) == [Withdrawn("Half an ans")]
