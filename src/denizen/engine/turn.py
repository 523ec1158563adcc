"""One turn while it runs: what began it, and what belongs to it alone."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec

from denizen.engine.controls import Controls
from denizen.engine.output import OutputType
from denizen.engine.record import AgentRecord
from denizen.engine.session_state import DEFAULT_OPTIONS, OPTIONS, KeptOptions, TurnAccount, state_of
from denizen.engine.tracing import traced
from denizen.engine.turn_over import TurnOver
from denizen.entries import AnswerEntry, AnyEntry, EndEntry, StateEntry, UserEntry
from denizen.events import Done, Notice, RunEvent, RunResult
from denizen.messages import Text, Usage, UserMessage
from denizen.ports import Answer, ContextPolicy, Directive, Session, TurnIO, View, with_changed

MAX_PARALLEL_SUBAGENTS = 5

AcceptReply = Callable[[str], Awaitable[str]]
"""Checks a reply that would end the turn: returns what is wrong, for the model, or empty."""


class Resume(msgspec.Struct, frozen=True):
    """Go on with a turn that a crash or a question left unfinished."""


class Cycle(msgspec.Struct, frozen=True):
    """A turn that no message begins: a world's tick, a heartbeat. `text` prompts the model; its entry has the `id`."""

    text: str = ""
    id: str = ""


Start = UserMessage | Resume | Cycle
"""What begins a turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOptions:
    """What belongs to one turn and to no other.

    `stream` asks for deltas; `output` is what the final answer must be; `accept` checks each reply that would end
    the turn, and the model gets its complaint. `queued` hands over what the person has entered meanwhile: it is
    called just before a model call that will see it, so that until then the host can still let them change it.
    `read_only` refuses everything but reads. `channel` and `chat` say where the message came from. `parent` is the turn
    that began this one, which pays for it: what this one spends counts there, and in that one's session. Where it may
    be over, `payer` names its session, and `spent_usd` is what it had spent. `depth` is how many such turns are around
    this one. Without `history` the model sees nothing of the session's earlier turns. A system prompt that was last
    used before `prompt_since`, when the host started, is made anew. `KeptOptions` of them are kept in the session, so
    that resuming the turn can't loosen it. A cancelled turn that `resumes` stays open.
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


RunTurn = Callable[[AgentRecord, Session, Start, TurnIO, TurnOptions], Coroutine[Any, Any, RunResult]]
"""Runs a turn to its end."""


class Turn:
    """What the parts of the loop share.

    `moved` is as the session was when it began; `tries` counts typed answers, `value` is the one that was given;
    `unhooked` are notices that the user's hooks haven't heard; `snapshotted`: the files were, before this iteration's
    first call that could change them; `ended`: the host knows the result; `spent_elsewhere_usd`: by the turns that it
    began, or that began it; `run` runs those, each in one of `places`, and one at a time is `asking` the person.
    """

    def __init__(
        self, agent: AgentRecord, session: Session, io: TurnIO, options: TurnOptions, run: RunTurn | None = None
    ) -> None:
        self.agent = agent
        self.session = session
        self.io = with_changed(io)
        self.state = state_of(agent, session)
        self.controls = Controls(self.io, self.state)
        self._given = options
        self._hold(self.state.options if self.account.messages else DEFAULT_OPTIONS)
        self.moved = session.moved
        self.traced = traced()
        self.value: object = None
        self.tries = 0
        self.retries = 0
        self.last_usage: Usage | None = None
        self.spent_elsewhere_usd = options.spent_usd
        self.unhooked: list[Notice] = []
        self.snapshotted = False
        self.ended = False
        self.run = run
        self.places = asyncio.Semaphore(MAX_PARALLEL_SUBAGENTS)
        self.asking = asyncio.Lock()

    async def begin(self) -> None:
        """Use the turn's own options from here on, and record those that a crash mustn't loosen."""
        given = self._given
        kept = KeptOptions(given.read_only, given.channel, given.chat, given.depth, given.history)
        if kept != self.state.options:
            await self.append(StateEntry(name=OPTIONS, value=msgspec.to_builtins(kept)))
        self._hold(kept)

    def _hold(self, kept: KeptOptions) -> None:
        """Apply recorded options that differ from the defaults over the given ones."""
        self.options = self._given if kept == DEFAULT_OPTIONS else replace(self._given, **msgspec.to_builtins(kept))
        self._own_context = None if self.options.history else self._without_history()

    def _without_history(self) -> ContextPolicy:
        """A context that has seen only the open turn, if any."""
        context = self.agent.new_context(self.agent.actions, self.agent.tools)
        entries = self.session.entries
        ended = (at for at in range(len(entries) - 1, -1, -1) if isinstance(entries[at], EndEntry))
        for entry in entries[next(ended, -1) + 1 :]:
            context.observe(entry)
        return context

    @property
    def context(self) -> ContextPolicy:
        return self.state.context if self._own_context is None else self._own_context

    @property
    def account(self) -> TurnAccount:
        """The turn's messages and usage so far."""
        return self.state.account

    def emit(self, event: RunEvent) -> None:
        self.io.emit(event)

    def finish(self, result: RunResult) -> None:
        """Give the host the result: the last event."""
        self.ended = True
        self.emit(Done(result))

    def notice(self, text: str, *, warning: bool = False) -> None:
        """Show the user something, and keep it for the hooks."""
        notice = Notice(self.agent.redact(text), "warning" if warning else "info")
        self.emit(notice)
        if self.agent.hooks is not None:
            self.unhooked.append(notice)

    async def append(self, entry: AnyEntry) -> None:
        """Write an entry, before anything depends on it."""
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
        """Record a directive of the model."""
        await self.append(StateEntry(name=directive.name, value=directive.value))

    def view(self) -> View:
        """What the context policy may look at."""
        agent, state = self.agent, self.state
        usage = state.last_usage if self.options.history or self.last_usage else None
        prompt = state.prompt_tokens + agent.tools.tokens
        return View(self.session, agent.model, agent.limits.answer_tokens, prompt, usage, agent.clock)

    async def keep_answer(self, answer: Answer) -> AnswerEntry:
        """Write what a person answered."""
        entry = AnswerEntry(
            call_id=answer.call_id,
            allow=answer.allow,
            text=self.agent.redact(answer.text),
            scope=answer.scope,
            unasked=answer.unasked,
        )
        await self.append(entry)
        return entry

    async def hear(self) -> None:
        """Take in controls; a stop ends the turn here."""
        stopped = self.controls.listen()
        while self.controls.answers:
            await self.keep_answer(self.controls.answers.pop(0))
        if stopped:
            raise TurnOver("cancelled")

    async def hear_messages(self) -> bool:
        """Take in controls and queued messages; True if the model must see any of it next."""
        await self.hear()
        if self.options.queued:
            self.controls.steers += await self.options.queued()
        return bool(self.controls.interrupts or self.controls.steers)

    async def deliver(self, waiting: list[UserMessage]) -> bool:
        """Append waiting messages for the model; True if any was new."""
        said = False
        while waiting:
            if not waiting[0].id or waiting[0].id not in self.state.user_ids:
                await self.say(waiting[0])
                said = True
            del waiting[0]
        return said
