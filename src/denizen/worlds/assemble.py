"""Making an agent out of a configuration and a world."""

import asyncio
import copy
import functools
import inspect
import os
import shlex
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast, overload

import msgspec

from denizen.actions import Native, Shell
from denizen.config import Config, load_config
from denizen.config.env import read_dotenv
from denizen.config.home import ensure_home, located, places
from denizen.config.redact import Redactor, secrets_of
from denizen.config.settings import SandboxSettings
from denizen.config.trust import is_trusted
from denizen.config.zone import user_zone
from denizen.context import Transcript
from denizen.engine.callback_host import CallbackHost
from denizen.engine.output import OutputType
from denizen.engine.record import AgentRecord, NewDriver, TurnLimits
from denizen.engine.turn import TurnOptions
from denizen.engine.undo import finish_undo
from denizen.errors import DenizenError, SessionError
from denizen.events import Done, Out, RunEvent, RunResult, StreamEvent
from denizen.memory import LongTermMemory, open_memory
from denizen.messages import Text, UserMessage
from denizen.models import open_model
from denizen.ports import (
    ActionFormat,
    Budget,
    KnownModel,
    Limits,
    Memory,
    Model,
    ModelRequest,
    Session,
    SessionStore,
    Tool,
    Toolset,
    TurnIO,
)
from denizen.prompt import Skill, SkillPins, find_agents, find_skills
from denizen.prompt.workspace import WorkspacePrompt
from denizen.runtime.clock import Clock, SystemClock
from denizen.sessions import JsonlStore, new_name
from denizen.sessions import session_key as full_key
from denizen.sessions.spend import Spend
from denizen.sessions.spend_file import SpendFile
from denizen.tools.accepted import accepted_tools
from denizen.tools.policy.defaults import check_rules, with_defaults
from denizen.tools.policy.policy import RulePolicy
from denizen.tools.programs.jobs import Jobs
from denizen.tools.sandbox import GuardedSandbox, choose_sandbox
from denizen.tools.subagent import with_agents
from denizen.trusted.environment import editable_install_warning
from denizen.trusted.pending_checks import run_pending_checks
from denizen.trusted.session_files import SessionFiles
from denizen.worlds.drivers import FoundDriver, find_driver
from denizen.worlds.hooks import CommandHooks
from denizen.worlds.session_turns import session_turn
from denizen.worlds.subagents import Subagents
from denizen.worlds.world import Profile, ToolParts, World, find_world, take_turn

if TYPE_CHECKING:
    from denizen.checkpoints import Shadow
    from denizen.tools.mcp import McpServers

FORMATS: dict[str, ActionFormat] = {each.name: each for each in (Native(), Shell())}
"""The action formats, by their names in the configuration."""

