"""A session that an editor has open, and what its user chose for it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from acp.schema import SessionConfigOptionSelect, SessionConfigSelectOption, SessionMode, SessionModeState

from denizen.config.settings import Rule
from denizen.engine import AgentRecord
from denizen.events import RunResult
from denizen.messages import ToolCall
from denizen.ports import Decision, Policy, Session, Tool, Traits
from denizen.worlds.world import AgentHandle

READ_ONLY = "read-only"
ASK = "ask"
AUTO = "auto"

_MODES = {
    ASK: SessionMode(id=ASK, name="Ask", description="Asks you where the policy wants an approval."),
    AUTO: SessionMode(
        id=AUTO, name="Auto", description="Approves whatever the policy would ask you; asks about quotations."
    ),
    READ_ONLY: SessionMode(id=READ_ONLY, name="Read only", description="Refuses everything but reading."),
}


class ModePolicy:
    """A policy that refuses everything but reads while the conversation's mode is read-only, at once."""

    def __init__(self, policy: Policy, conversation: "Conversation") -> None:
        self._policy = policy
        self._conversation = conversation
        self.arguments = policy.arguments
        self.preview = policy.preview
        self.denied_paths = policy.denied_paths
        self.rule_for = policy.rule_for
        self.keep = policy.keep

    def decide(
        self, call: ToolCall, tool: Tool, in_sight: Traits, *, approved: Sequence[Rule] = (), read_only: bool = False
    ) -> Decision:
        """Whether the call may run."""
        read_only = read_only or self._conversation.mode == READ_ONLY
        return self._policy.decide(call, tool, in_sight, approved=approved, read_only=read_only)


@dataclass(slots=True, eq=False)
class Conversation:
    """An open session with the agent that answers next, the turn that runs, and `notices` that are still to be shown.

    `models` are those to choose from. An agent that was begun as read-only has no other mode.
    """

    agent: AgentHandle
    session: Session
    notices: list[str]
    models: Sequence[str]
    turn: asyncio.Task[RunResult] | None = None
    _modes: dict[str, SessionMode] = field(init=False)
    _mode: str = field(init=False)
    record: AgentRecord = field(init=False)
    _former: list[AgentHandle] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._modes = {READ_ONLY: _MODES[READ_ONLY]} if self.agent.read_only else _MODES
        self._mode = next(iter(self._modes))
        self._take(self.agent)

    @property
    def mode(self) -> str:
        """What becomes of calls that the policy wants approved."""
        return self._mode

    def set_mode(self, mode: str) -> None:
        """Change the mode, at once. Raises ValueError where there is no such mode."""
        if mode not in self._modes:
            raise ValueError(f"there is no mode {mode!r} here; there is: {', '.join(self._modes)}")
        self._mode = mode

    def set_agent(self, agent: AgentHandle) -> None:
        """Let another agent run the next turn; a turn that runs keeps the one it has."""
        self._former.append(self.agent)
        self._take(agent)

    def _take(self, agent: AgentHandle) -> None:
        """Run turns with this agent, under the mode as it is whenever a call is decided about."""
        self.agent = agent
        self.record = replace(agent.record, policy=ModePolicy(agent.record.policy, self))

    def modes(self) -> SessionModeState:
        """The modes, for editors that know no options yet."""
        return SessionModeState(current_mode_id=self._mode, available_modes=[*self._modes.values()])

    def options(self) -> list[SessionConfigOptionSelect]:
        """What can be chosen, and what is."""
        modes = [
            SessionConfigSelectOption(value=mode.id, name=mode.name, description=mode.description)
            for mode in self._modes.values()
        ]
        name = self.agent.record.model.name
        models = [SessionConfigSelectOption(value=each, name=each) for each in dict.fromkeys([name, *self.models])]
        return [
            SessionConfigOptionSelect(
                type="select", id="mode", name="Mode", category="mode", current_value=self._mode, options=modes
            ),
            SessionConfigOptionSelect(
                type="select", id="model", name="Model", category="model", current_value=name, options=models
            ),
        ]

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
        await self.agent.leave(self.session)
        for agent in (*self._former, self.agent):
            await agent.close()
