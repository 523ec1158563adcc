"""agno: one agent per store, sessions by id, the whole history sent."""

from collections.abc import Sequence

from agno.agent import Agent
from agno.db.base import BaseDb
from agno.db.in_memory import InMemoryDb
from agno.db.sqlite import SqliteDb
from agno.models.openai.like import OpenAILike

from benchmarks.driver import Stage, Turn, main
from benchmarks.scene import KEY, MODEL, SYSTEM

EVERYTHING = 10**6  # runs of history to send; its default is the last 3


class Agno:
    stores: Sequence[str] = ("memory", "disk")

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._agents = {
            "memory": self._agent(InMemoryDb()),
            "disk": self._agent(SqliteDb(db_file=str(stage.home / "agno.db"))),
        }

    def _agent(self, db: BaseDb) -> Agent:
        def weather(city: str) -> str:
            """Look up the weather of a city."""
            return self._stage.weather.look_up(city)

        return Agent(
            model=OpenAILike(id=MODEL, base_url=self._stage.base_url, api_key=KEY),
            tools=[weather],
            instructions=SYSTEM,
            db=db,
            add_history_to_context=True,
            num_history_runs=EVERYTHING,
            telemetry=False,
        )

    async def open(self, key: str, store: str) -> Turn:
        agent = self._agents[store]

        async def turn(text: str) -> str:
            return str((await agent.arun(text, session_id=key)).content)

        return turn


async def build(stage: Stage) -> Agno:
    return Agno(stage)


if __name__ == "__main__":
    main(build)
