"""The agent's side of the protocol: sessions, prompts, cancelling."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import acp
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    AuthenticateResponse,
    CloseSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionInfo,
    SessionListCapabilities,
    StopReason,
)

from denizen import __version__
from denizen.engine import Agent, run_turn
from denizen.engine.calls import tool_end
from denizen.engine.resume import question_of
from denizen.entries import AnswerEntry, AnyEntry, AssistantEntry, ToolEntry, UserEntry
from denizen.errors import DenizenError
from denizen.events import Notice, RunResult, TurnStop
from denizen.messages import Text, UserMessage, UserPart
from denizen.ports import Session
from denizen.sessions import session_key
from denizen.worlds.code.acp.host import Editor
from denizen.worlds.code.acp.prompts import parts_of
from denizen.worlds.code.acp.updates import Updates

_ENDS: dict[TurnStop, StopReason] = {
    "answered": "end_turn",
    "parked": "end_turn",
    "iteration_limit": "max_turn_requests",
    "loop": "max_turn_requests",
    "budget": "max_turn_requests",
    "cancelled": "cancelled",
}


@dataclass(slots=True)
class _Conversation:
    """A session that an editor has open, with its agent, and the turn that runs in it; `notices` are to be told."""

    agent: Agent
    session: Session
    updates: Updates
    notices: list[str]
    turn: asyncio.Task[RunResult] | None = field(default=None)

    @property
    def busy(self) -> bool:
        """Whether its turn runs."""
        return self.turn is not None and not self.turn.done()

    def stop(self) -> None:
        """Stop the turn, once: what it writes then is not stopped again."""
        if self.turn and not self.turn.cancelling():
            self.turn.cancel()

    async def close(self) -> None:
        """Stop the turn, and give the session back."""
        if self.turn and self.busy:
            self.stop()
            await asyncio.wait([self.turn])
        await self.session.close()
        await self.agent.close()


class Editors:
    """Serves editors; `agent_in` makes the agent for a folder, and says what the user should know of its configuration;
    `new_name` names a session that has none.
    """

    def __init__(self, agent_in: Callable[[Path], tuple[Agent, Sequence[str]]], new_name: Callable[[], str]) -> None:
        self._agent_in = agent_in
        self._new_name = new_name
        self._open: dict[str, _Conversation] = {}
        self._client: Client | None = None

    def on_connect(self, conn: Client) -> None:
        """The editor is there."""
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        """What this agent can do."""
        return InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(), close=SessionCloseCapabilities()
                ),
            ),
            agent_info=Implementation(name="denizen", title="Denizen", version=__version__),
        )

    async def authenticate(self, method_id: str, **_: Any) -> AuthenticateResponse:
        """Nothing is needed: keys come from the configuration."""
        return AuthenticateResponse()

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        """Begin a session in a folder."""
        name = self._new_name()
        await self._enter(name, cwd)
        return NewSessionResponse(session_id=name)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        """Open a session again, and tell the editor what was said in it."""
        conversation = self._conversation(session_id) or await self._enter(session_id, cwd, known=True)
        for update in _told(conversation.session.entries, conversation.agent, conversation.updates):
            await self._editor().session_update(session_id, update)
        return LoadSessionResponse()

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> ListSessionsResponse:
        """The sessions there are, of one folder or of all."""
        async with self._agent_in(Path(cwd or ".").resolve())[0] as agent:
            found = [info for info in await agent.store.list() if cwd is None or info.workspace == str(agent.workspace)]
        return ListSessionsResponse(
            sessions=[SessionInfo(session_id=info.key, cwd=info.workspace or "/", title=info.title) for info in found]
        )

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """Give a session back."""
        if conversation := self._open.pop(session_key(session_id), None):
            await conversation.close()
        return CloseSessionResponse()

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> PromptResponse:
        """One turn. A question that waits takes the prompt for its answer."""
        conversation = self._conversation(session_id)
        if conversation is None:
            raise acp.RequestError.invalid_params({"session": f"there is no open session {session_id}"})
        if conversation.busy:
            raise acp.RequestError.invalid_request({"session": "its turn isn't over; cancel it first"})
        editor = Editor(self._editor(), session_id, conversation.updates)
        while conversation.notices:  # with the first prompt: before its answer an editor doesn't know the session
            editor.emit(Notice(conversation.notices.pop(0), "warning"))
        sending = asyncio.create_task(editor.send())
        try:
            conversation.turn = asyncio.create_task(
                _turn(conversation, parts_of(prompt, conversation.agent.workspace), editor)
            )
            await asyncio.wait([conversation.turn])
            await editor.sent()
            return await self._ended(session_id, conversation.turn)
        finally:
            sending.cancel()

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop the turn: what is complete is kept."""
        if conversation := self._conversation(session_id):
            conversation.stop()

    async def close(self) -> None:
        """Give all sessions back."""
        while self._open:
            _, conversation = self._open.popitem()
            await conversation.close()

    def _conversation(self, session_id: str) -> _Conversation | None:
        return self._open.get(session_key(session_id))

    async def _enter(self, name: str, cwd: str, *, known: bool = False) -> _Conversation:
        """Open a session in a folder; with `known` one that is there."""
        try:
            agent, notices = self._agent_in(Path(cwd))
            try:
                if known:
                    await agent.store.read(session_key(name))
                session = await agent.open(name)
            except BaseException:
                await agent.close()
                raise
        except DenizenError as error:
            raise acp.RequestError.invalid_params({"session": str(error)}) from error
        updates = Updates(agent.actions, agent.tools, agent.workspace)
        conversation = _Conversation(agent, session, updates, [*notices, *session.warnings])
        self._open[session.key] = conversation
        return conversation

    async def _ended(self, session_id: str, turn: asyncio.Task[RunResult]) -> PromptResponse:
        if turn.cancelled():
            return PromptResponse(stop_reason="cancelled")
        if error := turn.exception():
            raise acp.RequestError.internal_error({"message": str(error)}) from error
        result = turn.result()
        said = result.error if result.stop_reason != "answered" else ""
        if said:
            await self._editor().session_update(session_id, acp.update_agent_message_text(said))
        return PromptResponse(stop_reason=_ENDS[result.stop_reason])

    def _editor(self) -> Client:
        if self._client is None:
            raise acp.RequestError.internal_error({"message": "no editor is connected"})
        return self._client