OFFLINE = "offline"
"""The name of the embedded model, which needs the whole transcript and native calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """An agent's record, and what hosts need beyond it. `renew` gives a record its MCP servers' tools."""

    record: AgentRecord
    renew: Callable[[AgentRecord], AgentRecord]
    mcp: "McpServers | None"
    config: Config
    skills: Sequence[Skill]
    checkpoints: "Shadow | None"
    jobs: Jobs
    subagents: Subagents


def assemble(
    config: Config,
    world: World,
    *,
    instructions: str = "",
    model: Model | None = None,
    tools: Sequence[Tool] | None = None,
    driver: NewDriver | None = None,
    store: SessionStore | None = None,
    memory: LongTermMemory | None = None,
    budget: Budget | None = None,
    clock: Clock | None = None,
    environ: Mapping[str, str],
) -> Assembly:
    """The agent of a located configuration in a world. What is given stands in for what the configuration names.

    `environ` is the process's; the home's `.env` adds to it. Raises ConfigError.
    """
    profile, agent, clock = world.profile, config.agent, clock or SystemClock()
    home, workspace = places(config)
    dotenv = read_dotenv(home)
    hooks_environ = {name: value for name, value in environ.items() if name not in dotenv}
    environ = {**dotenv, **environ}
    secrets = secrets_of(config, dotenv)
    redactor = Redactor.from_environ(environ, secrets)
    notices = [run_pending_checks(home, environ), editable_install_warning(workspace.resolve())]

    # The model, and how it acts
    known_model = with_default_limits(
        model or open_model(config, environ=environ, clock=clock, cooldown=profile.cooldown)
    )
    is_offline = known_model.name == OFFLINE
    actions = FORMATS["native"] if is_offline else FORMATS.get(agent.actions, profile.actions)
    if driver:
        steering = FoundDriver(driver, getattr(driver, "tools", ()))
    else:
        steering = find_driver(agent.driver or profile.driver, home=home, environ=environ)

    # What the workspace and the home hold for it
    trusted = is_trusted(home, workspace)
    pins, session_files = SkillPins(home), SessionFiles.of(config)
    found_skills, skill_notices = find_skills(agent.workspace_dir, workspace, trusted=trusted, profile=profile.name)
    skills, changed_skills = pins.admit(found_skills)
    agent_files, agent_notices = find_agents(home, workspace, trusted=trusted)
    notices += [*skill_notices, *changed_skills, *agent_notices]
    subagents = Subagents(agent_files, config, environ=environ, clock=clock)
    memory = memory or open_memory(config, clock=clock, redact=redactor.text, with_notes=profile.notes)
    checkpoints = None
    if profile.checkpoints or (workspace / ".git").exists():
        from denizen.checkpoints import shadow_of

        checkpoints = shadow_of(workspace, home, clock=clock, environ=environ)

    # Where its commands run
    skill_folders = [skill.path.parent for skill in skills]
    shown = with_shown(config.sandbox, skill_folders)
    commands = _configured_commands(config)
    choose = functools.partial(choose_sandbox, shown, environ, home, secrets, workspace, commands=commands)
    sandbox = GuardedSandbox(choose, session_files)
    jobs = Jobs()

    # Its tools
    mcp = None
    if tools is None:
        parts = ToolParts(
            config=config,
            home=home,
            workspace=workspace,
            environ=environ,
            sandbox=sandbox,
            memory=memory,
            checkpoints=checkpoints,
            jobs=jobs,
        )
        own = with_agents(profile.tools(parts), subagents.described)
        tools = with_defaults(steering.with_tools(own), config.tools)
        mcp = _mcp_servers(config, session_files, workspace, environ, clock)
    tools = _accepted(tools)
    toolset = _toolset(actions, tools, mcp)
    check_rules(config.policy.rules, toolset)

    prompt = WorkspacePrompt(
        own_folder=agent.workspace_dir,
        workspace=workspace,
        model=known_model.name,
        tools=[tool.name for tool in toolset.listed],
        guides=mcp.guides() if mcp else (),
        skills=skills,
        skill_notices=[*filter(None, notices)],
        pins=pins,
        session_files=session_files,
        notes=functools.partial(memory.for_prompt, config.memory.recent_days),
        identity=profile.identity,
        instructions=instructions,
        lists_tools=not actions.lists_tools,
    )
    policy = RulePolicy(
        msgspec.structs.replace(config.policy, rules=[*profile.rules, *config.policy.rules]),
        sandbox=sandbox,
        network=config.sandbox.network,
        commands=commands,
        workspace=workspace,
        restricted=agent.restrict_to_workspace,
        home=home,
        redactor=redactor,
        own_folder=agent.workspace_dir,
        environ=environ,
    )
    record = AgentRecord(
        name=profile.name,
        model=known_model,
        tools=toolset,
        actions=actions,
        formats=FORMATS,
        new_context=Transcript if is_offline else profile.context,
        new_driver=steering.new,
        policy=policy,
        store=store or JsonlStore(home / "sessions", clock=clock, redactor=redactor),
        memory=memory,
        checkpoints=checkpoints,
        sandbox=sandbox,
        prompt=prompt,
        budget=budget or Spend(config, SpendFile(home / "spend.db"), clock),
        redactor=redactor,
        clock=clock,
        limits=TurnLimits(agent.max_iterations, agent.max_tokens, agent.max_tool_result_chars),
        environ=environ,
        home=home,
        workspace=workspace,
        restricted=agent.restrict_to_workspace,
        readable=skill_folders,
        options=agent.options,
        reasoning=agent.reasoning,
        park_time=timedelta(hours=config.policy.park_hours),
        recalls=profile.recalls,
        zone=user_zone(config),
        hooks=CommandHooks(config.hooks, workspace, hooks_environ, session_files) if config.hooks else None,
        subagent=subagents.record,
    )

    def renew(record: AgentRecord) -> AgentRecord:
        toolset = _toolset(actions, tools, mcp)
        names = [tool.name for tool in toolset.listed]
        guides = mcp.guides() if mcp else ()
        return replace(record, tools=toolset, prompt=replace(prompt, tools=names, guides=guides))

    return Assembly(
        record=record,
        renew=renew,
        mcp=mcp,
        config=config,
        skills=skills,
        checkpoints=checkpoints,
        jobs=jobs,
        subagents=subagents,
    )


def _configured_commands(config: Config) -> list[tuple[str, str]]:
    """The commands of hooks and MCP servers, each after its folder in the workspace."""
    hooks = [("", hook.command) for hook in config.hooks]
    servers = [(server.cwd, shlex.join([server.command, *server.args])) for server in config.mcp.values()]
    return [*hooks, *servers]


def _mcp_servers(
    config: Config, session_files: SessionFiles, workspace: Path, environ: Mapping[str, str], clock: Clock
) -> "McpServers | None":
    if not config.mcp:
        return None
    from denizen.tools.mcp import McpServers

    return McpServers(
        config.mcp,
        session_files,
        workspace=workspace,
        environ=environ,
        clock=clock,
        most_tools=config.agent.max_mcp_tools,
    )


def _accepted(tools: Sequence[Tool]) -> Sequence[Tool]:
    """The tools as providers accept them. Raises TypeError for what isn't one."""
    for each in tools:
        if not hasattr(each, "schema"):
            raise TypeError(f"{each!r} isn't a tool: put @tool above the function")
    return accepted_tools(tools)


