"""Agents in a real DjangoMOO world, with scripted models."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.moo.djangomoo import DjangoMoo
from tests.worlds.moo.play import Watcher, text

from denizen import Agent
from denizen.messages import AssistantMessage, ToolCall
from denizen.testing import ScriptedModel
from denizen.worlds.moo.brain import Brain
from denizen.worlds.moo.connection import Connection, connected
from denizen.worlds.moo.settings import MooSettings
from denizen.worlds.moo.tools import builder_tools

pytestmark = pytest.mark.needs("redis-server")

WAYS = ("north", "east") * 5


def reply(*calls: tuple[str, dict[str, str]]) -> AssistantMessage:
    """A reply with these calls."""
    return AssistantMessage(
        [ToolCall(f"c{number}", name, args) for number, (name, args) in enumerate(calls)], stop_reason="tool_calls"
    )


@asynccontextmanager
async def player(
    server: DjangoMoo, home: Path, name: str, script: Sequence[AssistantMessage], **settings: Any
) -> AsyncGenerator[tuple[Brain, Watcher, Connection]]:
    """A player of that name who does what the script says, then thinks of nothing."""
    watcher, model = Watcher(), ScriptedModel([*script, *[text("...")] * 200])
    async with Agent(profile="denizen", model=model, environ={"HOME": str(home / name)}) as agent:
        session = await agent.open(f"agent:{name}:channel:moo:account:{name}@localhost:peer:direct:world")
        brain = Brain(agent.record, session, MooSettings(user=name, **settings), builder_tools, watcher)
        await brain.begin()
        async with connected(server.address(name), home) as connection:
            playing = asyncio.create_task(brain.play(connection))
            try:
                yield brain, watcher, connection
            finally:
                playing.cancel()
                await asyncio.wait([playing])
        await agent.leave(session)


async def until(so: Callable[[], object]) -> None:
    while not so():  # noqa: ASYNC110 (what it waits for has no event)
        await asyncio.sleep(0.05)


async def test_a_builder_digs_describes_and_furnishes_ten_rooms_and_finds_them_there(
    moo_server: DjangoMoo, tmp_path: Path
) -> None:
    script = [reply(("raw", {"command": '@create "Yard" from "$room" in here'}), ("teleport", {"destination": "Yard"}))]
    for number, way in enumerate(WAYS):
        room = f"Chamber {number}"
        script.append(
            reply(
                ("burrow", {"direction": way, "room_name": room}),
                (
                    "describe",
                    {"target": "here", "text": f"Chamber [{number}], with a door; it is dry, from top to bottom."},
                ),
                ("create_object", {"name": f"lamp {number}"}),
                ("obvious", {"target": f"lamp {number}"}),
            )
        )
    async with player(moo_server, tmp_path, "mason", script, tool_calls_per_cycle=100) as (brain, watcher, connection):
        brain.instruct("Build ten rooms.")
        await until(
            lambda: "[system] done" in watcher.told("system") or len(watcher.told("action")) == 2 + 4 * len(WAYS)
        )
        await until(lambda: any("[Cycle]" in told for told in watcher.told("system")))
        assert watcher.told("server_error") == []
        listed = (await connection.request("@rooms")).lines
        for number in range(len(WAYS)):
            assert any(line.endswith(f" Chamber {number}") for line in listed)
            await connection.request(f'teleport "Chamber {number}"')
            seen = " ".join((await connection.request("look")).lines)
            assert f"Chamber [{number}], with a door; it is dry, from top to bottom." in seen
            assert f"lamp {number}" in seen
