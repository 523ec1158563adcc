"""What an agent has in mind: what it sees goes through the token chain into its window, its goal and plan are kept."""

from collections import deque
from typing import Literal

import msgspec

from denizen.clock import Clock
from denizen.engine.record import AgentRecord
from denizen.engine.session_state import state_of
from denizen.ports import Session, WorldLine
from denizen.worlds.moo.chain import ChainActions, ChainState, Origin, Step, TokenState, process_server_text
from denizen.worlds.moo.kept import CHAIN, CLEAR, GOAL, PLAN, SUMMARY, Kept
from denizen.worlds.moo.listener import Kind, Listener
from denizen.worlds.moo.server_text import ServerLine
from denizen.worlds.moo.token_pages import Chain

Speaker = Literal["world", "player", "self", "operator"]
"""Who said a line."""


class Mind:
    """What the loop and the tools of an agent share.

    `errands` are commands of the chain and of rules; `is_awake`: a cycle is to begin, whatever was done before;
    `is_done`: the model has said so, and there is nothing to think about until it is woken.
    """

    def __init__(self, agent: AgentRecord, session: Session, chain: Chain, listener: Listener) -> None:
        self.session_state = state_of(agent, session)
        self.kept = Kept(session, self.session_state)
        self.chain = ChainState(chain, self.kept.get(CHAIN, TokenState) or TokenState())
        self.listener = listener
        self.errands: deque[str] = deque()
        self.is_awake = self.is_done = False
        self._clock: Clock = agent.clock

    @property
    def goal(self) -> str:
        """What it is about to do."""
        return self.kept.get(GOAL, str) or ""

    @property
    def plan(self) -> list[str]:
        """The rooms that are left to visit or to build."""
        return self.kept.get(PLAN, list[str]) or []

    @property
    def now(self) -> float:
        """The time of day, in POSIX seconds."""
        return self._clock.now().timestamp()

    def see(self, text: str, speaker: Speaker, *, in_result: bool = False) -> None:
        """Show the model a line; `in_result`: a tool's result shows it now, and the window when the cycle is over."""
        self.session_state.observe(WorldLine(text, self._clock.now(), speaker, in_result))

    def tell(self, kind: Kind, text: str) -> None:
        """Tell whoever watches, and the log."""
        self.listener.line(kind, text)

    def note(self, text: str) -> None:
        """Tell them something about the agent itself."""
        self.tell("system", text)

    def operator(self, text: str) -> None:
        """Show the model an instruction."""
        self.see(text, "operator")
        self.tell("operator", text)

    async def hear(self, line: ServerLine, command: str = "") -> bool:
        """Let the chain look at a line, of the output of `command` where that is one; whether the model may see it."""
        actions = await self.step(process_server_text(self.chain, line, Origin(self.now, command)))
        return not actions.hides

    async def step(self, step: Step) -> ChainActions:
        """Keep what is known of the token, and do what follows from it."""
        self.chain, actions = step
        await self.kept.keep(CHAIN, msgspec.to_builtins(self.chain.token))
        if actions.thought:
            self.note(f"[Chain] {actions.thought}")
        if actions.forged:
            self.note(f"[Forged] {actions.forged}")
        if actions.remembers:
            before = self.kept.get(SUMMARY, str)
            await self.kept.keep(SUMMARY, "\n".join(filter(None, [before, actions.remembers])))
        if actions.plan is not None:
            await self.kept.keep(PLAN, [*actions.plan])
        if actions.goal is not None:
            await self.set_goal(actions.goal)
        self.errands.extend(actions.commands)
        if actions.wakes:
            self.is_awake, self.is_done = True, False
        return actions

    async def set_goal(self, goal: str) -> None:
        """Keep a goal; empty: there is none any more."""
        if goal and goal != self.goal:
            self.tell("goal", f"[Goal] {goal}")
        await self.kept.keep(GOAL, goal)

    async def clear_window(self) -> None:
        """Forget the lines that the model sees."""
        await self.kept.keep(CLEAR, self.now)

    @property
    def token_holder(self) -> str:
        """Who holds the token, as far as this agent knows."""
        token, chain = self.chain.token, self.chain.chain
        return token.holder if chain.is_orchestrator else chain.me if token.holds else ""