def _toolset(actions: ActionFormat, tools: Sequence[Tool], mcp: "McpServers | None") -> Toolset:
    if mcp:
        tools = [*tools, *mcp.tools()]
    return Toolset([*actions.extra_tools(tools), *tools])


def with_shown(sandbox: SandboxSettings, folders: Sequence[Path]) -> SandboxSettings:
    """The settings of a sandbox whose commands may read these folders, too."""
    return msgspec.structs.replace(sandbox, toolchains=[*sandbox.toolchains, *map(str, folders)])


def with_default_limits(model: Model) -> KnownModel:
    """The model, with the limits of an unknown one unless it knows its own."""
    return model if isinstance(model, KnownModel) else _UnknownModel(model)


class _UnknownModel:
    local = False

    def __init__(self, model: Model) -> None:
        self._model = model
        self.name = type(model).__name__

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        return self._model.stream(request)

    def limits(self, session_key: str = "") -> Limits:
        return Limits()

    async def close(self) -> None:
        pass


OnEvent = Callable[[RunEvent], object]
OnEventAsync = Callable[[RunEvent], Awaitable[None]]


class AgentRunOptions(TypedDict, total=False):
    """The options of `Agent.run`; `run_agent` explains them."""

    session_key: str
    on_event: OnEvent | OnEventAsync | None
    io: TurnIO | None


