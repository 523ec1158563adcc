"""nanobot: its own assistant with its own prompt, cut down to the one tool; it always writes its sessions.

Its gateway is its loop on its message bus, in this process: a channel of its own would only add to what is measured.
"""

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from loguru import logger
from nanobot import Nanobot
from nanobot.agent.tools.base import Tool
from nanobot.bus.events import InboundMessage

from benchmarks.driver import Command, Stage, Turn, main, resident
from benchmarks.scene import KEY, MODEL, TOOL_NAME, TOOL_TEXT
from benchmarks.visitors import Visitors

SILENCE = 15.0  # seconds without any reply after which no more will come


class WeatherTool(Tool):
    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    @property
    def name(self) -> str:
        return TOOL_NAME

    @property
    def description(self) -> str:
        return TOOL_TEXT

    @property
    def parameters(self) -> dict[str, Any]:
        return {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

    async def execute(self, city: str) -> str:
        return self._stage.weather.look_up(city)


class NanoBot:
    stores: Sequence[str] = ("disk",)

    def __init__(self, stage: Stage) -> None:
        config = stage.home / "config.json"
        config.write_text(
            json.dumps(
                {
                    "providers": {"loopback": {"apiKey": KEY, "apiBase": stage.base_url}},
                    "agents": {"defaults": {"provider": "loopback", "model": MODEL}},
                }
            )
        )
        logger.remove()
        self._bot = Nanobot.from_config(config, workspace=stage.home / "workspace")
        tools = self._bot._loop.tools  # noqa: SLF001 - it has no public way to choose the tools
        for name in list(tools.tool_names):
            tools.unregister(name)
        tools.register(WeatherTool(stage))

    async def open(self, key: str, store: str) -> Turn:
        async def turn(text: str) -> str:
            return (await self._bot.run(text, session_key=f"bench:{key}")).content

        return turn

    def bus(self) -> "Bus":
        return Bus(self._bot._loop)  # noqa: SLF001 - nor one to its bus


class Bus:
    """Its message bus as its chats see it; whoever is first to want a reply starts what serves it."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._replies = defaultdict[str, asyncio.Queue[str]](asyncio.Queue)
        self._heard = 0.0
        self._tasks: list[asyncio.Task[None]] = []

    async def post(self, chat: str, text: str) -> None:
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._loop.run()), asyncio.create_task(self._listen())]
        await self._loop.bus.publish_inbound(InboundMessage("bench", "bench", chat, text))

    async def _listen(self) -> None:
        while True:
            message = await self._loop.bus.consume_outbound()
            self._heard = time.monotonic()
            if message.event is None:
                self._replies[message.chat_id].put_nowait(message.content)

    async def reply(self, chat: str) -> str | None:
        begun = time.monotonic()
        while (left := max(begun, self._heard) + SILENCE - time.monotonic()) > 0:
            with suppress(TimeoutError):
                return await asyncio.wait_for(self._replies[chat].get(), left)
        return None

    def cpu(self) -> float:
        return time.process_time()

    def resident(self) -> int:
        return resident()


async def build(stage: Stage) -> NanoBot:
    return NanoBot(stage)


def extra(nanobot: NanoBot) -> Mapping[str, Command]:
    return Visitors(nanobot.bus()).commands()


if __name__ == "__main__":
    main(build, extra)
