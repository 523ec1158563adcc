"""One turn while it runs: what began it, what belongs to it alone, and what the person said meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from denizen.engine.output import OutputType
from denizen.engine.record import AgentRecord
from denizen.engine.session_state import OPTIONS, USUAL, Account, KeptOptions, state_of
from denizen.engine.tracing import traced
from denizen.entries import AnswerEntry, AnyEntry, EndEntry, StateEntry, UserEntry
from denizen.events import Done, Notice, RunEvent, RunResult, TurnStop
from denizen.messages import AssistantMessage, Message, Text, ToolResult, Usage, UserMessage
from denizen.ports import (
    Answer,
    ContextPolicy,
    Directive,
    FollowUp,
    HookEvent,
    Hooks,
    Interrupt,
    Session,
    Steer,
    Stop,
    Traits,
    TurnEnded,
    TurnIO,
    View,
    with_changed,
)
from denizen.trusted.pending_checks import has_pending_checks, run_pending_checks

MOST_SUBAGENTS = 5
"""How many subagents of one turn work at once."""

AcceptReply = Callable[[str], Awaitable[str]]
"""Whether a reply may end the turn: given it, what is wrong, for the model; empty: nothing is."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on with a turn that a crash or a question left unfinished."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """A turn that nobody's message begins: a world's tick, a heartbeat. `text` is what the model is to go by.

    The entry that keeps it has the `id`.
    """

    text: str = ""
    id: str = ""


Start = UserMessage | Resume | Cycle
"""What a turn begins with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOptions:
    """What belongs to one turn and to no other.

    `stream` asks for deltas; `output` is what the final answer must be; `accept` is asked of each reply that would end
    the turn, and the model gets what it finds wrong. `queued` hands over what the person has entered meanwhile: it is
    called just before a model call that will see it, so that until then the host can still let them change it.
    `read_only` refuses everything but reads. `channel` and `chat` say where the message came from. `parent` is the turn
    that began this one, which pays for it: what this one spends counts there, and in that one's session. Where it may
    be over, `payer` names its session, and `spent_usd` is what it had spent. `depth` is how many such turns are around
    this one. Without `history` the model sees nothing of the session's earlier turns. A system prompt that was last
    used before `prompt_since`, when the host started, is made anew. `KeptOptions` of them are kept in the session:
    whoever goes on with the turn can't loosen it.
    """

    stream: bool = True
    output: OutputType | None = None
    accept: AcceptReply | None = None
    queued: Callable[[], Awaitable[Sequence[UserMessage]]] | None = None
    read_only: bool = False
    channel: str = ""
    chat: str = ""
    parent: "Turn | None" = None
    payer: str = ""
    spent_usd: float = 0.0
    depth: int = 0
    history: bool = True
    prompt_since: datetime | None = None
    resumes: bool = False


_T = TypeVar("_T")

RunTurn = Callable[[AgentRecord, Session, Start, TurnIO, TurnOptions], Coroutine[Any, Any, RunResult]]
"""Runs a turn to its end."""


def spent_by_subagents(agent: AgentRecord, messages: Sequence[Message]) -> float:
    """What the turns have spent whose results are among these messages (US dollars)."""
    spent = 0.0
    for message in messages:
        if isinstance(message, ToolResult) and (tool := agent.tools.get(message.name)):
            usd = message.details.get("spent_usd") if isinstance(message.details, dict) else None
            if Traits.DELEGATES in tool.traits and isinstance(usd, int | float):
                spent += max(usd, 0.0)
    return spent


class TurnOver(TurnEnded):
    """Ends the turn from anywhere in it."""

    def __init__(self, reason: TurnStop, note: str = "") -> None:
        super().__init__(note)
        self.reason: TurnStop = reason
        self.note = note


class Interrupted(Exception):
    """The person interrupts the model's answer."""


