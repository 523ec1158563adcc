"""An editor, as the protocol's own client library makes one."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import acp
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    DeclineElicitationResponse,
    DeniedOutcome,
    ReadTextFileResponse,
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


class EditorWithBuffers(Editor):
    """An editor with files open: `buffers` are their texts by path, which only the editor itself changes. Unless it
    `saves`, what it is given is in its buffers only.

    As in some real editors, a buffer isn't reloaded when its file changes.
    """

    def __init__(self, buffers: Mapping[Path, str]) -> None:
        super().__init__()
        self.buffers = {str(path): text for path, text in buffers.items()}
        self.written: list[str] = []
        self.saves = True

    async def read_text_file(self, path: str, session_id: str, **_: Any) -> ReadTextFileResponse:
        text = self.buffers.get(path)
        return ReadTextFileResponse(content=Path(path).read_text() if text is None else text)

    async def write_text_file(self, content: str, path: str, session_id: str, **_: Any) -> None:
        self.written.append(path)
        self.buffers[path] = content
        if self.saves:
            Path(path).write_text(content)
