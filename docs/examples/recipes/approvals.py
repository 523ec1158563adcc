"""A person's approval over HTTP: a turn that must ask is parked, and goes on when the answer is posted."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from denizen import Agent
from denizen.errors import DenizenError
from denizen.events import RunEvent, TurnParked
from denizen.ports import Answer, Ask, NoControls, Parked


class Decision(BaseModel):
    """A person's answer to the question that they were shown."""

    call_id: str
    allow: bool
    reason: str = ""


class WebHost(NoControls):
    """Passes on the answer that was posted, if it is to the question that is asked, and remembers an open question."""

    def __init__(self, decision: Decision | None = None) -> None:
        self.decision = decision
        self.open: TurnParked | None = None

    def emit(self, event: RunEvent) -> None:
        """Keep the question that parked the turn."""
        if isinstance(event, TurnParked):
            self.open = event

    async def ask(self, request: Ask) -> Answer | Parked:
        """The answer to this very call; any other question waits."""
        if self.decision and self.decision.call_id == request.call_id:
            return Answer(request.call_id, self.decision.allow, self.decision.reason)
        return Parked()


def create_app(agent: Agent) -> FastAPI:
    """Two routes: one begins or continues a case, one answers its question."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with agent:
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/cases/{case}")
    async def write(case: int, text: str) -> dict[str, Any]:
        return await run(case, text, WebHost())

    @app.post("/cases/{case}/decision")
    async def decide(case: int, decision: Decision) -> dict[str, Any]:
        return await run(case, None, WebHost(decision))

    async def run(case: int, text: str | None, host: WebHost) -> dict[str, Any]:
        try:
            result = await agent.run(text, session_key=f"case-{case}", io=host)
        except DenizenError as error:
            raise HTTPException(409, str(error)) from error
        if result.stop_reason == "parked" and host.open:
            return {"question": host.open.question, "call_id": host.open.tool_call_id}
        return {"reply": result.reply}

    return app
