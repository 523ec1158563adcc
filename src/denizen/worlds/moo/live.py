"""An agent's life: it signs in, plays, and signs in again when the connection was lost."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from denizen.clock import Clock
from denizen.config.home import places
from denizen.worlds.moo.attribution import Timing
from denizen.worlds.moo.brain import Brain
from denizen.worlds.moo.connection import connected
from denizen.worlds.moo.folder import AgentFolder
from denizen.worlds.moo.transport import Server, ServerUnreachable

ATTEMPTS = 5
"""How often an agent tries to sign in again."""
FIRST_WAIT, LONGEST_WAIT = 5.0, 60.0
"""Seconds before the first attempt, doubled for each further one, and before any at most."""


async def live(brain: Brain, folder: AgentFolder, clock: Clock, stop: asyncio.Event) -> None:
    """Let the agent play until it is to stop: then it leaves the world properly.

    Raises ConfigError where the user must act, as for a wrong password, and ServerUnreachable when the server can't be
    reached, or not again.
    """
    home, _ = places(folder.loaded.config)
    timing = Timing(timeout=folder.settings.command_timeout)
    failures = None
    await brain.begin()
    while not stop.is_set():
        try:
            async with connected(server_of(folder), home, timing) as connection:
                failures = 0
                brain.note(f"Signed in as {connection.name or folder.settings.user}.")
                await unless(stop, brain.play(connection))
            why = "The connection is lost."
        except ServerUnreachable as error:
            if failures is None or failures == ATTEMPTS:
                raise
            why = str(error)
        if failures is not None and not stop.is_set():
            wait = min(FIRST_WAIT * 2**failures, LONGEST_WAIT)
            failures += 1
            brain.note(f"{why} Attempt {failures} of {ATTEMPTS} to sign in again, in {wait:g} s.")
            await unless(stop, clock.sleep(wait))
    await brain.end()


def server_of(folder: AgentFolder) -> Server:
    """Where the agent plays, and how it signs in."""
    settings = folder.settings
    return Server(
        host=settings.host,
        port=settings.port,
        transport=settings.transport,
        user=settings.user,
        password=folder.password,
        key_file=settings.key_file,
        login=settings.login,
    )


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, object]) -> None:
    """Work until it is done, or it is to stop."""
    working, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
    finally:
        for task in (working, stopped):
            task.cancel()
        await asyncio.wait({working, stopped})
