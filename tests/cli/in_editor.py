"""An editor, as the protocol's own client library makes one."""

import asyncio
from collections.abc import Callable
from typing import Any

import acp
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    DeclineElicitationResponse,
    DeniedOutcome,
    RequestPermissionResponse,
)

Connect = Callable[..., Any]


class Editor:
    """A client that keeps what it is sent, and answers every request for permission with `option`.

    `answer` is what its user fills into a form; None: they decline.
    """

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.asked: list[Any] = []
        self.questions: list[str] = []
        self.option: str | None = "once"
        self.answer: str | None = None
        self.spoken = asyncio.Event()
        self.on_update: Callable[[Any], None] = lambda update: None

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        self.on_update(update)
        if update.session_update == "agent_message_chunk":
            self.spoken.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append(tool_call)
        self.updates.append(tool_call)
        outcome = (
            AllowedOutcome(outcome="selected", option_id=self.option)
            if self.option
            else DeniedOutcome(outcome="cancelled")
        )
        return RequestPermissionResponse(outcome=outcome)

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.questions.append(message)
        if self.answer is None:
            return DeclineElicitationResponse(action="decline")
        return AcceptElicitationResponse(action="accept", content={"answer": self.answer})

    def on_connect(self, conn: Any) -> None:
        pass

    def of(self, kind: str) -> list[Any]:
        return [update for update in self.updates if getattr(update, "session_update", "request") == kind]

    @property
    def said(self) -> str:
        return "".join(update.content.text for update in self.of("agent_message_chunk"))

    @property
    def thoughts(self) -> str:
        return "".join(update.content.text for update in self.of("agent_thought_chunk"))


async def prompt(agent: Any, session: str, text: str) -> Any:
    return await agent.prompt(session_id=session, prompt=[acp.text_block(text)])
