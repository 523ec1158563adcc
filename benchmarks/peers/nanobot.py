"""nanobot: its own assistant with its own prompt, cut down to the one tool; it always writes its sessions."""

import json
from collections.abc import Sequence
from typing import Any

from loguru import logger
from nanobot import Nanobot
from nanobot.agent.tools.base import Tool

from benchmarks.driver import Stage, Turn, main
from benchmarks.scene import KEY, MODEL, TOOL_NAME, TOOL_TEXT


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


async def build(stage: Stage) -> NanoBot:
    return NanoBot(stage)


if __name__ == "__main__":
    main(build)
