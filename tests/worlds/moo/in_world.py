"""Agents with scripted models in a real DjangoMOO world."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.worlds.moo.djangomoo import DjangoMoo
from tests.worlds.moo.play import Watcher, text

from denizen import Agent
from denizen.messages import AssistantMessage, ToolCall
from denizen.testing import ScriptedModel
from denizen.worlds.moo.brain import Brain
from denizen.worlds.moo.character import Character
from denizen.worlds.moo.connection import MooConnection, connected
from denizen.worlds.moo.session_log import SessionLog
from denizen.worlds.moo.settings import MooSettings
from denizen.worlds.moo.tools import builder_tools

PATIENCE = 200.0
"""Seconds after which a test gives up on something that takes a few, on a busy machine."""


@dataclass
class Player:
    """An agent at play."""

    brain: Brain
    watcher: Watcher
    connection: MooConnection
    model: ScriptedModel

    def heard(self, text: str) -> list[str]:
        """The lines of the server and of the agent itself that have this."""
        return [line for kind, line in self.watcher.heard if text in line and kind != "action"]

    async def hears(self, text: str, times: int = 1) -> None:
        """Wait for so many of them."""
        await until(lambda: len(self.heard(text)) >= times)


def reply(*calls: tuple[str, dict[str, str]]) -> AssistantMessage:
    """A reply with these calls."""
    return AssistantMessage(
        [ToolCall(f"c{number}", name, args) for number, (name, args) in enumerate(calls)], stop_reason="tool_calls"
    )


@asynccontextmanager
async def player(
    server: DjangoMoo, home: Path, name: str, script: Sequence[AssistantMessage] = (), soul: str = "", **settings: Any
) -> AsyncGenerator[Player]:
    """A player of that name who does what the script says, then thinks of nothing.

    It begins when it is told to or paged, not when someone comes or goes: players of an earlier test still may.
    Its directory is `agents/<name>` in the home, with a SOUL.md of that text.
    """
    settings.setdefault("idle_wakeup_seconds", 0)
    watcher, model = Watcher(), ScriptedModel([*script, *[text("...")] * 200])
    folder = home / "agents" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SOUL.md").write_text(soul)
    async with Agent(profile="denizen", model=model, environ={"HOME": str(home / name)}) as agent:
        session = await agent.open(f"agent:{name}:channel:moo:account:{name}@localhost:peer:direct:world")
        character = Character(folder, MooSettings(user=name, **settings))
        log = SessionLog(watcher, folder, agent.record.now, agent.record.redact)
        brain = Brain(agent.record, session, character, partial(builder_tools, names=character.tools), log)
        await brain.begin()
        async with connected(server.address(name), home) as connection:
            playing = asyncio.create_task(brain.play(connection))
            try:
                yield Player(brain, watcher, connection, model)
            finally:
                playing.cancel()
                await asyncio.wait([playing])
        await agent.leave(session)


async def until(so: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until it is so. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not so():  # noqa: ASYNC110 (what it waits for has no event)
            await asyncio.sleep(0.05)
