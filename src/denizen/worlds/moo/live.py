"""An agent's life: it signs in, plays, and signs in again when the connection was lost."""

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import msgspec

from denizen.config.home import places
from denizen.runtime.cancellation import first_completed
from denizen.runtime.clock import BackOff, Clock
from denizen.sessions.request_socket import serve_requests
from denizen.worlds.moo.attribution import OutputTiming
from denizen.worlds.moo.brain import Brain
from denizen.worlds.moo.connection import connected
from denizen.worlds.moo.folder import AgentFolder
from denizen.worlds.moo.transport import Server, ServerUnreachable

MAX_ATTEMPTS = 5
"""The most attempts to sign in again."""
SIGN_INS = BackOff(5.0, 60.0)
"""The waits before these attempts."""
T = TypeVar("T")


async def live(brain: Brain, folder: AgentFolder, clock: Clock, stop: asyncio.Event) -> None:
    """Let the agent play until it is to stop: then it leaves the world properly.

    Raises ConfigError if the user must act, as for a wrong password, and ServerUnreachable when the server can't be
    reached in all attempts.
    """
    home, _ = places(folder.loaded.config)
    timing = OutputTiming(timeout=folder.settings.command_timeout)
    server = msgspec.convert(folder.settings, Server, from_attributes=True)
    server = msgspec.structs.replace(server, password=folder.password)
    failures = 0
    await brain.begin()
    async with serve_requests(home, folder.session_key, brain.answer):
        while not stop.is_set():
            try:
                async with AsyncExitStack() as stack:
                    signing_in = stack.enter_async_context(connected(server, home, timing))
                    if connection := await run_until_stopped(stop, signing_in):
                        failures = 0
                        brain.note(f"Signed in as {connection.name}.")
                        await run_until_stopped(stop, brain.play(connection))
                why = "The connection is lost."
            except ServerUnreachable as error:
                if failures == MAX_ATTEMPTS:
                    raise
                why = str(error)
            if not stop.is_set():
                failures += 1
                wait = SIGN_INS.after(failures)
                brain.note(f"{why} Attempt {failures} of {MAX_ATTEMPTS} to sign in again, in {wait:g} s.")
                await run_until_stopped(stop, clock.sleep(wait))
    await brain.end()


async def run_until_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """Work until it is done, which gives its result, or it is to stop."""
    async with first_completed(work, stop.wait()) as (working, _):
        return working.result() if working.done() else None