class Agent:
    """A model, tools, a policy and a store to run turns with: `async with Agent("openai:gpt-5-mini") as agent`.

    It is made of a configuration, or of a model's name and the user's own configuration, or of that alone.
    `instructions` say who it is and what it is for, in place of the profile's own words. `model` (one, or the name of
    one), `tools`, `driver`, `store`, `memory` and `budget` stand in for what the configuration names; with `tools=()`
    there are none. It serves one event loop at a time. `profile` is the name of a world's, or one of your own.
    `environ` holds the keys (default: the process's, with the home's `.env`). `read_only` refuses everything but reads.

    `record` is the agent as the engine takes it.
    """

    _loop: asyncio.AbstractEventLoop | None = None
    _owns_model = True

    def __init__(
        self,
        config: Config | str | None = None,
        *,
        instructions: str = "",
        profile: str | Profile = "assistant",
        model: Model | str | None = None,
        tools: Sequence[Tool] | None = None,
        driver: NewDriver | None = None,
        store: SessionStore | None = None,
        memory: LongTermMemory | None = None,
        budget: Budget | None = None,
        clock: Clock | None = None,
        environ: Mapping[str, str] | None = None,
        read_only: bool = False,
    ) -> None:
        environ = os.environ if environ is None else environ
        settings = located(_settings(config, model, environ), environ=environ, cwd=Path.cwd())
        self.read_only = read_only
        self._own_memory = memory
        self._assemble = functools.partial(
            assemble,
            world=find_world(profile),
            instructions=instructions,
            tools=tools,
            driver=driver,
            clock=clock,
            environ=environ,
        )
        own_model = None if isinstance(model, str) else model
        self._hold(self._assemble(settings, model=own_model, store=store, memory=memory, budget=budget))

    def _hold(self, made: Assembly) -> None:
        self.record = made.record
        self.config, self.skills, self.checkpoints, self.mcp = made.config, made.skills, made.checkpoints, made.mcp
        self._made = made
        self._unmet_notices: list[str] = []

    @property
    def model(self) -> KnownModel:
        return self.record.model

    @property
    def tools(self) -> Toolset:
        return self.record.tools

    @property
    def store(self) -> SessionStore:
        return self.record.store

    @property
    def memory(self) -> Memory:
        return self.record.memory

    @property
    def clock(self) -> Clock:
        return self.record.clock

    @property
    def home(self) -> Path:
        return self.record.home

    @property
    def workspace(self) -> Path:
        return self.record.workspace

    async def __aenter__(self) -> "Agent":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @overload
    async def run(
        self, message: str | UserMessage | None, *, output: type[Out], **options: Unpack[AgentRunOptions]
    ) -> RunResult[Out]: ...

    @overload
    async def run(
        self, message: str | UserMessage | None, *, output: Any = None, **options: Unpack[AgentRunOptions]
    ) -> RunResult: ...

    async def run(self, message: str | UserMessage | None, *, output: Any = None, **options: Any) -> RunResult:
        """Answer one message, as `run_agent` does with this agent."""
        on_event: OnEvent | OnEventAsync | None = options.pop("on_event", None)
        if not inspect.iscoroutinefunction(on_event):
            return await self._run(message, cast("OnEvent | None", on_event), output, **options)
        async with aclosing(streamed(lambda on_event: self._run(message, on_event, output, **options))) as events:
            async for event in events:
                await on_event(event)
        return cast("Done", event).result  # it comes last, or the turn has raised

    async def _run(
        self,
        message: str | UserMessage | None,
        on_event: OnEvent | None,
        output: Any,
        *,
        session_key: str = "",
        io: TurnIO | None = None,
    ) -> RunResult:
        if not isinstance(message, str | UserMessage | None):
            raise TypeError(f"a message is a str, a UserMessage or None, not {type(message).__name__}")
        if message is None and not session_key:
            raise SessionError("Only a session can be gone on with: name it (session_key=…), or give a message.")
        said = UserMessage([Text(message)]) if isinstance(message, str) else message
        options = TurnOptions(
            stream=bool(on_event or io), output=None if output is None else OutputType(output), read_only=self.read_only
        )
        key = full_key(session_key or new_name(self.clock))
        async with session_turn(self.home, key, wait=self.config.agent.when_busy == "wait"):
            session = await self.open(key)
            try:
                host = CallbackHost(on_event, io) if on_event or not io else io
                return await take_turn(self, session, said, host, options)
            finally:
                await self.leave(session)

    async def open(self, key: str) -> Session:
        """The session of that key or short name, open for writing; an undo that a crash cut short is finished.

        Raises SessionError when another process has it, DenizenError while another event loop has the agent.
        """
        here = asyncio.get_running_loop()  # connections, and what waits for the disk, are an event loop's
        if self._loop and self._loop is not here and self._loop.is_running():
            raise DenizenError("This agent works in another thread's event loop. Make one for each thread.")
        self._loop = here
        ensure_home(self.home)
        if self.mcp and self.mcp.unmet:
            await self._meet_servers(self.mcp)
        session = await self.store.open(full_key(key), workspace=str(self.workspace), profile=self.record.name)
        try:
            await finish_undo(self.record.checkpoints, session)
        except BaseException:
            await session.close()
            raise
        return session

    async def _meet_servers(self, servers: "McpServers") -> None:
        """Ask new MCP servers for their tools; one that fails is asked again with the next session."""
        unmet = servers.unmet
        self._unmet_notices = await servers.meet()
        if servers.unmet != unmet:
            self.record = self._made.renew(self.record)

    @property
    def notices(self) -> list[str]:
        """Notices about MCP servers that can't be used or have changed."""
        return [*self._unmet_notices, *(self.mcp.notices() if self.mcp else ())]

    def elsewhere(
        self,
        folder: Path,
        shown: Sequence[Path] = (),
        *,
        home: Path | None = None,
        model: Model | None = None,
        checkpoints: bool = True,
    ) -> "Agent":
        """This agent in another folder, with the same model, store, budget and policy; commands may read `shown`, too.

        In another `home` only the model is the same. Closing it leaves the model open.
        """
        sandbox = with_shown(self.config.sandbox, shown)
        config = msgspec.structs.replace(self.config, sandbox=sandbox)
        config = located(config, environ=self.record.environ, cwd=folder, home=home or self.home, workspace=folder)
        if home:  # if nobody has accepted the MCP servers
            config = msgspec.structs.replace(config, mcp={})
        model = model or self.model
        if home:
            made = self._assemble(config, model=model)
            record = made.record
        else:
            budget = self.record.budget
            made = self._assemble(config, model=model, store=self.store, memory=self._own_memory, budget=budget)
            record = replace(made.record, policy=self.record.policy.at(folder))
        made = replace(made, record=record)
        if not checkpoints:
            made = replace(made, record=replace(record, checkpoints=None), checkpoints=None)
        there = copy.copy(self)
        there._owns_model = False  # noqa: SLF001 (its own class)
        there._hold(made)  # noqa: SLF001
        return there

    def record_with(self, model: str) -> AgentRecord:
        """The record with another model, which is closed with this agent. Raises ConfigError."""
        return self._made.subagents.with_model(self.record, model)

    async def leave(self, session: Session) -> None:
        """Close a session that was opened here; one that has nothing but its header isn't kept."""
        is_blank = len(session.entries) == 1 and not session.moved
        await session.close()
        if is_blank:
            with suppress(SessionError):  # another process has it by now
                await self.store.remove(session.key)

    async def close(self) -> None:
        """Give back connections and files, and end what runs in the background."""
        await self._made.jobs.end()
        if self.mcp:
            await self.mcp.close()
        await self._made.subagents.close()
        await self.record.budget.close()
        if self._owns_model:
            await self.model.close()


def _settings(config: Config | str | None, model: Model | str | None, environ: Mapping[str, str]) -> Config:
    """The configuration, by default the user's own, with the model that is named. Raises ConfigError."""
    if isinstance(config, str) and model is not None:
        raise TypeError(f"two models are given: {config!r}, and model={model!r}")
    if not isinstance(config, Config | str | None):
        raise TypeError(f"an agent is made of a Config (see load_config) or a model's name, not of {config!r}")
    settings = config if isinstance(config, Config) else load_config(environ=environ)
    name = config if isinstance(config, str) else model
    return msgspec.structs.replace(settings, model=name) if isinstance(name, str) else settings


async def streamed(run: Callable[[OnEvent], Coroutine[Any, Any, RunResult]]) -> AsyncGenerator[RunEvent]:
    """The events of the turn that `run` runs with a listener, as they happen; closing it cancels the turn."""
    events: asyncio.Queue[RunEvent | None] = asyncio.Queue()
    turn = asyncio.create_task(run(events.put_nowait))
    turn.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        await turn
    finally:
        if turn.cancel():
            with suppress(asyncio.CancelledError):
                await turn
