"""pydantic-ai: one agent; the caller carries the messages, and on disk appends what each run added."""

from collections.abc import Sequence

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.driver import Stage, Turn, main
from benchmarks.scene import KEY, MODEL, SYSTEM


class PydanticAI:
    stores: Sequence[str] = ("memory", "disk")

    def __init__(self, stage: Stage) -> None:
        def weather(city: str) -> str:
            """Look up the weather of a city."""
            return stage.weather.look_up(city)

        provider = OpenAIProvider(base_url=stage.base_url, api_key=KEY)
        self._agent = Agent(OpenAIChatModel(MODEL, provider=provider), instructions=SYSTEM, tools=[weather])
        self._home = stage.home

    async def open(self, key: str, store: str) -> Turn:
        history: list[ModelMessage] = []
        file = (self._home / f"{key}.jsonl").open("ab", buffering=0) if store == "disk" else None

        async def turn(text: str) -> str:
            nonlocal history
            result = await self._agent.run(text, message_history=history)
            history = result.all_messages()
            if file:
                file.write(result.new_messages_json() + b"\n")
            return result.output

        return turn


async def build(stage: Stage) -> PydanticAI:
    return PydanticAI(stage)


if __name__ == "__main__":
    main(build)
