"""What a person can do while the agent works: steer, follow up, interrupt, stop, cancel."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import cast

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host, call, requests_of, results, run_agent, say, user

from denizen import Agent, Config, stream_agent, tool
from denizen.config.settings import ProviderSettings
from denizen.engine import TurnOptions, run_turn
from denizen.entries import AnyEntry, AssistantEntry, EndEntry
from denizen.events import LlmEnd, LlmStart, LlmStream, RunEvent, StreamEvent, TextDelta, ToolEnd, ToolStart
from denizen.messages import AssistantMessage, Text, UserMessage
from denizen.ports import (
    Ask,
    Control,
    FollowUp,
    Interrupt,
    ModelRequest,
    Parked,
    Steer,
    Stop,
    ToolContext,
    Traits,
    TurnIO,
)
from denizen.testing import LoopbackOpenAI, ScriptedModel, Step

Entries = Callable[[Agent], Awaitable[list[AnyEntry]]]


@tool(traits=Traits.WRITES)
def step(name: str) -> str:
    """One step."""
    return f"did {name}"


class Chatty(Host):
    """Says something as soon as a model call ends."""

    def __init__(self, *controls: object) -> None:
        super().__init__()
        self._controls = [*controls]

    def emit(self, event: RunEvent) -> None:
        super().emit(event)
        if isinstance(event, LlmEnd) and self._controls:
            self.say(self._controls.pop(0))  # pyrefly: ignore


def words(request_messages: object) -> list[str]:
    return [m.content[0].text for m in request_messages if isinstance(m, UserMessage)]  # pyrefly: ignore


async def test_steering_is_heard_before_the_next_model_call(agent_of: MakeAgent) -> None:
    agent = agent_of(call(("step", {"name": "a"})), say("as you wish"), tools=[step])
    result = await run_agent("go", agent=agent, io=Chatty(Steer("quietly, please")))
    assert results(result)[0].text == "did a"
    assert words(requests_of(agent)[1].messages) == ["go", "quietly, please"]
    assert result.reply == "as you wish"


async def test_a_follow_up_is_heard_when_the_agent_is_done(agent_of: MakeAgent) -> None:
    agent = agent_of(call(("step", {"name": "a"})), say("done"), say("and that, too"), tools=[step])
    result = await run_agent("go", agent=agent, io=Chatty(FollowUp("and then?")))
    assert words(requests_of(agent)[1].messages) == ["go"]
    assert words(requests_of(agent)[2].messages) == ["go", "and then?"]
    assert result.reply == "and that, too"


async def test_an_interruption_drops_the_calls_that_have_not_run(agent_of: MakeAgent) -> None:
    agent = agent_of(call(("step", {"name": "a"}), ("step", {"name": "b"})), say("other then"), tools=[step])
    result = await run_agent("go", agent=agent, io=Chatty(Interrupt("no, something else")))
    assert [each.is_error for each in results(result)] == [True, True]
    assert words(requests_of(agent)[1].messages) == ["go", "no, something else"]


async def test_a_stop_ends_the_turn_and_closes_its_calls(agent_of: MakeAgent, entries_of: Entries) -> None:
    agent = agent_of(call(("step", {"name": "a"})), tools=[step])
    result = await run_agent("go", agent=agent, io=Chatty(Stop()))
    assert result.stop_reason == "cancelled"
    assert results(result)[0].text == "not run: cancelled"
    assert isinstance((await entries_of(agent))[-1], EndEntry)


@pytest.mark.parametrize("kept", [["Once upon"], []], ids=["while it streams", "before its first word"])
async def test_a_stop_ends_a_model_call_at_once(
    agent_of: MakeAgent, host: Host, loopback_openai: LoopbackOpenAI, kept: list[str]
) -> None:
    words = b'data: {"choices": [{"index": 0, "delta": {"content": "Once upon"}}]}\n\n'
    loopback_openai.send(*([words] if kept else []), Step.STALL)
    config = Config(model="test:m", providers={"test": ProviderSettings(base_url=loopback_openai.base_url)})
    agent = agent_of(config=config, model=None)
    async with asyncio.timeout(30):
        turn = asyncio.create_task(run_agent("tell a story", agent=agent, io=host))
        while not (host.of(LlmStream) if kept else loopback_openai.requests):  # noqa: ASYNC110 - another thread fills the list
            await asyncio.sleep(0)
        host.say(Stop())
        result = await turn
    assert result.stop_reason == "cancelled"
    said = [message for message in result.messages if isinstance(message, AssistantMessage)]
    assert [(message.text, message.stop_reason) for message in said] == [(text, "aborted") for text in kept]
    assert await asyncio.to_thread(loopback_openai.gone.wait, 30)


async def test_a_host_written_before_changed_is_heard(agent_of: MakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("denizen.ports.host.POLL_S", 0.0)

    class Older:
        """Has no `changed`."""

        said: Sequence[Control] = ()

        def emit(self, event: RunEvent) -> None:
            if isinstance(event, ToolStart):
                self.said = [Stop()]

        def controls(self) -> Sequence[Control]:
            said, self.said = self.said, ()
            return said

        async def ask(self, request: Ask) -> Parked:
            return Parked()

    @tool
    async def wait() -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return ""

    agent = agent_of(call(("wait", {})), tools=[wait])
    async with asyncio.timeout(30):
        result = await run_agent("go", agent=agent, io=cast("TurnIO", Older()))
    assert result.stop_reason == "cancelled"


async def test_an_interruption_cuts_the_model_call_and_the_turn_goes_on_with_it(agent_of: MakeAgent) -> None:
    host, gone = Host(), asyncio.Event()

    class Endless(ScriptedModel):
        """Doesn't end its first reply."""

        async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent]:
            if self.requests:
                async for event in super().stream(request):
                    yield event
                return
            self.requests.append(request)
            yield TextDelta("Once upon")
            host.say(Interrupt("no, something else"))
            try:
                await asyncio.Event().wait()
            finally:
                gone.set()

    agent = agent_of(model=Endless([say("other then")]))
    async with asyncio.timeout(30):
        result = await run_agent("tell a story", agent=agent, io=host)
    assert gone.is_set()
    assert (result.reply, result.stop_reason) == ("other then", "answered")
    assert words(requests_of(agent)[1].messages) == ["tell a story", "no, something else"]
    ended = [(event.message.text, event.message.stop_reason) for event in host.of(LlmEnd)]
    assert ended[0] == ("Once upon", "aborted")


