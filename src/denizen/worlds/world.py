"""Worlds: the places an agent can live in, and where they are found."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from denizen.config import Config
from denizen.config.plugins import entry_points, load_entry_point
from denizen.config.settings import Rule
from denizen.engine.loop import run_turn
from denizen.engine.record import AgentRecord, NewContext
from denizen.engine.resume import unfinished
from denizen.engine.turn import Resume, TurnOptions
from denizen.entries import AnyEntry, header_of
from denizen.errors import ConfigError, SessionError
from denizen.events import RunResult
from denizen.messages import UserMessage
from denizen.models.profiles import PROFILE_REST
from denizen.ports import ActionFormat, Checkpoints, Memory, Model, Sandbox, Session, Tool, TurnIO
from denizen.prompt import Skill
from denizen.prompt.texts import IDENTITY
from denizen.runtime.clock import BackOff
from denizen.sessions import short_name
from denizen.tools import default_tools
from denizen.tools.programs.jobs import Jobs
from denizen.tools.subagent import subagent

if TYPE_CHECKING:
    from denizen.checkpoints import Shadow
    from denizen.tools.mcp import McpServers


class ToolParts(msgspec.Struct, frozen=True, kw_only=True):
    """What a world's tools are made of; `environ` is that of the programs they start, `jobs` run in the background."""

    config: Config
    home: Path
    workspace: Path
    environ: Mapping[str, str]
    sandbox: Sandbox
    memory: Memory
    checkpoints: Checkpoints | None
    jobs: Jobs


def standard_tools(parts: ToolParts) -> list[Tool]:
    """The tools of every agent."""
    tools = default_tools(parts.config, sandbox=parts.sandbox, memory=parts.memory, environ=parts.environ)
    return [*tools, subagent]


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of agent: an action format, and a `context` policy made from it and the tools.

    `tools` are the agent's unless it is given others; `identity` says in the prompt who it is. `checkpoints`: they are
    kept in any workspace, otherwise only in git repositories. `driver` steers its turns unless the configuration
    names one. `recalls`: a task begins with the memories that fit it. `notes`: what it remembers also goes into
    MEMORY.md. `rules` come before the user's, which may decide otherwise. `cooldown`: how long auth profiles
    rest after a failure.
    """

    name: str
    actions: ActionFormat
    context: NewContext
    tools: Callable[[ToolParts], list[Tool]] = standard_tools
    identity: str = IDENTITY
    checkpoints: bool = False
    driver: str = "simple"
    recalls: bool = False
    notes: bool = False
    rules: tuple[Rule, ...] = ()
    cooldown: BackOff = PROFILE_REST


class AgentHandle(Protocol):
    """An agent as hosts hold it: `denizen.Agent`."""

    record: AgentRecord
    config: Config
    checkpoints: "Shadow | None"
    mcp: "McpServers | None"
    read_only: bool
    skills: Sequence[Skill]

    @property
    def workspace(self) -> Path: ...

    @property
    def notices(self) -> Sequence[str]:
        """Notices for the user, once a session is open."""

    async def open(self, key: str) -> Session:
        """The session of that key or short name, open for writing. Raises SessionError."""

    def record_with(self, model: str) -> AgentRecord:
        """The record with another model, which is closed with this agent. Raises ConfigError."""

    async def leave(self, session: Session) -> None:
        """Close a session; one that has nothing but its header isn't kept."""

    async def close(self) -> None:
        """Give back connections and files."""

    async def __aenter__(self) -> "AgentHandle": ...

    async def __aexit__(self, *error: object) -> None: ...

    def elsewhere(
        self,
        folder: Path,
        shown: Sequence[Path] = (),
        *,
        home: Path | None = None,
        model: Model | None = None,
        checkpoints: bool = True,
    ) -> "AgentHandle":
        """An agent like this one that works in another folder; commands may read the folders `shown`, too."""


@runtime_checkable
class RenderingHost(Protocol):
    """A host that shows an answer as `render` formats it."""

    render: Callable[[RunResult], str]


GoOn = Callable[[AgentHandle, Session, UserMessage | None, TurnIO, TurnOptions], Awaitable[RunResult | None]]
"""Goes on with a session whose turn is unfinished, and takes in a message, if any; None: it is for an ordinary turn.

A turn that was answered, yet what it was for isn't done, ends with an `error`.
"""


class World(msgspec.Struct, frozen=True):
    """A place that an agent can live in. Its entry point in the group `denizen.worlds` has the same name.

    `settings` is the struct that its table of the configuration, `[name]`, is read into, strictly. `go_on` is how a
    session of its kind goes on after a crash, or after a question was answered. `only_here` says why only its own host
    may continue an unfinished turn, and what to do; empty: any host may. `database` is the URL
    of the database that has its sessions; empty: they are in files.
    """

    name: str
    profile: Profile
    settings: type[msgspec.Struct] | None = None
    go_on: GoOn | None = None
    only_here: str = ""
    database: Callable[[Config], str] = lambda _: ""


def worlds() -> Iterator[World]:
    """The worlds that are installed, ours first. Raises ConfigError for one that can't be loaded."""
    found = entry_points("denizen.worlds")
    for entry in sorted(found, key=lambda each: (not each.value.startswith("denizen."), each.name)):
        yield _load(entry)


def find_world(profile: str | Profile) -> World:
    """The world of that profile; one of your own profiles makes a world of its own. Raises ConfigError."""
    if isinstance(profile, Profile):
        return World(profile.name, profile)
    names: list[str] = []
    for world in worlds():
        if world.profile.name == profile:
            return world
        names.append(world.profile.name)
    raise ConfigError(f"There is no profile {profile!r}; available: {', '.join(names)}.")


def check_host(entries: Sequence[AnyEntry]) -> None:
    """Raise SessionError if only its world's own host may resume the session's unfinished turn."""
    header = header_of(entries)
    if header.profile and unfinished(entries):
        for world in worlds():
            if world.only_here and world.profile.name == header.profile:
                raise SessionError(f"Session {short_name(header.key)} is in the middle of a turn. {world.only_here}")


async def take_turn(
    agent: AgentHandle,
    session: Session,
    message: UserMessage | None,
    io: TurnIO,
    options: TurnOptions | None = None,
) -> RunResult:
    """Answer a message, or go on with the session's unfinished turn (None).

    An unfinished turn goes on in the way of the world whose kind it is, whatever the agent's profile. Raises what
    `run_turn` and `check_host` raise.
    """
    options = options or TurnOptions()
    if message is None or unfinished(session.entries):
        check_host(session.entries)
        if result := await _resume_in_its_world(agent, session, message, io, options):
            return result
    return await run_turn(agent.record, session, message or Resume(), io, options)


async def _resume_in_its_world(
    agent: AgentHandle, session: Session, message: UserMessage | None, io: TurnIO, options: TurnOptions
) -> RunResult | None:
    """Go on with an unfinished turn in the way of the world that began it; None: it is an ordinary turn."""
    for world in worlds():
        if world.go_on and (result := await world.go_on(agent, session, message, io, options)):
            return result
    return None


def _load(entry: EntryPoint) -> World:
    world = load_entry_point(entry, "world")
    if not isinstance(world, World):
        package = entry.dist.name if entry.dist else entry.value
        raise ConfigError(f"{entry.name!r} of {package} isn't a world. Update or remove it.")
    return world
