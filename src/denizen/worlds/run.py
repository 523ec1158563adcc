"""The library: one call, one finished turn."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, TypedDict, Unpack, overload

from denizen.config import Config
from denizen.errors import DenizenError
from denizen.events import Out, RunEvent, RunResult
from denizen.messages import UserMessage
from denizen.ports import Model, Tool, TurnIO
from denizen.worlds.assemble import Agent, OnEvent, OnEventAsync, streamed


class StreamAgentOptions(TypedDict, total=False):
    """The options of `stream_agent` besides `output`; `run_agent` explains them."""

    session_key: str
    config: Config | None
    instructions: str
    tools: Sequence[Tool] | None
    agent: Agent | None
    model: Model | str | None
    io: TurnIO | None


class RunAgentOptions(StreamAgentOptions, total=False):
    """The options of `run_agent_sync`."""

    on_event: OnEvent | OnEventAsync | None


@overload
async def run_agent(  # pyrefly: ignore[inconsistent-overload]  # RunAgentOptions has no other keys
    message: str | UserMessage | None, *, output: type[Out], **options: Unpack[RunAgentOptions]
) -> RunResult[Out]: ...


@overload
async def run_agent(  # pyrefly: ignore[inconsistent-overload]
    message: str | UserMessage | None, *, output: Any = None, **options: Unpack[RunAgentOptions]
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
    standard ones (to add some: `[*Agent(config).tools, mine]`), `model` (one, or a name such as `"openai:gpt-5-mini"`)
    in place of the configured one; `instructions` say who the agent is and what it is for, in place of the profile's
    own words; `agent` in place of one made for this call: it has its own instructions, tools and model, and goes by its
    own `config`. `output` is a type (whatever msgspec or pydantic reads) or a JSON schema that the final answer
    must fulfil: the result's `output` then is of it. `message` None goes on with a turn that a crash or a question left
    unfinished.

    Raises ConfigError, SessionError, ModelError or OutputError; the session goes on with the next message.
    Cancelling stops the model call and the tools, and leaves a transcript that continues.
    """
    async with _borrowed(agent, config, instructions, tools, model) as used:
        return await used.run(message, session_key=session_key, on_event=on_event, io=io, output=output)


async def stream_agent(
    message: str | UserMessage | None, *, output: Any = None, **options: Unpack[StreamAgentOptions]
) -> AsyncGenerator[RunEvent]:
    """The events of one turn as they happen, `done` last; takes what `run_agent` takes, but for `on_event`.

    Closing it cancels the turn: `async with contextlib.aclosing(stream_agent(…)) as events` does so at once when the
    loop is left early; otherwise Python closes it some time later. Raises what `run_agent` raises, after `done`.
    """

    def run(on_event: OnEvent) -> Coroutine[Any, Any, RunResult]:
        return run_agent(message, on_event=on_event, output=output, **options)

    async with aclosing(streamed(run)) as events:
        async for event in events:
            yield event


@overload
def run_agent_sync(
    message: str | UserMessage | None, *, output: type[Out], **options: Unpack[RunAgentOptions]
) -> RunResult[Out]: ...


@overload
def run_agent_sync(
    message: str | UserMessage | None, *, output: Any = None, **options: Unpack[RunAgentOptions]
) -> RunResult: ...


def run_agent_sync(
    message: str | UserMessage | None, *, output: Any = None, **options: Unpack[RunAgentOptions]
) -> RunResult:
    """`run_agent` for programs without an event loop: blocks until the turn is over. Raises DenizenError in one."""
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise DenizenError("an event loop is running here: use `await run_agent(…)` in place of run_agent_sync")
    return asyncio.run(run_agent(message, output=output, **options))


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
