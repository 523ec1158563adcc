"""smolagents: a tool-calling agent is its session and runs in a thread; it has no store on disk."""

import asyncio
from collections.abc import Sequence

from smolagents import LogLevel, OpenAIModel, ToolCallingAgent, tool

from benchmarks.driver import Stage, Turn, main
from benchmarks.scene import KEY, MODEL, SYSTEM


class SmolAgents:
    stores: Sequence[str] = ("memory",)

    def __init__(self, stage: Stage) -> None:
        @tool
        def weather(city: str) -> str:
            """Look up the weather of a city.

            Args:
                city: The city.
            """
            return stage.weather.look_up(city)

        self._weather = weather
        self._model = OpenAIModel(MODEL, api_base=stage.base_url, api_key=KEY)

    async def open(self, key: str, store: str) -> Turn:
        agent = ToolCallingAgent(
            tools=[self._weather], model=self._model, instructions=SYSTEM, verbosity_level=LogLevel.OFF
        )

        async def turn(text: str) -> str:
            return str(await asyncio.to_thread(agent.run, text, reset=False))

        return turn


async def build(stage: Stage) -> SmolAgents:
    return SmolAgents(stage)


if __name__ == "__main__":
    main(build)
