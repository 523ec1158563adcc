"""One message, one turn: what its session and the model make of a message of the inbox."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec

from denizen.config.rules import all_arguments
from denizen.engine import TurnOptions, run_turn
from denizen.engine.resume import question_of
from denizen.engine.session_state import IN_SIGHT, InSight, state_of
from denizen.engine.turn import Start
from denizen.entries import CompactionEntry, ParkedEntry, StateEntry, SystemEntry
from denizen.errors import DenizenError, SessionUnavailable, ToolRefused
from denizen.events import Compacted, Notice, Retry, RunEvent
from denizen.messages import UserMessage
from denizen.ports import (
    Answer,
    Ask,
    Control,
    InboundMessage,
    OutboundMessage,
    Parked,
    ParkedTurn,
    QueuedTurn,
    Session,
    Stop,
)
from denizen.worlds.chat.delivery.message import has_answered
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.events.listeners import Listeners
from denizen.worlds.chat.events.metrics import Metrics
from denizen.worlds.chat.events.relay import TurnEvent
from denizen.worlds.chat.ledger import ledger, outbound, questions
from denizen.worlds.chat.ledger.database import LedgerError
from denizen.worlds.chat.ledger.reply_options import ReplyOptions, parts_of, reply_text
from denizen.worlds.chat.settings import GatewaySettings
from denizen.worlds.chat.timers.heartbeat import BEAT, reply_of, start_of
from denizen.worlds.chat.turns import caller, commands, spawn
from denizen.worlds.chat.turns.queue import HELD_RETRY_S
from denizen.worlds.chat.turns.summaries import Summaries
from denizen.worlds.server_prompts import prompt_said
from denizen.worlds.world import AgentHandle

NOTICE_DELAY_S = 5.0
"""Seconds before the model is asked again from which on the chat is told."""

_log = logging.getLogger(__name__)


class TurnRunner:
    """Runs the turns of messages, and summarises their sessions after them; `listeners` hear what happens in them."""

    def __init__(
        self,
        agent: AgentHandle,
        outbox: Outbox,
        listeners: Listeners,
        metrics: Metrics,
        explain: Callable[[Exception], str],
    ) -> None:
        self.summaries = Summaries(self._keep_summary)
        self._agent = agent
        self._settings = agent.config.section("gateway", GatewaySettings)
        self._outbox = outbox
        self._listeners = listeners
        self._metrics = metrics
        self._explain = explain
        self._open: dict[str, Session] = {}
        self._started = agent.record.clock.now()
        self._telling: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """End the summaries that run, and wait for what is being told."""
        await self.summaries.close()
        await asyncio.gather(*self._telling)

    async def run(self, turn: QueuedTurn) -> OutboundMessage | InboundMessage | Parked | None:
        """Run the turn of a message: its reply, a subagent's report, or the question that it waits with."""
        message, run = turn.message, ReplyOptions.of(turn.message)
        async with self._opened(message.session_key) as session:
            if message.channel == ledger.SYSTEM:
                await _keep(session, message)
                return None
            if spawned := spawn.spawned_by(message):
                return await self._work(turn, session, spawned)
            if commands.QUEUED in message.metadata:
                words = self._agent.record.redact(await commands.carry_out(self._agent, session, message))
                return msgspec.structs.replace(outbound.reply_to(message, words), send=run.send_response)
            tools, record = caller.offered(message), commands.record_for(self._agent, session)
            stream = self._listeners.hear(message)
            host = _TurnHost(turn, self._emit, stream=stream)
            if tools and turn.attempt > 1:
                host.waiting = await caller.keep_results(session, turn.controls(), tools)
            is_beat = BEAT in message.metadata
            try:
                start = await self._start(message, session)
            except ToolRefused as why:
                return msgspec.structs.replace(outbound.reply_to(message, self._explain(why)), send=run.send_response)
            try:
                result = await run_turn(
                    caller.with_tools(record, tools),
                    session,
                    start,
                    host,
                    TurnOptions(
                        stream=stream,
                        read_only=self._agent.read_only,
                        channel=message.channel,
                        chat=message.chat,
                        history=self._settings.heartbeat.history if is_beat else run.history,
                        prompt_since=self._started,
                        resumes=True,
                    ),
                )
            except DenizenError as error:
                if not is_beat:
                    raise
                _log.error("The heartbeat failed, and isn't made up: %s", self._explain(error))
                return None
            message = self._with_sight(message, session)
            question = question_of(session.entries) if result.stop_reason == "parked" else None
            if run.enable_summary and not question and not is_beat:
                self.summaries.after_turn(record, session)
        if question:
            return ParkedTurn(self._question(message, question), question.until)
        if is_beat and not has_answered(result):
            return reply_of(message, result)
        heard = [each.id for each in result.messages if isinstance(each, UserMessage) and each.id]
        reply = outbound.reply_to(message, reply_text(result, run.default_response), heard)
        return msgspec.structs.replace(reply, send=run.send_response and not has_answered(result))

    async def _start(self, message: InboundMessage, session: Session) -> Start:
        """What a message begins its turn with. Raises ToolRefused where it says a server's prompt that there isn't."""
        if BEAT in message.metadata:
            return start_of(message, session.entries)
        prompt = await prompt_said(self._agent, session, message.content, message.id)
        return UserMessage([*parts_of(message), *prompt], message.id)

    async def _work(self, turn: QueuedTurn, session: Session, spawned: spawn.Spawned) -> InboundMessage | Parked:
        """Run a subagent's turn: its report to the session that it works for."""
        message, host = turn.message, _TurnHost(turn, self._emit, stream=False)
        record, read_only = self._agent.record, self._agent.read_only
        result = await spawn.work(record, session, message, spawned, host, stop=host.stop, read_only=read_only)
        if result.details.get("stop_reason") == "parked" and (question := question_of(session.entries)):
            return ParkedTurn(self._question(self._with_sight(message, session), question), question.until)
        return spawn.report(message, spawned, result)

    def _with_sight(self, message: InboundMessage, session: Session) -> InboundMessage:
        """The message, with what its turn has in sight where the turn's words are kept in another session, too."""
        if ledger.ORIGIN not in message.metadata and not self._settings.owner:
            return message
        seen = msgspec.to_builtins(InSight.of(state_of(self._agent.record, session).in_sight))
        return msgspec.structs.replace(message, metadata={**message.metadata, ledger.IN_SIGHT: seen})

    @asynccontextmanager
    async def _opened(self, key: str) -> AsyncGenerator[Session]:
        session = await self._agent.open(key)
        self._open[key] = session
        try:
            yield session
            await session.sync()  # the ledger is about to say that it is over
        finally:
            del self._open[key]
            await self._agent.leave(session)

    async def _keep_summary(self, key: str, entry: CompactionEntry | StateEntry) -> None:
        """Put a summary, or that there is none, in its session: in the one that a turn has open, if any."""
        while True:
            try:
                if session := self._open.get(key):
                    await session.append(entry)
                else:
                    async with self._opened(key) as session:
                        await session.append(entry)
                break
            except SessionUnavailable:  # held by a turn that opens or closes it just now, or by another worker
                await self._agent.record.clock.sleep(HELD_RETRY_S)
        if isinstance(entry, CompactionEntry):
            self._listeners.tell(TurnEvent(key, "", 0, 0, 0, Compacted(entry.old_count, entry.new_count)))

    def _question(self, message: InboundMessage, parked: ParkedEntry) -> OutboundMessage:
        """What the owner is asked; of a call that the caller runs, nothing is sent."""
        if parked.question == caller.CALLER_RUNS:
            kept = outbound.reply_to(message, "")
            return msgspec.structs.replace(kept, id=f"{message.id}:call:{parked.call_id}", send=False)
        owner, _, chat = self._settings.owner.partition(":")
        values = [msgspec.json.encode(value).decode() for value in parked.args.values()]
        is_whole = "…" not in parked.question and all(value in parked.question for value in values)
        call = "" if is_whole else f"\n{parked.name} {all_arguments(parked.args)}"
        origin = ledger.origin_of(message.session_key, message.channel, message.chat)
        is_persons = ledger.ORIGIN not in message.metadata and "~" not in parked.call_id  # no subagent's, cron's …
        return OutboundMessage(
            owner or message.channel,
            chat or message.chat,
            self._agent.record.redact(f"{parked.question}{call}"),
            message.session_key,
            message.id,
            metadata={
                questions.CALL: parked.call_id,
                questions.ASKED_AT: self._agent.record.clock.now().timestamp(),
                questions.ANSWERED_BY: f"{message.channel}:{message.sender}" if is_persons else "",
                **{name: seen for name, seen in message.metadata.items() if name == ledger.IN_SIGHT},
                **({ledger.ORIGIN: origin} if owner or ledger.ORIGIN in message.metadata else {}),
            },
            id=questions.question_id(message, parked.call_id),
        )

    def _emit(self, message: InboundMessage, told: TurnEvent) -> None:
        event = told.event
        self._metrics.add(message.session_key, event)
        self._listeners.tell(told)
        if isinstance(event, Notice):
            level = logging.getLevelNamesMapping()[event.level.upper()]
            _log.log(level, "%s: %s", message.session_key, self._agent.record.redact(event.text))
        waits_for_reply = ledger.ORIGIN not in message.metadata and ReplyOptions.of(message).send_response
        if isinstance(event, Retry) and event.delay >= NOTICE_DELAY_S and waits_for_reply:
            telling = asyncio.create_task(self._tell_chat(message, event))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

    async def _tell_chat(self, message: InboundMessage, retry: Retry) -> None:
        """Send word that the reply takes longer, once for a message."""
        text = f"I can't answer yet, and keep trying. {retry.words}"
        told = OutboundMessage(message.channel, message.chat, text, message.session_key, id=f"{message.id}:retry")
        try:
            await self._outbox.put(told)
        except LedgerError as error:
            _log.error("%s", error)


