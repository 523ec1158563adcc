"""The agent's side of the protocol: sessions, prompts, cancelling."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import acp
from acp import schema
from acp.helpers import update_available_commands, update_current_mode
from acp.interfaces import Client

from denizen.config.settings import McpServer
from denizen.engine.calls import tool_end
from denizen.entries import AssistantEntry, ToolEntry, UserEntry
from denizen.errors import DenizenError, ModelError
from denizen.events import Notice, TurnStop
from denizen.messages import AssistantMessage
from denizen.sessions import session_key
from denizen.worlds.code.acp.editor import EditorIO, Updates
from denizen.worlds.code.acp.open_session import OpenSession
from denizen.worlds.code.acp.prompts import available_commands, run_prompt
from denizen.worlds.world import AgentHandle

_KEY = schema.AuthMethodAgent(
    id="key",
    name="A key in Denizen's configuration",
    description="Put your provider's key into the .env of Denizen's home (`denizen doctor` says where), then go on.",
)
_ENDS: dict[TurnStop, schema.StopReason] = {
    "answered": "end_turn",
    "parked": "end_turn",
    "iteration_limit": "max_turn_requests",
    "loop": "max_turn_requests",
    "budget": "max_turn_requests",
    "cancelled": "cancelled",
    "error": "end_turn",  # the chat says why
}
_ANSWERS: dict[str, schema.StopReason] = {"length": "max_tokens", "refusal": "refusal"}
"""How an answer ends a turn, if not as usual."""


class Editors:
    """Serves an editor; `agent_in` makes the agent for a folder, the name of a model (empty: the configured one) and
    the editor's own MCP servers, and says what the user should know of its configuration; `models_in` are the models to
    choose from there; `new_name` names a session that has none.
    """

    def __init__(
        self,
        agent_in: Callable[[Path, str, Mapping[str, McpServer]], tuple[AgentHandle, Sequence[str]]],
        models_in: Callable[[Path], Sequence[str]],
        new_name: Callable[[], str],
    ) -> None:
        self._agent_in = agent_in
        self._models_in = models_in
        self._new_name = new_name
        self._open: dict[str, OpenSession] = {}
        self._client: Client | None = None
        self._has_forms = self._has_buffers = self._has_terminals = False
        self._later: set[asyncio.Task[None]] = set()

    def on_connect(self, conn: Client) -> None:
        """The editor has connected."""
        self._client = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: schema.ClientCapabilities | None = None, **_: Any
    ) -> schema.InitializeResponse:
        """The capabilities of this agent."""
        elicitation = client_capabilities and client_capabilities.elicitation
        self._has_forms = elicitation is not None and elicitation.form is not None
        files = client_capabilities and client_capabilities.fs
        self._has_buffers = bool(files and files.read_text_file and files.write_text_file)
        self._has_terminals = bool(client_capabilities and client_capabilities.terminal)
        return schema.InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                mcp_capabilities=schema.McpCapabilities(http=True),
                prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[_KEY],
            agent_info=schema.Implementation(name="denizen", title="Denizen", version=version("denizen")),
        )

    async def authenticate(self, method_id: str, **_: Any) -> schema.AuthenticateResponse:
        """The user has set a key: the sessions that are open read the configuration again."""
        for opened in self._open.values():
            await self._change_agent(opened, opened.agent.config.model)
        return schema.AuthenticateResponse()

    async def new_session(
        self, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> schema.NewSessionResponse:
        """Begin a session in a folder."""
        opened = await self._enter(self._new_name(), cwd, mcp_servers)
        session_id = opened.session.key
        self._say_commands(session_id, opened.agent)
        return schema.NewSessionResponse(
            session_id=session_id, modes=opened.modes(), config_options=[*opened.options()]
        )

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> schema.LoadSessionResponse:
        """Open a session again, and show its conversation in the editor."""
        opened = await self._enter(session_id, cwd, mcp_servers, known=True)
        for update in _history(opened):
            await self._editor().session_update(session_id, update)
        self._say_commands(session_id, opened.agent)
        return schema.LoadSessionResponse(modes=opened.modes(), config_options=[*opened.options()])

    async def resume_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> schema.ResumeSessionResponse:
        """Open a session again that the editor still shows."""
        opened = await self._enter(session_id, cwd, mcp_servers, known=True)
        self._say_commands(session_id, opened.agent)
        return schema.ResumeSessionResponse(modes=opened.modes(), config_options=[*opened.options()])

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> schema.ListSessionsResponse:
        """List the sessions of one folder, or of all."""
        async with self._agent_in(Path(cwd or ".").resolve(), "", {})[0] as agent:
            found = [
                schema.SessionInfo(
                    session_id=info.key,
                    cwd=info.workspace or "/",
                    title=info.title,
                    updated_at=datetime.fromtimestamp(info.updated, UTC).isoformat(timespec="seconds"),
                )
                for info in await agent.record.store.list()
                if not cwd or info.workspace == str(agent.workspace)
            ]
        return schema.ListSessionsResponse(sessions=found)

    async def close_session(self, session_id: str, **_: Any) -> schema.CloseSessionResponse:
        """Close a session."""
        if opened := self._open.pop(session_key(session_id), None):
            await opened.close()
        return schema.CloseSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> schema.SetSessionModeResponse:
        """Change the mode, which decides about calls that need an approval, at once."""
        opened = self._find(session_id)
        opened.set_mode(mode_id)
        update = schema.ConfigOptionUpdate(session_update="config_option_update", config_options=[*opened.options()])
        await self._editor().session_update(session_id, update)
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> schema.SetSessionConfigOptionResponse:
        """Change the mode, at once, or the model, from the next prompt on."""
        opened = self._find(session_id)
        match config_id:
            case "mode":
                opened.set_mode(str(value))
                await self._editor().session_update(session_id, update_current_mode(opened.mode))
            case "model":
                await self._change_agent(opened, str(value))
            case _:
                raise acp.RequestError.invalid_params({"config": f"no option is called {config_id}"})
        return schema.SetSessionConfigOptionResponse(config_options=[*opened.options()])

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> schema.PromptResponse:
        """One turn, or a command. A pending question takes the prompt as its answer."""
        opened = self._find(session_id)
        if opened.busy:
            raise acp.RequestError.invalid_request({"session": "a turn is running; cancel it first"})
        editor = EditorIO(self._editor(), session_id, opened, has_forms=self._has_forms, has_buffers=self._has_buffers)
        while opened.notices:  # with the first prompt: before its answer an editor doesn't know the session
            editor.emit(Notice(opened.notices.pop(0), "warning"))
        sending = asyncio.create_task(editor.send())
        try:
            opened.turn = asyncio.create_task(run_prompt(opened, prompt, editor))
            await asyncio.wait([opened.turn])
            await editor.sent()
        finally:
            sending.cancel()
        if opened.turn.cancelled():
            return schema.PromptResponse(stop_reason="cancelled")
        error = opened.turn.exception()
        if isinstance(error, acp.RequestError):
            raise error
        if isinstance(error, ModelError) and error.kind == "auth":
            raise acp.RequestError.auth_required({"message": str(error)}) from error
        if isinstance(error, DenizenError):
            await self._say(session_id, str(error))
            refused = isinstance(error, ModelError) and error.refuses_content
            return schema.PromptResponse(stop_reason="refusal" if refused else "end_turn")
        if error:
            raise acp.RequestError.internal_error({"message": str(error)}) from error
        result = opened.turn.result()
        if result.stop_reason != "answered":
            await self._say(session_id, result.error)
        last = next((each for each in reversed(result.messages) if isinstance(each, AssistantMessage)), None)
        end = _ANSWERS.get(last.stop_reason) if last and result.stop_reason == "answered" else None
        return schema.PromptResponse(stop_reason=end or _ENDS[result.stop_reason])

    async def _say(self, session_id: str, text: str) -> None:
        if text:
            await self._editor().session_update(session_id, acp.update_agent_message_text(text))

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop the turn: what is complete is kept."""
        if opened := self._open.get(session_key(session_id)):
            opened.stop()

    async def close(self) -> None:
        """Close all sessions."""
        while self._open:
            _, opened = self._open.popitem()
            await opened.close()

    def _find(self, session_id: str) -> OpenSession:
        """The open session. Raises RequestError if there is none."""
        if opened := self._open.get(session_key(session_id)):
            return opened
        raise acp.RequestError.invalid_params({"session": f"session {session_id} isn't open"})

    async def _enter(
        self, name: str, cwd: str, mcp_servers: Sequence[Any] | None, *, known: bool = False
    ) -> OpenSession:
        """Open a session in a folder; a `known` one must exist, and may be open already."""
        if known and (already := self._open.get(session_key(name))):
            return already
        folder, (servers, unusable) = Path(cwd), _settings_of(mcp_servers or ())
        try:
            agent, notices = self._agent_in(folder, "", servers)
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
        notices = [*notices, *unusable, *agent.notices, *session.warnings]
        opened = OpenSession(agent, session, notices, models, servers, self._has_terminals)
        self._open[session.key] = opened
        return opened

    async def _change_agent(self, opened: OpenSession, model: str) -> None:
        try:
            agent, _ = self._agent_in(opened.agent.workspace, model, opened.servers)
        except DenizenError as error:
            raise acp.RequestError.invalid_params({"model": str(error)}) from error
        opened.set_agent(agent)

    def _say_commands(self, session_id: str, agent: AgentHandle) -> None:
        """Send the editor the commands, once it knows the session."""
        update = update_available_commands(available_commands(agent))
        later = asyncio.create_task(self._editor().session_update(session_id, update))
        self._later.add(later)
        later.add_done_callback(self._later.discard)

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


def _settings_of(servers: Sequence[Any]) -> tuple[dict[str, McpServer], list[str]]:
    """The servers that an editor names, by name, and a sentence for each that can't be used."""
    found, unusable = dict[str, McpServer](), list[str]()
    for server in servers:
        match server:
            case schema.McpServerStdio():
                env = {variable.name: variable.value for variable in server.env}
                found[server.name] = McpServer(command=server.command, args=server.args, env=env)
            case schema.HttpMcpServer():
                headers = {each.name: each.value for each in server.headers}
                found[server.name] = McpServer(url=server.url, headers=headers)
            case _:
                why = f"servers of the type {server.type} aren't supported"
                unusable.append(f"the MCP server {server.name} can't be used: {why}")
    return found, unusable


def _history(opened: OpenSession) -> Iterator[Any]:
    """The updates that showed the session's turns when they ran."""
    agent, entries = opened.agent, opened.session.entries
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
