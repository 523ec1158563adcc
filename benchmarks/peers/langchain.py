"""langchain: `create_agent` on langgraph, one per checkpointer, a session is a thread."""

from collections.abc import Sequence

import aiosqlite
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from pydantic import SecretStr

from benchmarks.driver import Stage, Turn, main
from benchmarks.scene import KEY, MODEL, SYSTEM


class LangChain:
    stores: Sequence[str] = ("memory", "disk")

    def __init__(self, stage: Stage, savers: dict[str, BaseCheckpointSaver[str]]) -> None:
        def weather(city: str) -> str:
            """Look up the weather of a city."""
            return stage.weather.look_up(city)

        model = ChatOpenAI(model=MODEL, base_url=stage.base_url, api_key=SecretStr(KEY))
        self._agents = {
            store: create_agent(model, [weather], system_prompt=SYSTEM, checkpointer=saver)
            for store, saver in savers.items()
        }

    async def open(self, key: str, store: str) -> Turn:
        agent = self._agents[store]

        async def turn(text: str) -> str:
            state = await agent.ainvoke({"messages": [HumanMessage(text)]}, config={"configurable": {"thread_id": key}})
            return str(state["messages"][-1].content)

        return turn


async def build(stage: Stage) -> LangChain:
    connection = await aiosqlite.connect(stage.home / "checkpoints.db")
    return LangChain(stage, {"memory": InMemorySaver(), "disk": AsyncSqliteSaver(connection)})


if __name__ == "__main__":
    main(build)