class _TurnHost:
    """What a turn has of the gateway: nobody sits there, so a question parks it."""

    def __init__(self, turn: QueuedTurn, emit: Callable[[InboundMessage, TurnEvent], None], *, stream: bool) -> None:
        self._turn = turn
        self._emit = emit
        self._events = 0 if stream else 1  # to whoever begins to listen meanwhile, the first ones are missing
        self.waiting: Sequence[Control] = ()

    def emit(self, event: RunEvent) -> None:
        message, self._events = self._turn.message, self._events + 1
        number = self._events
        self._emit(message, TurnEvent(message.session_key, message.id, self._turn.attempt, number, number, event))

    def controls(self) -> Sequence[Control]:
        waiting, self.waiting = self.waiting, ()
        return [*waiting, *self._turn.controls()]

    async def changed(self) -> None:
        if not self.waiting:
            await self._turn.changed()

    def stop(self) -> None:
        self.waiting = [*self.waiting, Stop()]

    async def ask(self, request: Ask) -> Answer | Parked:
        return Parked()


async def _keep(session: Session, message: InboundMessage) -> None:
    """Keep a message of the system's in its session, once."""
    kept = (entry for entry in session.entries if isinstance(entry, SystemEntry))
    if not any(entry.message_id == message.id for entry in kept):
        if seen := message.metadata.get(ledger.IN_SIGHT):
            await session.append(StateEntry(name=IN_SIGHT, value=seen))
        await session.append(SystemEntry(text=message.content, message_id=message.id))
    _log.info("Kept for %s, from %s: %s", message.session_key, message.sender, message.content.partition("\n")[0][:200])
