"""The record of an agent: what its turns share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from denizen.config.redact import Redactor
from denizen.messages import AssistantMessage, ToolCall
from denizen.ports.actions import NOTHING_SEEN, ActionFormat
from denizen.ports.budget import Budget
from denizen.ports.checkpoints import Checkpoints
from denizen.ports.context import ContextPolicy
from denizen.ports.driver import Driver
from denizen.ports.hooks import Hooks
from denizen.ports.memory import Memory
from denizen.ports.model import KnownModel, Reasoning
from denizen.ports.policy import Policy
from denizen.ports.prompt import PromptBuilder
from denizen.ports.sandbox import Sandbox
from denizen.ports.session import SessionStore
from denizen.ports.tool import Toolset
from denizen.runtime.cache import SharedCache
from denizen.runtime.clock import Clock

NewContext = Callable[[ActionFormat, Toolset], ContextPolicy]
"""Makes a context policy."""
NewDriver = Callable[[], Driver]
"""Makes the driver of a turn."""

SubagentRecord = Callable[["AgentRecord", str], "AgentRecord"]
"""The subagent of an agent, by the name of its definition; empty: one like the agent itself. Raises ToolRefused."""


_MAX_STATES = 512
"""Sessions whose state is kept in memory for their next turn."""
_MAX_STATE_ENTRIES = 50_000
"""Entries of all of them together, when last used."""


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """How far a turn may go: model calls, tokens of an answer, characters of a tool's result; a subagent's: seconds."""

    iterations: int
    answer_tokens: int
    result_chars: int
    subagent_seconds: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRecord:
    """What the turns of an agent share; nothing in it changes from turn to turn, and it serves many sessions at once.

    `name` is its profile's. Earlier replies of a session may be in any of the `formats`, by name. `environ` is that of
    the programs it starts. `home` is a folder that no tool touches; `restricted`: paths outside
    the workspace are refused, but reading in the folders `readable` is not. `options` and `reasoning` go with each
    model call. A question to a person lasts for `park_time`. `recalls`: a task begins with the memories that
    fit it; `subagent` makes the records of those that work for it. `zone` is the user's time zone (None: the
    machine's).

    `states` is a cache: what is known of its sessions (`session_state.state_of`).
    """

    name: str
    model: KnownModel
    tools: Toolset
    actions: ActionFormat
    formats: Mapping[str, ActionFormat]
    new_context: NewContext
    new_driver: NewDriver
    policy: Policy
    store: SessionStore
    memory: Memory
    checkpoints: Checkpoints | None
    sandbox: Sandbox
    prompt: PromptBuilder
    budget: Budget
    redactor: Redactor
    clock: Clock
    limits: TurnLimits
    environ: Mapping[str, str]
    home: Path
    workspace: Path
    restricted: bool = True
    readable: Sequence[Path] = ()
    options: Mapping[str, Any]
    reasoning: Reasoning | None = None
    park_time: timedelta
    recalls: bool = False
    zone: tzinfo | None = UTC
    hooks: Hooks | None = None
    subagent: SubagentRecord
    states: SharedCache[Any] = field(
        default_factory=lambda: SharedCache(_MAX_STATES, _MAX_STATE_ENTRIES), compare=False
    )

    def now(self) -> datetime:
        """The user's local time."""
        return self.clock.now().astimezone(self.zone)

    def calls_of(self, reply: AssistantMessage) -> Sequence[ToolCall]:
        """The calls of a reply, in this agent's action format."""
        return self.actions.read(reply, self.tools, NOTHING_SEEN).calls

    def shown(self, call: ToolCall) -> str:
        """The call in a line, as the model would write it."""
        return self.actions.show(call, self.tools)

    def redact(self, text: str) -> str:
        """The text without the secrets that the configuration and the environment hold."""
        return self.redactor.text(text)
