"""One turn while it runs: its session, its host, and what the person said meanwhile."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from denizen.engine.feed import Account, Feed
from denizen.engine.output import Output
from denizen.entries import AnswerEntry, AnyEntry, StateEntry, UserEntry
from denizen.events import Done, Notice, RunEvent, RunResult, TurnStop
from denizen.messages import AssistantMessage, Text, Usage, UserMessage
from denizen.ports import Answer, Directive, FollowUp, Interrupt, Session, Steer, Stop, TurnIO, View

if TYPE_CHECKING:
    from denizen.engine.agent import Agent


Accept = Callable[[str], Awaitable[str]]
"""Whether a reply may end the turn: given it, what is wrong, told to the model; empty: nothing is."""


class TurnOver(Exception):
    """Ends the turn from wherever it stands."""

    def __init__(self, reason: TurnStop, note: str = "") -> None:
        super().__init__(note)
        self.reason: TurnStop = reason
        self.note = note


class Turn(msgspec.Struct, eq=False):
    """What the parts of the loop share.

    `moved` is as the session was when it began; `tries` counts typed answers; `kept`: the files were
    snapshotted before this iteration's first call that could change them; `told`: the host knows the result.
    """

    agent: "Agent"
    session: Session
    io: TurnIO
    stream: bool
    feed: Feed
    moved: bool = False
    traced: bool = False
    output: Output | None = None
    value: object = None
    tries: int = 0
    retries: int = 0
    last_usage: Usage | None = None
    steers: list[str] = []
    follow_ups: list[str] = []
    interrupts: list[str] = []
    answers: list[Answer] = []
    accept: Accept | None = None
    kept: bool = False
    told: bool = False

    @property
    def account(self) -> Account:
        """What the turn has said and used so far."""
        return self.feed.account

    def emit(self, event: RunEvent) -> None:
        """Tell the host."""
        self.io.emit(event)

    def tell(self, result: RunResult) -> None:
        """Tell the host how it ended: the last event."""
        self.told = True
        self.emit(Done(result))

    def notice(self, text: str, *, warning: bool = False) -> None:
        """Tell the user something."""
        self.emit(Notice(self.agent.redact(text), "warning" if warning else "info"))

    async def append(self, entry: AnyEntry) -> None:
        """Write it, before anything depends on it."""
        await self.session.append(entry)
        self.feed.read_on(self.session.entries)

    async def say(self, message: UserMessage) -> None:
        """Take in what the user said."""
        parts = [Text(self.agent.redact(part.text)) if isinstance(part, Text) else part for part in message.content]
        at = message.at or self.agent.clock.now()
        await self.append(UserEntry(message=UserMessage(parts, message.id, at)))

    async def apply(self, directive: Directive) -> None:
        """Keep what the model said about itself."""
        await self.append(StateEntry(name=directive.name, value=directive.value))

    def check_budget(self) -> None:
        """End the turn where it can't pay for another call; local models cost nothing."""
        if not self.agent.model.local:
            spent = self.account.usage.cost_usd or 0.0
            if why := self.agent.budget.check(self.session.key, spent):
                raise TurnOver("budget", why)

    def charge(self, answer: AssistantMessage) -> None:
        """Count what a call cost."""
        cost, model = answer.usage.cost_usd, self.agent.model
        if cost is None and model.local:
            return
        if problem := self.agent.budget.charge(self.session.key, cost, answer.model or model.name):
            self.notice(problem, warning=True)

    def view(self) -> View:
        """What the context policy may look at."""
        agent = self.agent
        prompt = self.feed.prompt_tokens + agent.tool_tokens
        return View(self.session, agent.model, agent.config.agent.max_tokens, prompt, self.feed.last_usage, agent.clock)

    def answered(self, answer: Answer) -> AnswerEntry:
        """What a person answered, as it is kept."""
        text = self.agent.redact(answer.text)
        return AnswerEntry(
            call_id=answer.call_id, allow=answer.allow, text=text, scope=answer.scope, unasked=answer.unasked
        )

    async def hear(self) -> None:
        """Take in what the person did meanwhile; a stop ends the turn here."""
        stopped = self.listen()
        while self.answers:
            await self.append(self.answered(self.answers.pop(0)))
        if stopped:
            raise TurnOver("cancelled")

    def listen(self) -> bool:
        """Note what the person did meanwhile; whether they stopped the turn."""
        stopped = False
        for control in self.io.controls():
            match control:
                case Steer(text):
                    self.steers.append(text)
                case FollowUp(text):
                    self.follow_ups.append(text)
                case Interrupt(text):
                    self.interrupts.append(text)
                case Stop():
                    stopped = True
                case Answer():
                    self.answers.append(control)
        return stopped

    async def pass_on(self, waiting: list[str]) -> bool:
        """Give the model what the person said meanwhile; whether there was anything."""
        said = bool(waiting)
        while waiting:
            await self.say(UserMessage([Text(waiting[0])]))
            del waiting[0]
        return said
