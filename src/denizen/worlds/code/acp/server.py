"""The agent's side of the protocol: sessions, prompts, cancelling."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import acp
from acp.helpers import update_available_commands, update_current_mode
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    AuthenticateResponse,
    AuthMethodAgent,
    ClientCapabilities,
    CloseSessionResponse,
    ConfigOptionUpdate,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
    StopReason,
)

from denizen.engine import Resume, run_turn
from denizen.engine.calls import tool_end
from denizen.engine.resume import question_of
from denizen.entries import AnswerEntry, AssistantEntry, ToolEntry, UserEntry
from denizen.errors import DenizenError, ModelError
from denizen.events import Notice, RunResult, TurnStop
from denizen.messages import Text, UserMessage, UserPart
from denizen.ports import SessionInfo as StoredInfo
from denizen.sessions import session_key
from denizen.worlds.code.acp.commands import available, command_in
from denizen.worlds.code.acp.conversation import Conversation
from denizen.worlds.code.acp.host import Editor
from denizen.worlds.code.acp.prompts import parts_of
from denizen.worlds.code.acp.updates import Updates
from denizen.worlds.world import AgentHandle

_KEY = AuthMethodAgent(
    id="key",
    name="A key in Denizen's configuration",
    description="Put your provider's key into the .env of Denizen's home (`denizen doctor` says where), then go on.",
)
_ENDS: dict[TurnStop, StopReason] = {
    "answered": "end_turn",
    "parked": "end_turn",
    "iteration_limit": "max_turn_requests",
    "loop": "max_turn_requests",
    "budget": "max_turn_requests",
    "cancelled": "cancelled",
}


class Editors:
    """Serves an editor; `agent_in` makes the agent for a folder and the name of a model (empty: the configured one),
    and says what the user should know of its configuration; `models_in` are the models to choose from there;
    `new_name` names a session that has none.
    """

    def __init__(
        self,
        agent_in: Callable[[Path, str], tuple[AgentHandle, Sequence[str]]],
        models_in: Callable[[Path], Sequence[str]],
        new_name: Callable[[], str],
    ) -> None:
        self._agent_in = agent_in
        self._models_in = models_in
        self._new_name = new_name
        self._open: dict[str, Conversation] = {}
        self._client: Client | None = None
        self._has_forms = False
        self._later: set[asyncio.Task[None]] = set()

    def on_connect(self, conn: Client) -> None:
        """The editor is there."""
        self._client = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: ClientCapabilities | None = None, **_: Any
    ) -> InitializeResponse:
        """What this agent can do."""
        elicitation = client_capabilities and client_capabilities.elicitation
        self._has_forms = elicitation is not None and elicitation.form is not None
        return InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(), resume=SessionResumeCapabilities(), close=SessionCloseCapabilities()
                ),
            ),
            auth_methods=[_KEY],
            agent_info=Implementation(name="denizen", title="Denizen", version=version("denizen")),
        )

    async def authenticate(self, method_id: str, **_: Any) -> AuthenticateResponse:
        """The user has set a key: the sessions that are open read the configuration again."""
        for conversation in self._open.values():
            await self._change_agent(conversation, conversation.agent.config.model)
        return AuthenticateResponse()

    async def new_session(self, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any) -> NewSessionResponse:
        """Begin a session in a folder."""
        conversation = await self._enter(self._new_name(), cwd, mcp_servers)
        session_id = conversation.session.key
        self._say_commands(session_id)
        return NewSessionResponse(
            session_id=session_id, modes=conversation.modes(), config_options=[*conversation.options()]
        )

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> LoadSessionResponse:
        """Open a session again, and show the editor what was said in it."""
        conversation = await self._reenter(session_id, cwd, mcp_servers)
        for update in _history(conversation):
            await self._editor().session_update(session_id, update)
        self._say_commands(session_id)
        return LoadSessionResponse(modes=conversation.modes(), config_options=[*conversation.options()])

    async def resume_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        """Open a session again that the editor still shows."""
        conversation = await self._reenter(session_id, cwd, mcp_servers)
        self._say_commands(session_id)
        return ResumeSessionResponse(modes=conversation.modes(), config_options=[*conversation.options()])

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> ListSessionsResponse:
        """The sessions there are, of one folder or of all."""
        async with self._agent_in(Path(cwd or ".").resolve(), "")[0] as agent:
            found = [
                info for info in await agent.record.store.list() if not cwd or info.workspace == str(agent.workspace)
            ]
        return ListSessionsResponse(sessions=[*map(_session_info, found)])

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """Give a session back."""
        if conversation := self._open.pop(session_key(session_id), None):
            await conversation.close()
        return CloseSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        """Change what becomes of calls that need an approval, at once."""
        conversation = self._conversation(session_id)
        _set_mode(conversation, mode_id)
        update = ConfigOptionUpdate(session_update="config_option_update", config_options=[*conversation.options()])
        await self._editor().session_update(session_id, update)
        return SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        """Change the mode, at once, or the model, from the next prompt on."""
        conversation = self._conversation(session_id)
        match config_id:
            case "mode":
                _set_mode(conversation, str(value))
                await self._editor().session_update(session_id, update_current_mode(conversation.mode))
            case "model":
                await self._change_agent(conversation, str(value))
            case _:
                raise acp.RequestError.invalid_params({"config": f"there is no option {config_id}"})
        return SetSessionConfigOptionResponse(config_options=[*conversation.options()])

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> PromptResponse:
        """One turn, or a command. A question that waits takes the prompt for its answer."""
        conversation = self._conversation(session_id)
        if conversation.busy:
            raise acp.RequestError.invalid_request({"session": "its turn isn't over; cancel it first"})
        editor = Editor(self._editor(), session_id, conversation, has_forms=self._has_forms)
        while conversation.notices:  # with the first prompt: before its answer an editor doesn't know the session
            editor.emit(Notice(conversation.notices.pop(0), "warning"))
        sending = asyncio.create_task(editor.send())
        try:
            parts = parts_of(prompt, conversation.agent.workspace)
            conversation.turn = asyncio.create_task(_turn(conversation, parts, editor))
            await asyncio.wait([conversation.turn])
            await editor.sent()
            return await self._ended(session_id, conversation.turn)
        finally:
            sending.cancel()

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop the turn: what is complete is kept."""
        if conversation := self._open.get(session_key(session_id)):
            conversation.stop()

    async def close(self) -> None:
        """Give all sessions back."""
        while self._open:
            _, conversation = self._open.popitem()
            await conversation.close()

    def _conversation(self, session_id: str) -> Conversation:
        """The open session. Raises RequestError where there is none."""
        if conversation := self._open.get(session_key(session_id)):
            return conversation
        raise acp.RequestError.invalid_params({"session": f"there is no open session {session_id}"})

    async def _reenter(self, session_id: str, cwd: str, mcp_servers: Sequence[Any] | None) -> Conversation:
        """The session, which must be there."""
        found = self._open.get(session_key(session_id))
        return found or await self._enter(session_id, cwd, mcp_servers, known=True)

    async def _enter(
        self, name: str, cwd: str, mcp_servers: Sequence[Any] | None, *, known: bool = False
    ) -> Conversation:
        """Open a session in a folder; with `known` one that is there."""
        folder = Path(cwd)
        try:
            agent, notices = self._agent_in(folder, "")
            try:
                if known:
                    await agent.record.store.read(session_key(name))
                models = await asyncio.to_thread(self._models_in, folder)
                session = await agent.open(name)
            except BaseException:
                await agent.close()
                raise
        except DenizenError as error:
            raise acp.RequestError.invalid_params({"session": str(error)}) from error
        unstarted = (
            [f"MCP servers aren't started yet: {', '.join(s.name for s in mcp_servers)}."] if mcp_servers else []
        )
        conversation = Conversation(agent, session, [*notices, *unstarted, *session.warnings], models)
        self._open[session.key] = conversation
        return conversation

    async def _change_agent(self, conversation: Conversation, model: str) -> None:
        try:
            agent, _ = self._agent_in(conversation.agent.workspace, model)
        except DenizenError as error:
            raise acp.RequestError.invalid_params({"model": str(error)}) from error
        conversation.set_agent(agent)

    def _say_commands(self, session_id: str) -> None:
        """Tell the editor the commands, after the answer that lets it know the session."""
        update = update_available_commands(available())
        later = asyncio.create_task(self._editor().session_update(session_id, update))
        self._later.add(later)
        later.add_done_callback(self._later.discard)

    async def _ended(self, session_id: str, turn: asyncio.Task[RunResult]) -> PromptResponse:
        if turn.cancelled():
            return PromptResponse(stop_reason="cancelled")
        if error := turn.exception():
            refused = isinstance(error, ModelError) and error.kind == "auth"
            kind = acp.RequestError.auth_required if refused else acp.RequestError.internal_error
            raise kind({"message": str(error)}) from error
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
        # of the protocol it has what it says it can do; the library counts `session/close` and `resume` as unstable
        await acp.run_agent(cast("acp.Agent", editors), use_unstable_protocol=True)
    finally:
        await editors.close()


