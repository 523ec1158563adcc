"""strands: an agent is its session, so each session gets an agent; files where it is kept on disk.

It gets a client to keep: by itself it makes one for every call, which costs 30 ms each time.
"""

from collections.abc import Sequence

from openai import AsyncOpenAI
from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.models.openai import OpenAIModel
from strands.session.file_session_manager import FileSessionManager

from benchmarks.driver import Stage, Turn, main
from benchmarks.scene import KEY, MODEL, SYSTEM


class Strands:
    stores: Sequence[str] = ("memory", "disk")

    def __init__(self, stage: Stage) -> None:
        @tool
        def weather(city: str) -> str:
            """Look up the weather of a city."""
            return stage.weather.look_up(city)

        self._weather = weather
        self._files = str(stage.home / "sessions")
        self._model = OpenAIModel(AsyncOpenAI(base_url=stage.base_url, api_key=KEY), model_id=MODEL)

    async def open(self, key: str, store: str) -> Turn:
        agent = Agent(
            model=self._model,
            tools=[self._weather],
            system_prompt=SYSTEM,
            callback_handler=None,
            conversation_manager=NullConversationManager(),
            session_manager=FileSessionManager(key, self._files) if store == "disk" else None,
        )

        async def turn(text: str) -> str:
            return str(await agent.invoke_async(text))

        return turn


async def build(stage: Stage) -> Strands:
    return Strands(stage)


if __name__ == "__main__":
    main(build)