async def test_a_stop_ends_a_tool_that_runs(agent_of: MakeAgent) -> None:
    host, ended = Host(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait for ever."""
        host.say(Stop())
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    agent = agent_of(call(("wait", {}), ("wait", {})), say("there you are"), tools=[wait])
    async with asyncio.timeout(30):
        result = await run_agent("go", agent=agent, io=host)
    assert ended.is_set()
    assert result.stop_reason == "cancelled"
    told = [each.text for each in results(result)]
    assert told == ["cancelled while it ran: its effect may be there in part", "not run: cancelled"]
    assert (await run_agent("hello?", agent=agent)).reply == "there you are"


async def test_what_is_queued_is_taken_when_the_next_model_call_will_see_it(agent_of: MakeAgent) -> None:
    agent = agent_of(call(("step", {"name": "a"}), ("step", {"name": "b"})), say("as you wish"), tools=[step])
    host, entered, taken_after = Host(), ["quietly, please"], []

    async def queued() -> list[UserMessage]:
        if not (host.of(LlmEnd) and entered):
            return []
        taken_after.extend(event.tool_call_id for event in host.of(ToolEnd))
        return [UserMessage([Text(entered.pop())])]

    async with agent:
        session = await agent.open("default")
        await run_turn(agent.record, session, user("go"), host, TurnOptions(queued=queued))
        await agent.leave(session)
    assert taken_after == [event.tool_call_id for event in host.of(ToolEnd)] != []
    assert words(requests_of(agent)[1].messages) == ["go", "quietly, please"]


async def test_cancelling_stops_a_running_tool_and_the_session_goes_on(
    agent_of: MakeAgent, entries_of: Entries
) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    @tool
    async def wait(turn: ToolContext) -> str:
        """Wait for ever."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    agent = agent_of(call(("wait", {}), ("wait", {})), say("there you are"), tools=[wait])
    turn = asyncio.create_task(run_agent("go", agent=agent))
    await began.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert ended.is_set()
    last = (await entries_of(agent))[-1]
    assert isinstance(last, EndEntry)
    assert last.stop_reason == "cancelled"
    assert (await run_agent("hello?", agent=agent)).reply == "there you are"
    told = [m.text for m in requests_of(agent)[1].messages if getattr(m, "name", "") == "wait"]
    assert told == ["cancelled while it ran: its effect may be there in part", "not run: cancelled"]


async def test_cancelling_keeps_what_had_streamed(agent_of: MakeAgent, entries_of: Entries) -> None:
    agent = agent_of(say("a long story about a fox"))
    turn: asyncio.Task[object] | None = None

    def listen(event: RunEvent) -> None:
        if isinstance(event, LlmStream) and turn:
            turn.cancel()

    turn = asyncio.create_task(run_agent("tell", agent=agent, on_event=listen))
    with pytest.raises(asyncio.CancelledError):
        await turn
    kept = [entry.message for entry in await entries_of(agent) if isinstance(entry, AssistantEntry)]
    assert [message.stop_reason for message in kept] == ["aborted"]
    assert "a long story about a fox".startswith(kept[0].text)
    assert kept[0].content != [Text("")]


async def test_leaving_a_stream_of_events_cancels_the_turn(agent_of: MakeAgent, entries_of: Entries) -> None:
    agent = agent_of(call(("step", {"name": "a"})), say("unheard"), tools=[step])
    events = stream_agent("go", agent=agent, session_key="default")
    async for event in events:
        if isinstance(event, LlmStart):
            break
    await events.aclose()
    last = (await entries_of(agent))[-1]
    assert isinstance(last, EndEntry)
    assert last.stop_reason == "cancelled"
