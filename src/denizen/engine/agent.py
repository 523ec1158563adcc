"""An agent: everything that its turns share."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict, Unpack, overload
from weakref import WeakKeyDictionary

import msgspec

from denizen.actions import Once
from denizen.cache import BoundedCache
from denizen.checkpoints import Shadow, shadow_of
from denizen.clock import Clock, SystemClock
from denizen.config import Config, load_config
from denizen.config.env import read_dotenv
from denizen.config.home import ensure_home, located, places
from denizen.config.redact import Redactor, secrets_of
from denizen.config.trust import is_trusted
from denizen.engine.drivers import NewDriver, Watched, find_driver, with_tools_of
from denizen.engine.feed import Feed
from denizen.engine.known import known
from denizen.engine.loops import Loops, changing_tools
from denizen.engine.profiles import FORMATS, Profile, find_actions, find_context, find_profile
from denizen.engine.undo import finish_undo
from denizen.errors import DenizenError, SessionError
from denizen.estimate import estimate_text
from denizen.events import Out, RunEvent, RunResult
from denizen.memory import open_memory
from denizen.messages import AssistantMessage, ToolCall, UserMessage
from denizen.models import open_model
from denizen.ports import Driver, Model, Session, SessionStore, Tool, Toolset, TurnIO
from denizen.prompt import find_skills
from denizen.sessions import JsonlStore, session_key
from denizen.sessions.spend import Spend
from denizen.tools.defaults import check_rules, with_defaults
from denizen.tools.policy import RulePolicy
from denizen.tools.programs.jobs import Jobs
from denizen.tools.sandbox import choose_sandbox

RECENT = 512
"""Sessions whose feed is kept for when they are opened again."""
RECENT_ENTRIES = 50_000
"""The entries that these had together when they were opened last."""


OnEvent = Callable[[RunEvent], object]
OnEventAsync = Callable[[RunEvent], Awaitable[None]]


class RunOptions(TypedDict, total=False):
    """What `Agent.run` takes with the message: as `run_agent`, which says what each is for."""

    session_key: str
    on_event: OnEvent | OnEventAsync | None
    io: TurnIO | None


class Agent:
    """A model, tools, a policy and a store to run turns with: `async with Agent("openai:gpt-5-mini") as agent`.

    It is made of a configuration, or of a model's name and the user's own configuration, or of that alone.
    `instructions` say who it is and what it is for, in place of the profile's own words. `model` (one, or the name of
    one), `tools`, `driver` and `store` stand in for what the configuration names; with `tools=()` there are none. It
    serves one event loop at a time. `profile` is one of `PROFILES` by its name, or one of your own.
    `environ` holds the keys (default: the process's, with the home's `.env`). `read_only` refuses everything but reads.
    """

    _loop: asyncio.AbstractEventLoop | None = None
    _limits_known = False

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
        clock: Clock | None = None,
        environ: Mapping[str, str] | None = None,
        read_only: bool = False,
    ) -> None:
        environ = os.environ if environ is None else environ
        self.config = located(_settings(config, model, environ), environ=environ, cwd=Path.cwd())
        self.home, self.workspace = places(self.config)
        dotenv = read_dotenv(self.home)
        self.profile = find_profile(profile)
        self.instructions = instructions
        self.clock = clock or SystemClock()
        self.environ = environ = {**dotenv, **environ}
        self.new_driver = driver or find_driver(
            self.config.agent.driver or self.profile.driver, home=self.home, environ=environ
        )
        self.checkpoints = self._checkpoints()
        self.redactor = Redactor.from_environ(environ, secrets_of(self.config, dotenv))
        self.model = known(self._model() if isinstance(model, str | None) else model)
        self.actions = Once(find_actions(self.config.agent.actions, self.profile, self.model))
        self.store = store or JsonlStore(self.home / "sessions", clock=self.clock, redactor=self.redactor)
        own, trusted = self.config.agent.workspace_dir, is_trusted(self.home, self.workspace)
        self.skills, self.skill_notices = find_skills(own, self.workspace, trusted=trusted, profile=self.profile.name)
        self.jobs = Jobs()
        self.sandbox = choose_sandbox(self.config.sandbox, environ, self.home, secrets_of(self.config, dotenv))
        self.policy = RulePolicy(
            self.config.policy,
            confined=self.sandbox.confines,
            network=self.config.sandbox.network,
            workspace=self.workspace,
            restricted=self.config.agent.restrict_to_workspace,
            home=self.home,
            redactor=self.redactor,
        )
        notes = self.profile.name == "assistant"
        self.memory = open_memory(self.config, clock=self.clock, redact=self.redactor.text, with_notes=notes)
        self.tools = self._toolset(tools)
        self._changing = changing_tools(self.tools)
        self.tool_names = [tool.name for tool in self.tools]
        self.tool_tokens = estimate_text(msgspec.json.encode(self.tools.schemas).decode())
        self.budget = Spend(self.config, self.home, self.clock)
        self.park_time = timedelta(hours=self.config.policy.park_hours)
        self.options = self.config.agent.options
        self.read_only = read_only
        self._feeds: WeakKeyDictionary[Session, Feed] = WeakKeyDictionary()
        self._recent = BoundedCache[Feed](RECENT, RECENT_ENTRIES)

    async def __aenter__(self) -> "Agent":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @overload
    async def run(
        self, message: str | UserMessage | None, *, output: type[Out], **options: Unpack[RunOptions]
    ) -> RunResult[Out]: ...

    @overload
    async def run(
        self, message: str | UserMessage | None, *, output: Any = None, **options: Unpack[RunOptions]
    ) -> RunResult: ...

    async def run(self, message: str | UserMessage | None, *, output: Any = None, **options: Any) -> RunResult:
        """Answer one message, as `run_agent` does with this agent."""
        from denizen.engine.run import run_agent

        return await run_agent(message, agent=self, output=output, **options)

    async def close(self) -> None:
        """Give back connections and files, and end what runs in the background."""
        await self.jobs.end()
        self.budget.close()
        await self.model.close()

    async def open(self, key: str) -> Session:
        """The session of that key or short name, open for writing.

        Raises SessionError when another process has it, DenizenError while another event loop has the agent.
        """
        self._belong_here()
        ensure_home(self.home)
        session = await self.store.open(session_key(key), workspace=str(self.workspace), profile=self.profile.name)
        try:
            await finish_undo(self.checkpoints, session)
        except BaseException:
            await session.close()
            raise
        return session

    async def know_limits(self) -> None:
        """Look up what the model takes: while its server is asked, or the catalogue read, other turns go on."""
        if not self._limits_known:
            await asyncio.to_thread(self.model.limits)
            self._limits_known = True

    async def leave(self, session: Session) -> None:
        """Close a session that was opened here; one that has nothing but its header isn't kept."""
        blank = len(session.entries) == 1 and not session.moved
        await session.close()
        if blank:
            with suppress(SessionError):  # another process has it by now
                await self.store.remove(session.key)

    def _belong_here(self) -> None:
        """Connections, and what waits for the disk, are an event loop's."""
        here = asyncio.get_running_loop()
        if self._loop and self._loop is not here and self._loop.is_running():
            raise DenizenError("This agent works in another thread's event loop. Make one for each thread.")
        self._loop = here

    def _model(self) -> Model:
        return open_model(self.config, environ=self.environ, clock=self.clock)

    def _toolset(self, tools: Sequence[Tool] | None) -> Toolset:
        """These tools, or the agent's own. Raises ConfigError for a rule about one that there isn't."""
        given = self._own_tools() if tools is None else _checked(tools)
        toolset = Toolset([*self.actions.extra_tools(given), *given])
        check_rules(self.config.policy.rules, toolset)
        return toolset

    def _own_tools(self) -> Sequence[Tool]:
        """The profile's and the driver's, with the defaults that the configuration gives them."""
        return with_defaults(with_tools_of(self.new_driver, self.profile.tools(self)), self.config.tools)

    def _checkpoints(self) -> Shadow | None:
        """Those of the workspace, where it is one that the agent changes: a project, or what the profile is for."""
        if not (self.profile.checkpoints or (self.workspace / ".git").exists()):
            return None
        return shadow_of(self.workspace, self.home, clock=self.clock, environ=self.environ)

    def driver(self) -> Driver:
        """What steers a turn, watched for loops."""
        return Watched(self.new_driver(), Loops(self._changing, self.shown))

    def shown(self, call: ToolCall) -> str:
        """The call in a line, as the model would write it."""
        return self.actions.show(call, self.tools)

    def feed(self, session: Session) -> Feed:
        """What this agent knows of an open session, up to its head."""
        feed = self._feeds.get(session)
        if feed is None:
            feed = self._feeds[session] = self._closed_feed(session) or self._new_feed()
            self._recent.put(session.key, feed, len(session.entries))
        feed.read_on(session.entries)
        return feed

    def _closed_feed(self, session: Session) -> Feed | None:
        """That of a session which was closed, and opened again as it was."""
        feed = self._recent.take(session.key)
        return feed if feed and feed.knows(session.entries) else None

    def _new_feed(self) -> Feed:
        return Feed(
            lambda actions: find_context(self.profile, self.model)(actions, self.tools),
            self.driver,
            self.actions,
            {name: other for name, other in FORMATS.items() if other is not self.actions.format},
            self.tools,
        )

    def calls_of(self, reply: AssistantMessage) -> Sequence[ToolCall]:
        """What a reply asks for, in this agent's action format."""
        return self.actions.read(reply, self.tools).calls

    def redact(self, text: str) -> str:
        """The text without the secrets that the configuration and the environment hold."""
        return self.redactor.text(text)


def _settings(config: Config | str | None, model: Model | str | None, environ: Mapping[str, str]) -> Config:
    """The configuration, by default the user's own, with the model that is named. Raises ConfigError."""
    if isinstance(config, str) and model is not None:
        raise TypeError(f"two models are given: {config!r}, and model={model!r}")
    if not isinstance(config, Config | str | None):
        raise TypeError(f"an agent is made of a Config (see load_config) or a model's name, not of {config!r}")
    settings = config if isinstance(config, Config) else load_config(environ=environ)
    name = config if isinstance(config, str) else model
    return msgspec.structs.replace(settings, model=name) if isinstance(name, str) else settings


def _checked(tools: Sequence[Tool]) -> Sequence[Tool]:
    for tool in tools:
        if not hasattr(tool, "schema"):
            raise TypeError(f"{tool!r} is no tool: put @tool above the function")
    return tools
