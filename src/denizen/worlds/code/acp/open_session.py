"""A session that an editor has open, with the mode and model that its user chose."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import acp
from acp import schema

from denizen.config.settings import McpServer, Rule
from denizen.events import RunResult
from denizen.messages import ToolCall
from denizen.ports import Decision, Policy, Session, Tool, Traits
from denizen.worlds.world import AgentHandle

READ_ONLY = "read-only"
ASK = "ask"
AUTO = "auto"

_MODES = {
    ASK: schema.SessionMode(id=ASK, name="Ask", description="Asks you where the policy wants an approval."),
    AUTO: schema.SessionMode(
        id=AUTO, name="Auto", description="Approves whatever the policy would ask you; asks about quotations."
    ),
    READ_ONLY: schema.SessionMode(id=READ_ONLY, name="Read only", description="Refuses everything but reading."),
}


class ModePolicy:
    """A policy that refuses everything but reads while the session's mode is read-only, even during a turn."""

    def __init__(self, policy: Policy, opened: "OpenSession") -> None:
        self._policy = policy
        self._opened = opened
        self.arguments = policy.arguments
        self.preview = policy.preview
        self.denied_paths = policy.denied_paths
        self.rule_for = policy.rule_for
        self.keep = policy.keep

    def at(self, workspace: Path) -> "ModePolicy":
        """The same for a copy of the workspace."""
        return ModePolicy(self._policy.at(workspace), self._opened)

    def decide(
        self,
        call: ToolCall,
        tool: Tool,
        in_sight: Traits,
        *,
        approved: Sequence[Rule] = (),
        read_only: bool = False,
        chat: tuple[str, str] = ("", ""),
    ) -> Decision:
        """Whether the call may run."""
        read_only = read_only or self._opened.mode == READ_ONLY
        return self._policy.decide(call, tool, in_sight, approved=approved, read_only=read_only, chat=chat)


@dataclass(slots=True, eq=False)
class OpenSession:
    """An open session with the agent that answers next, the turn that runs, and `notices` that are still to be shown.

    `models` are those to choose from, `servers` the editor's own MCP servers. An agent that was made read-only has no
    other mode. The mode as it is then counts whenever a call of the agent is decided about. With `has_terminals`, the
    editor runs commands.
    """

    agent: AgentHandle
    session: Session
    notices: list[str]
    models: Sequence[str]
    servers: Mapping[str, McpServer]
    has_terminals: bool
    turn: asyncio.Task[RunResult] | None = None
    mode: str = field(init=False)
    _modes: dict[str, schema.SessionMode] = field(init=False)
    _agents: list[AgentHandle] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._modes = {READ_ONLY: _MODES[READ_ONLY]} if self.agent.read_only else _MODES
        self.mode = next(iter(self._modes))
        self.set_agent(self.agent)

    def set_mode(self, mode: str) -> None:
        """Change the mode, at once. Raises RequestError for an unknown mode."""
        if mode not in self._modes:
            problem = f"there is no mode {mode!r} here; available: {', '.join(self._modes)}"
            raise acp.RequestError.invalid_params({"mode": problem})
        self.mode = mode

    def set_agent(self, agent: AgentHandle) -> None:
        """Use another agent from the next turn on."""
        self._agents.append(agent)
        self.agent = agent
        agent.record = replace(agent.record, policy=ModePolicy(agent.record.policy, self))

    def modes(self) -> schema.SessionModeState:
        """The modes, for editors that know no options yet."""
        return schema.SessionModeState(current_mode_id=self.mode, available_modes=[*self._modes.values()])

    def options(self) -> list[schema.SessionConfigOptionSelect]:
        """The options, with their current values."""
        modes = [
            schema.SessionConfigSelectOption(value=mode.id, name=mode.name, description=mode.description)
            for mode in self._modes.values()
        ]
        name = self.agent.record.model.name
        models = [
            schema.SessionConfigSelectOption(value=each, name=each) for each in dict.fromkeys([name, *self.models])
        ]
        return [
            schema.SessionConfigOptionSelect(
                type="select", id="mode", name="Mode", category="mode", current_value=self.mode, options=modes
            ),
            schema.SessionConfigOptionSelect(
                type="select", id="model", name="Model", category="model", current_value=name, options=models
            ),
        ]

    @property
    def busy(self) -> bool:
        """Whether its turn runs."""
        return self.turn is not None and not self.turn.done()

    def stop(self) -> None:
        """Stop the turn; how it ends is not interrupted."""
        if self.turn and not self.turn.cancelling():
            self.turn.cancel()

    async def close(self) -> None:
        """Stop the turn, and close the session."""
        if self.turn and self.busy:
            self.stop()
            await asyncio.wait([self.turn])
        await self.agent.leave(self.session)
        for agent in self._agents:
            await agent.close()
