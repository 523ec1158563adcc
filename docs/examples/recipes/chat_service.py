"""A web service on FastAPI: POST /chat streams the answer as server-sent events."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from fastapi import FastAPI
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field

from denizen import Agent, stream_agent
from denizen.errors import DenizenError
from denizen.events import Done, LlmStream, TextDelta, ToolStart


class Message(BaseModel):
    """What a client sends."""

    chat: str = Field(pattern="^[a-z0-9-]{1,40}$")
    text: str


def create_app(agent: Agent | None = None) -> FastAPI:
    """The service; without an agent, with the one of the user's configuration."""
    agent = agent or Agent()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with agent:
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/chat", response_class=EventSourceResponse)
    async def chat(message: Message) -> AsyncIterator[ServerSentEvent]:
        turn = stream_agent(message.text, session_key=f"web-{message.chat}", agent=agent)
        try:
            async with aclosing(turn) as events:
                async for event in events:
                    match event:
                        case LlmStream(event=TextDelta(delta=text)):
                            yield ServerSentEvent(data=text, event="text")
                        case ToolStart(tool_name=name):
                            yield ServerSentEvent(data=name, event="tool")
                        case Done(result=result):
                            yield ServerSentEvent(data={"reply": result.reply, "why": result.stop_reason}, event="done")
        except DenizenError as error:
            yield ServerSentEvent(data=str(error), event="error")

    return app