async def serve(editors: Editors) -> None:
    """Serve one editor over standard input and output, until it hangs up."""
    try:
        await acp.run_agent(cast("acp.Agent", editors))  # it has of the protocol what it says it can do
    finally:
        await editors.close()


async def _turn(conversation: _Conversation, parts: list[UserPart], editor: Editor) -> RunResult:
    agent, session = conversation.agent, conversation.session
    waiting = question_of(session.entries)
    if waiting is None or waiting.name:  # whether a call may run is asked again, with its buttons
        return await run_turn(agent, session, UserMessage(parts), editor)
    text = "".join(part.text for part in parts if isinstance(part, Text))
    await session.append(AnswerEntry(call_id=waiting.call_id, allow=True, text=agent.redact(text)))
    return await run_turn(agent, session, None, editor)


def _told(entries: Sequence[AnyEntry], agent: Agent, updates: Updates) -> list[Any]:
    """What was said and done, as it would have been told then."""
    told: list[Any] = []
    for entry in entries:
        match entry:
            case UserEntry(message=message):
                told.append(acp.update_user_message_text(message.text))
            case AssistantEntry(message=message):
                intent = agent.actions.read(message, agent.tools)
                told += [acp.update_agent_message_text(intent.reply)] if intent.reply else []
                told += [updates.call(call) for call in intent.calls]
            case ToolEntry(message=result):
                told += updates.of(tool_end(result))
            case _:
                pass
    return told