async def _turn(conversation: Conversation, parts: list[UserPart], editor: Editor) -> RunResult:
    agent, session = conversation.agent, conversation.session
    if found := command_in(parts):
        command, argument = found
        return await command.run(conversation, editor, argument)
    await agent.record.states.of(session).know_limits(
        agent.record.model, session.key
    )  # updates say how full the context is
    waiting = question_of(session.entries)
    if waiting is None or waiting.name:  # whether a call may run is asked again, with its buttons
        return await run_turn(conversation.record, session, UserMessage(parts), editor)
    text = "".join(part.text for part in parts if isinstance(part, Text))
    await session.append(AnswerEntry(call_id=waiting.call_id, allow=True, text=agent.record.redact(text)))
    return await run_turn(conversation.record, session, Resume(), editor)


def _history(conversation: Conversation) -> Iterator[Any]:
    """What was said and done, as it would have been shown then."""
    agent, entries = conversation.agent, conversation.session.entries
    updates = Updates(agent, entries)
    for entry in entries:
        match entry:
            case UserEntry(message=message):
                yield acp.update_user_message_text(message.text)
            case AssistantEntry(message=message):
                intent = agent.record.actions.read(message, agent.record.tools)
                if intent.reply:
                    yield acp.update_agent_message_text(intent.reply)
                yield from map(updates.started, intent.calls)
            case ToolEntry(message=result):
                yield from updates.of(tool_end(result))
            case _:
                pass


def _set_mode(conversation: Conversation, mode: str) -> None:
    try:
        conversation.set_mode(mode)
    except ValueError as error:
        raise acp.RequestError.invalid_params({"mode": str(error)}) from error


def _session_info(info: StoredInfo) -> SessionInfo:
    updated = datetime.fromtimestamp(info.updated, UTC).isoformat(timespec="seconds")
    return SessionInfo(session_id=info.key, cwd=info.workspace or "/", title=info.title, updated_at=updated)
