"""The state of a character: what it sees goes through chain and rules into its window; goal and plan are kept."""

from collections import deque
from typing import Literal

import msgspec

from denizen.engine.record import AgentRecord
from denizen.engine.session_state import state_of
from denizen.ports import Session, WorldLine
from denizen.worlds.moo.chain import (
    ChainActions,
    ChainState,
    LineOrigin,
    Step,
    TokenState,
    done_refusal,
    process_server_text,
)
from denizen.worlds.moo.character import Character
from denizen.worlds.moo.listener import CharacterListener, Kind
from denizen.worlds.moo.operator_answers import OperatorAnswers
from denizen.worlds.moo.plans import Plans
from denizen.worlds.moo.server_text import ServerLine
from denizen.worlds.moo.session_values import CHAIN, GOAL, SUMMARY, SessionValues
from denizen.worlds.moo.token_pages import Chain

Speaker = Literal["world", "player", "self", "operator"]
"""The speakers of lines."""


class CharacterState:
    """The state that the loop and the tools of an agent share.

    `errands` are commands of the chain, `answers` those of rules; `is_awake`: a cycle is to begin, whatever was done
    before; `is_done`: the model has said so, and there is nothing to think about until it is woken.
    """

    def __init__(self, agent: AgentRecord, session: Session, character: Character, listener: CharacterListener) -> None:
        self.session_state = state_of(agent, session)
        self.character = character
        self.values = SessionValues(session, self.session_state)
        self.answers_to_operator = OperatorAnswers(session, self.values)
        own = character.settings
        chain = Chain.of(own.user, own.token_chain, own.foreman, own.chain_secret, own.stall_timeout_seconds)
        token = self.values.get(CHAIN, TokenState) if chain.members else None
        self.chain = ChainState(chain, token or TokenState())
        self.plans = Plans(character.folder, self.values, self.note)
        self.listener = listener
        self.errands: deque[str] = deque()
        self.answers: deque[str] = deque()
        self.is_awake = self.is_done = False
        self._agent = agent

    @property
    def goal(self) -> str:
        """The current goal; empty if there is none."""
        return self.values.get(GOAL, str) or ""

    @property
    def now(self) -> float:
        """The time of day, in POSIX seconds."""
        return self._agent.clock.now().timestamp()

    def see(self, text: str, speaker: Speaker, *, in_result: bool = False) -> None:
        """Show the model a line; `in_result`: a tool's result shows it now, and the window when the cycle is over."""
        self.session_state.observe(WorldLine(self.cut(text), self._agent.clock.now(), speaker, in_result))

    def cut(self, text: str) -> str:
        """As much of a line as the model sees."""
        most = self.character.settings.line_characters
        return text if len(text) <= most else f"{text[:most]} [cut: {most:,} of {len(text):,} characters]"

    def tell(self, kind: Kind, text: str) -> None:
        """Send a line to the listener, which logs it."""
        self.answers_to_operator.add_output(kind, text)
        self.listener.line(kind, text)

    def note(self, text: str) -> None:
        """Log a note about the agent itself."""
        self.tell("system", text)

    def operator(self, text: str) -> None:
        """Show the model an instruction."""
        self.see(text, "operator")
        self.tell("operator", text)

    async def hear(self, line: ServerLine, command: str = "") -> bool:
        """Let the chain look at a line, of the output of `command` where that is one; whether the model may see it."""
        actions = await self.step(process_server_text(self.chain, line, LineOrigin(self.now, command)))
        return not actions.hides

    async def step(self, step: Step) -> ChainActions:
        """Keep what is known of the token, and do what follows from it."""
        self.chain, actions = step
        await self.values.keep(CHAIN, msgspec.to_builtins(self.chain.token))
        if actions.thought:
            self.note(f"[Chain] {actions.thought}")
        if actions.forged:
            self.note(f"[Forged] {actions.forged}")
        if actions.remembers:
            await self.remember(actions.remembers)
        if actions.plan is not None:
            await self.plans.change(actions.plan)
        if actions.goal is not None:
            await self.set_goal(actions.goal)
        self.errands.extend(actions.commands)
        if actions.wakes:
            self.is_awake = True
        return actions

    async def set_goal(self, goal: str) -> None:
        """Set the goal; an empty one clears it."""
        if goal and goal != self.goal:
            self.tell("goal", f"[Goal] {goal}")
        await self.values.keep(GOAL, goal)

    async def remember(self, text: str) -> None:
        """Add to the summary of what the window doesn't show any more."""
        before = self.values.get(SUMMARY, str) or ""
        if text not in before.splitlines():
            await self.values.keep(SUMMARY, f"{before}\n{text}".strip())

    async def apply_news(self) -> None:
        """Do what the model's directives say, in their order."""
        for entry in self.values.news():
            match entry.name:
                case "goal":
                    self.tell("goal", f"[Goal] {entry.value}")
                case "done":
                    self.tell("goal", f"[Done] {entry.value}")
                    await self.set_goal(done_refusal(self.chain))
                case "plan":
                    await self.plans.change(self.plans.rooms)
                case "build_plan":
                    await self.plans.write(str(entry.value), self._agent.now())
                case "soul_patch_rule" | "soul_patch_verb" | "soul_patch_note":
                    self.tell("patch", self.character.learn(entry.name, str(entry.value)))
                case "quotation":
                    self.note(f"[Quotation] not followed: {entry.value}")

    @property
    def token_holder(self) -> str:
        """The token's holder, if this agent knows it."""
        token, chain = self.chain.token, self.chain.chain
        return token.holder if chain.is_orchestrator else chain.me if token.holds else ""
