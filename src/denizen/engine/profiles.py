"""What differs between agents: the context policy and the action format (design, "The idea in one picture")."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from denizen.actions import Native, Shell
from denizen.context import Transcript, WorkingMemory
from denizen.errors import ConfigError
from denizen.ports import ActionFormat, ContextPolicy, KnownModel, Tool, Toolset
from denizen.prompt.texts import CODER, IDENTITY
from denizen.tools import code_tools, default_tools

if TYPE_CHECKING:
    from denizen.engine.agent import Agent


Context = Callable[[ActionFormat, Toolset], ContextPolicy]
"""Makes a context policy."""


def standard_tools(agent: "Agent") -> list[Tool]:
    """Those that every agent has."""
    return default_tools(agent.config, sandbox=agent.sandbox, memory=agent.memory, environ=agent.environ)


def coding_tools(agent: "Agent") -> list[Tool]:
    """Those for work in a project, which answer in place of dumping."""
    return code_tools(
        agent.config,
        sandbox=agent.sandbox,
        memory=agent.memory,
        environ=agent.environ,
        home=agent.home,
        checkpoints=agent.checkpoints,
        jobs=agent.jobs,
    )


@dataclass(frozen=True, slots=True)
class Profile:
    """A name for one choice of the two: `context` makes the policy, given the action format and the tools.

    `tools` are the agent's unless it is given others; `identity` says in the prompt who it is. `checkpoints` keeps
    them in any workspace, else in projects (git repositories) alone. `driver` steers its turns where the configuration
    names none. `recalls`: a task begins with what earlier sessions left that fits it.
    """

    name: str
    actions: ActionFormat
    context: Context
    tools: Callable[["Agent"], list[Tool]] = standard_tools
    identity: str = IDENTITY
    checkpoints: bool = False
    driver: str = "simple"
    recalls: bool = False


FORMATS: dict[str, ActionFormat] = {each.name: each for each in (Native(), Shell())}
"""The action formats, by their names in the configuration."""

OFFLINE = "offline"
"""The name of the model that is embedded."""

PROFILES = {
    profile.name: profile
    for profile in (
        Profile("assistant", FORMATS["native"], Transcript),
        Profile("coder", FORMATS["shell"], WorkingMemory, coding_tools, CODER, checkpoints=True, recalls=True),
    )
}


def find_profile(name: str | Profile) -> Profile:
    """The profile of that name, or the one given. Raises ConfigError naming those there are."""
    if isinstance(name, Profile):
        return name
    if name not in PROFILES:
        raise ConfigError(f"There is no profile {name!r}; there is: {', '.join(PROFILES)}.")
    return PROFILES[name]


def find_context(profile: Profile, model: KnownModel) -> Context:
    """The profile's context policy; the offline model finds its way by all that it looked up, so it sees all of it."""
    return Transcript if model.name == OFFLINE else profile.context


def find_actions(name: str, profile: Profile, model: KnownModel) -> ActionFormat:
    """The action format of that name, else the profile's; the offline model knows native calls only."""
    if model.name == OFFLINE:
        return FORMATS["native"]
    return FORMATS[name] if name else profile.actions
