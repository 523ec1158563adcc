"""The library: one call, one finished turn."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from denizen.config import Config, load_config
from denizen.engine.agent import Agent
from denizen.engine.loop import run_turn
from denizen.engine.output import Output
from denizen.errors import DenizenError
from denizen.events import RunEvent, RunResult
from denizen.messages import Text, UserMessage
from denizen.ports import Answer, Ask, Control, Model, Parked, Tool, TurnIO

OnEvent = Callable[[RunEvent], None]


class Listener:
    """The host of a program: events go to a function, and nobody is there to ask, so a turn that must ask is parked."""

    def __init__(self, on_event: OnEvent | None = None) -> None:
        self._on_event = on_event

    def emit(self, event: RunEvent) -> None:
        """Pass the event on."""
        if self._on_event:
            self._on_event(event)

    def controls(self) -> Sequence[Control]:
        """Nothing comes in."""
        return ()

    async def ask(self, request: Ask) -> Answer | Parked:
        """Nobody answers."""
        return Parked()


async def run_agent(
    message: str | UserMessage | None,
    *,
    session_key: str = "default",
    config: Config | None = None,
    on_event: OnEvent | None = None,
    tools: Sequence[Tool] | None = None,
    agent: Agent | None = None,
    model: Model | None = None,
    io: TurnIO | None = None,
    output: Any = None,
) -> RunResult:
    """Answer one message: call the model, run the tools it asks for, until its final reply; all of it is kept.

    `session_key` names the conversation, in full or short (`"work"`). With `on_event`, or a host's `io`, tokens stream;
    without, the answer comes whole; message and usage are the same. `tools` are used in place of the standard ones
    (`denizen.tools.default_tools`), `model` in place of the configured one, `agent` in place of one made for this call.
    `output` is a type (whatever msgspec decodes) or a JSON schema that the final answer must fulfil: the result's
    `output` then is of it. `message` None goes on with a turn that a crash or a question left unfinished.

    Raises ConfigError, SessionError, ModelError or OutputError; the session goes on with the next message.
    Cancelling stops the model call and the tools, and leaves a transcript that continues.
    """
    wanted = None if output is None else Output(output)
    said = UserMessage([Text(message)]) if isinstance(message, str) else message
    async with _borrowed(agent, config, tools, model) as used:
        session = await used.open(session_key)
        try:
            host = io or Listener(on_event)
            return await run_turn(used, session, said, host, stream=bool(on_event or io), output=wanted)
        finally:
            await session.close()


async def stream_agent(message: str | UserMessage | None, **options: Any) -> AsyncGenerator[RunEvent]:
    """The events of one turn as they happen, `done` last; takes what `run_agent` takes.

    Leaving it early cancels the turn.
    """
    events: asyncio.Queue[RunEvent | None] = asyncio.Queue()
    turn = asyncio.create_task(run_agent(message, on_event=events.put_nowait, **options))
    turn.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        await turn
    finally:
        if turn.cancel():
            with suppress(asyncio.CancelledError):
                await turn


def run_agent_sync(message: str | UserMessage | None, **options: Any) -> RunResult:
    """`run_agent` for programs without an event loop: blocks until the turn is over. Raises DenizenError in one."""
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise DenizenError("an event loop is running here: use `await run_agent(…)` in place of run_agent_sync")
    return asyncio.run(run_agent(message, **options))


@asynccontextmanager
async def _borrowed(
    agent: Agent | None, config: Config | None, tools: Sequence[Tool] | None, model: Model | None
) -> AsyncGenerator[Agent]:
    if agent:
        yield agent
        return
    async with Agent(config or load_config(), tools=tools, model=model) as own:
        yield own
