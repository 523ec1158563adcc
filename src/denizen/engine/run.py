"""The library: one call, one finished turn."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, TypedDict, Unpack, cast, overload

from denizen.config import Config
from denizen.engine.agent import Agent, OnEvent, OnEventAsync
from denizen.engine.line import in_line
from denizen.engine.loop import run_turn
from denizen.engine.output import Output
from denizen.errors import DenizenError, SessionError
from denizen.events import Done, Out, RunEvent, RunResult
from denizen.messages import Text, UserMessage
from denizen.ports import Answer, Ask, Control, Model, Parked, Tool, TurnIO
from denizen.sessions import new_name
from denizen.sessions import session_key as full_key


class StreamOptions(TypedDict, total=False):
    """What `stream_agent` takes with the message, but for `output`: as `run_agent`, which says what each is for."""

    session_key: str
    config: Config | None
    instructions: str
    tools: Sequence[Tool] | None
    agent: Agent | None
    model: Model | str | None
    io: TurnIO | None


class Options(StreamOptions, total=False):
    """What `run_agent_sync` takes, too."""

    on_event: OnEvent | OnEventAsync | None


class Listener:
    """The host of a program: events go to a function, too. Where there is no other, a turn that must ask is parked."""

    def __init__(self, on_event: OnEvent | None = None, host: TurnIO | None = None) -> None:
        self._on_event = on_event
        self._host = host

    def emit(self, event: RunEvent) -> None:
        """Pass the event on."""
        if self._host is not None:
            self._host.emit(event)
        if self._on_event is not None and inspect.iscoroutine(left := self._on_event(event)):
            left.close()
            raise TypeError(f"on_event gave a coroutine: make it an `async def` function; it is {self._on_event!r}")

    def controls(self) -> Sequence[Control]:
        """What came in at the host."""
        return self._host.controls() if self._host else ()

    async def ask(self, request: Ask) -> Answer | Parked:
        """What the host is answered; else nobody answers."""
        return await self._host.ask(request) if self._host else Parked()


@overload
async def run_agent(  # pyrefly: ignore[inconsistent-overload]  # Options has no other keys
    message: str | UserMessage | None, *, output: type[Out], **options: Unpack[Options]
) -> RunResult[Out]: ...


@overload
async def run_agent(  # pyrefly: ignore[inconsistent-overload]
    message: str | UserMessage | None, *, output: Any = None, **options: Unpack[Options]
) -> RunResult: ...


async def run_agent(
    message: str | UserMessage | None,
    *,
    session_key: str = "",
    config: Config | None = None,
    instructions: str = "",
    on_event: OnEvent | OnEventAsync | None = None,
    tools: Sequence[Tool] | None = None,
    agent: Agent | None = None,
    model: Model | str | None = None,
    io: TurnIO | None = None,
    output: Any = None,
) -> RunResult:
    """Answer one message: call the model, run the tools it asks for, until its final reply; all of it is kept.

    `session_key` names the conversation, in full or short (`"work"`); without it, the message begins a new one. A
    second message to a session waits until this process is done with the first (`agent.when_busy`). With `on_event`, or
    a host's `io`, tokens stream; without, the answer comes whole; message and usage are the same. `on_event` may be
    async: then each event waits for the one before. What it raises ends the turn. `tools` are used in place of the
    standard ones (beside them: `[*Agent(config).tools, mine]`), `model` (one, or a name such as `"openai:gpt-5-mini"`)
    in place of the configured one; `instructions` say who the agent is and what it is for, in place of the profile's
    own words; `agent` in place of one made for this call: it has its own instructions, tools and model, and goes by its
    own `config`. `output` is a type (whatever msgspec or pydantic reads) or a JSON schema that the final answer
    must fulfil: the result's `output` then is of it. `message` None goes on with a turn that a crash or a question left
    unfinished.

    Raises ConfigError, SessionError, ModelError or OutputError; the session goes on with the next message.
    Cancelling stops the model call and the tools, and leaves a transcript that continues.
    """
    if inspect.iscoroutinefunction(on_event):
        options = StreamOptions(
            session_key=session_key,
            config=config,
            instructions=instructions,
            tools=tools,
            agent=agent,
            model=model,
            io=io,
        )
        return await _tell(on_event, stream_agent(message, output=output, **options))
    listen = cast("OnEvent | None", on_event)
    wanted = None if output is None else Output(output)
    said = _said(message)
    if said is None and not session_key:
        raise SessionError("Only a session can be gone on with: name it (session_key=…), or give a message.")
    async with _borrowed(agent, config, instructions, tools, model) as used:
        key = full_key(session_key or new_name(used.clock))
        async with in_line(used.home, key, wait=used.config.agent.when_busy == "wait"):
            session = await used.open(key)
            try:
                host = Listener(listen, io) if listen or not io else io
                return await run_turn(used, session, said, host, stream=bool(listen or io), output=wanted)
            finally:
                await used.leave(session)


async def stream_agent(
    message: str | UserMessage | None, *, output: Any = None, **options: Unpack[StreamOptions]
) -> AsyncGenerator[RunEvent]:
    """The events of one turn as they happen, `done` last; takes what `run_agent` takes, but for `on_event`.

    Closing it cancels the turn: `async with contextlib.aclosing(stream_agent(…)) as events` does so at once when the
    loop is left early; otherwise Python closes it some time later. Raises what `run_agent` raises, behind `done`.
    """
    events: asyncio.Queue[RunEvent | None] = asyncio.Queue()
    turn = asyncio.create_task(run_agent(message, on_event=events.put_nowait, output=output, **options))
    turn.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        await turn
    finally:
        if turn.cancel():
            with suppress(asyncio.CancelledError):
                await turn


@overload
def run_agent_sync(
    message: str | UserMessage | None, *, output: type[Out], **options: Unpack[Options]
) -> RunResult[Out]: ...


@overload
def run_agent_sync(
    message: str | UserMessage | None, *, output: Any = None, **options: Unpack[Options]
) -> RunResult: ...


def run_agent_sync(message: str | UserMessage | None, *, output: Any = None, **options: Unpack[Options]) -> RunResult:
    """`run_agent` for programs without an event loop: blocks until the turn is over. Raises DenizenError in one."""
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise DenizenError("an event loop is running here: use `await run_agent(…)` in place of run_agent_sync")
    return asyncio.run(run_agent(message, output=output, **options))


async def _tell(on_event: OnEventAsync, events: AsyncGenerator[RunEvent]) -> RunResult:
    async with aclosing(events):
        async for event in events:
            await on_event(event)
    return cast("Done", event).result  # it comes last, or the turn has raised


def _said(message: str | UserMessage | None) -> UserMessage | None:
    if not isinstance(message, str | UserMessage | None):
        raise TypeError(f"a message is a str, a UserMessage or None, not {type(message).__name__}")
    return UserMessage([Text(message)]) if isinstance(message, str) else message


@asynccontextmanager
async def _borrowed(
    agent: Agent | None,
    config: Config | None,
    instructions: str,
    tools: Sequence[Tool] | None,
    model: Model | str | None,
) -> AsyncGenerator[Agent]:
    if agent:
        if (instructions, tools, model) != ("", None, None):
            raise TypeError("an agent has its own instructions, tools and model: give them to Agent(…)")
        yield agent
        return
    async with Agent(config, instructions=instructions, tools=tools, model=model) as own:
        yield own
