"""openai-agents: one agent, its SQLite sessions in memory or in a file."""

from collections.abc import Sequence

from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from benchmarks.driver import Stage, Turn, main
from benchmarks.scene import KEY, MODEL, SYSTEM


class OpenAIAgents:
    stores: Sequence[str] = ("memory", "disk")

    def __init__(self, stage: Stage) -> None:
        @function_tool
        def weather(city: str) -> str:
            """Look up the weather of a city."""
            return stage.weather.look_up(city)

        set_tracing_disabled(True)
        client = AsyncOpenAI(base_url=stage.base_url, api_key=KEY)
        model = OpenAIChatCompletionsModel(model=MODEL, openai_client=client)
        self._agent = Agent(name="bench", instructions=SYSTEM, tools=[weather], model=model)
        self._paths = {"memory": ":memory:", "disk": stage.home / "sessions.db"}

    async def open(self, key: str, store: str) -> Turn:
        session = SQLiteSession(key, self._paths[store])

        async def turn(text: str) -> str:
            return str((await Runner.run(self._agent, text, session=session)).final_output)

        return turn


async def build(stage: Stage) -> OpenAIAgents:
    return OpenAIAgents(stage)


if __name__ == "__main__":
    main(build)