class Turn:
    """What the parts of the loop share.

    `moved` is as the session was when it began; `tries` counts typed answers, `value` is the one that was given;
    `unhooked` are notices that the user's hooks haven't heard; `kept`: the files were snapshotted before this
    iteration's first call that could change them; `ended`: the host knows the result; `lent`: what the
    turns that it began, or that began it, have spent (US dollars); `run` runs those, each in one of `places`;
    `stopped`: the person did.
    """

    def __init__(
        self, agent: AgentRecord, session: Session, io: TurnIO, options: TurnOptions, run: RunTurn | None = None
    ) -> None:
        self.agent = agent
        self.session = session
        self.io = with_changed(io)
        self.state = state_of(agent, session)
        self._given = options
        self._hold(self.state.options if self.account.messages else USUAL)
        self.moved = session.moved
        self.traced = traced()
        self.value: object = None
        self.tries = 0
        self.retries = 0
        self.last_usage: Usage | None = None
        self.lent = options.spent_usd + spent_by_subagents(agent, self.account.messages)
        self.steers: list[UserMessage] = []
        self.follow_ups: list[UserMessage] = []
        self.interrupts: list[UserMessage] = []
        self.answers: list[Answer] = []
        self.unhooked: list[Notice] = []
        self.kept = False
        self.stopped = False
        self.ended = False
        self.run = run
        self.places = asyncio.Semaphore(MOST_SUBAGENTS)
        self.asking = asyncio.Lock()
        self._arrival: asyncio.Task[None] | None = None
        self._waiters = 0
        self.lend(self.spent_usd)  # before it was left unfinished

    async def begin(self) -> None:
        """Hold its own options from here on, not those of what was left open; keep what a crash mustn't loosen."""
        given = self._given
        kept = KeptOptions(given.read_only, given.channel, given.chat, given.depth, given.history)
        if kept != self.state.options:
            await self.append(StateEntry(name=OPTIONS, value=msgspec.to_builtins(kept)))
        self._hold(kept)

    def _hold(self, kept: KeptOptions) -> None:
        """Let what differs from the usual in these options hold over what was given."""
        self.options = self._given if kept == USUAL else replace(self._given, **msgspec.to_builtins(kept))
        self._own_context = None if self.options.history else self._without_history()

    def _without_history(self) -> ContextPolicy:
        """A context that has seen the turn that is open, if any, and nothing before it."""
        context = self.agent.new_context(self.agent.actions, self.agent.tools)
        entries = self.session.entries
        ended = (at for at in range(len(entries) - 1, -1, -1) if isinstance(entries[at], EndEntry))
        for entry in entries[next(ended, -1) + 1 :]:
            context.observe(entry)
        return context

    @property
    def context(self) -> ContextPolicy:
        """What the model sees."""
        return self.state.context if self._own_context is None else self._own_context

    @property
    def account(self) -> Account:
        """What the turn has said and used so far."""
        return self.state.account

    def emit(self, event: RunEvent) -> None:
        """Tell the host."""
        self.io.emit(event)

    def finish(self, result: RunResult) -> None:
        """Tell the host how it ended: the last event."""
        self.ended = True
        self.emit(Done(result))

    def notice(self, text: str, *, warning: bool = False) -> None:
        """Tell the user something."""
        notice = Notice(self.agent.redact(text), "warning" if warning else "info")
        self.emit(notice)
        if self.agent.hooks is not None:
            self.unhooked.append(notice)

    async def run_pending_checks(self) -> None:
        """Before anything else happens in the workspace, check what commands left whose Denizen was killed."""
        agent = self.agent
        if has_pending_checks(agent.home) and (
            words := await asyncio.to_thread(run_pending_checks, agent.home, agent.environ)
        ):
            self.notice(words, warning=True)

    async def hook(self, event: HookEvent, tool: str = "", **data: Any) -> str:
        """Call the user's hooks for an event, and for the notices until then; why they refuse (empty: they don't)."""
        hooks = self.agent.hooks
        if hooks is None:
            return ""
        about = {
            "session": self.session.key,
            "workspace": str(self.agent.workspace),
            "channel": self.options.channel,
            "chat": self.options.chat,
        }
        while self.unhooked:
            notice = self.unhooked.pop(0)
            await self._call(hooks, "notice", {**about, "level": notice.level, "text": notice.text})
        return await self._call(hooks, event, {**about, **({"tool": tool} if tool else {}), **data}, tool)

    async def _call(self, hooks: Hooks, event: HookEvent, data: dict[str, Any], tool: str = "") -> str:
        answer = await hooks.call(event, data, tool)
        for problem in answer.problems:  # to the host alone: a hook that fails on notices would never end
            self.emit(Notice(self.agent.redact(problem), "warning"))
        return self.agent.redact(answer.refusal)

    async def append(self, entry: AnyEntry) -> None:
        """Write it, before anything depends on it."""
        await self.session.append(entry)
        self.read_on()

    def read_on(self) -> None:
        """Take in what was written to the session."""
        already = self.state.entries_read
        self.state.read_on(self.session.entries)
        if self._own_context is not None:
            for entry in self.session.entries[already:]:
                self._own_context.observe(entry)

    async def say(self, message: UserMessage) -> None:
        """Take in what the user said."""
        parts = [Text(self.agent.redact(part.text)) if isinstance(part, Text) else part for part in message.content]
        at = message.at or self.agent.now()
        await self.append(UserEntry(message=UserMessage(parts, message.id, at)))

    async def apply(self, directive: Directive) -> None:
        """Keep what the model said about itself."""
        await self.append(StateEntry(name=directive.name, value=directive.value))

    @property
    def spent_usd(self) -> float:
        """What it has spent (US dollars), and the turns that it began."""
        return (self.account.usage.cost_usd or 0.0) + self.lent

    @property
    def payer(self) -> str:
        """The session whose budget it counts against where no turn is around it."""
        return self.options.payer or self.session.key

    def _paying(self) -> Iterator["Turn"]:
        """This turn and those around it; the session of the last one pays."""
        turn: Turn | None = self
        while turn:
            yield turn
            turn = turn.options.parent

    async def check_budgets(self) -> None:
        """End the turn where it, or one around it, can't pay for another call; local models cost nothing."""
        if self.agent.model.local:
            return
        turns = [*self._paying()]
        for turn in turns:
            if why := await turn.agent.budget.check(turns[-1].payer, turn.spent_usd):
                raise TurnOver("budget", why)

    async def charge(self, answer: AssistantMessage) -> None:
        """Count what a call cost: once, however many turns are around this one."""
        cost, model = answer.usage.cost_usd, self.agent.model
        if cost is None and model.local:
            return
        *_, payer = self._paying()
        self.lend(cost or 0.0)
        if problem := await payer.agent.budget.charge(payer.payer, cost, answer.model or model.name):
            self.notice(problem, warning=True)

    def lend(self, usd: float) -> None:
        """Count what this turn has spent in those around it."""
        _, *around = self._paying()
        for turn in around:
            turn.lent += usd

    def view(self) -> View:
        """What the context policy may look at."""
        agent, state = self.agent, self.state
        usage = state.last_usage if self.options.history or self.last_usage else None
        prompt = state.prompt_tokens + agent.tools.tokens
        return View(self.session, agent.model, agent.limits.answer_tokens, prompt, usage, agent.clock)

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

    async def hear_messages(self) -> bool:
        """Take in all of that, and what is queued; whether the model is to see any of it next."""
        await self.hear()
        if self.options.queued:
            self.steers += await self.options.queued()
        return bool(self.interrupts or self.steers)

    def listen(self) -> bool:
        """Note what the person did meanwhile; whether they have stopped the turn."""
        for control in self.io.controls():
            match control:
                case Steer(text, said):
                    self.steers.append(UserMessage([Text(text)], said))
                case FollowUp(text, said):
                    self.follow_ups.append(UserMessage([Text(text)], said))
                case Interrupt(_, said) if said and said in self.state.user_ids:
                    pass  # it was taken in before the turn was parked, or taken over: later calls aren't dropped for it
                case Interrupt(text, said):
                    self.interrupts.append(UserMessage([Text(text)], said))
                case Stop():
                    self.stopped = True
                case Answer():
                    self.answers.append(control)
        return self.stopped

    async def run_until_stopped(self, work: Coroutine[Any, Any, _T], *, interruptible: bool = False) -> _T:
        """The work's result; if the person stops the turn, the work is cancelled and the turn ends.

        Raises Interrupted if it is `interruptible` and the person interrupts.
        """
        working = asyncio.create_task(work)
        try:
            while not working.done():
                if self.stopped:
                    raise TurnOver("cancelled")
                if interruptible and self.interrupts:
                    raise Interrupted
                if await self._changed_or_done(working):
                    self.listen()
        finally:
            if working.cancel():
                await asyncio.wait({working})
        return working.result()

    async def changed(self) -> None:
        """Return once the person did something that `listen` hasn't noted, or has stopped the turn."""
        if not self.stopped:
            await self._changed_or_done(None)

    async def _changed_or_done(self, working: asyncio.Task[Any] | None) -> bool:
        """Wait for the work or the host; whether the host has changed. All waiters share one task of the host's."""
        if self._arrival is None or self._arrival.done():
            self._arrival = asyncio.create_task(self.io.changed())
        arrival = self._arrival
        self._waiters += 1
        try:
            await asyncio.wait({arrival, working or arrival}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiters -= 1
            if not self._waiters:
                arrival.cancel()
                self._arrival = None
        if arrival.done():
            arrival.result()
        return arrival.done()

    async def deliver(self, waiting: list[UserMessage]) -> bool:
        """Give the model what the person said meanwhile; whether there was anything new."""
        said = False
        while waiting:
            if not waiting[0].id or waiting[0].id not in self.state.user_ids:
                await self.say(waiting[0])
                said = True
            del waiting[0]
        return said
