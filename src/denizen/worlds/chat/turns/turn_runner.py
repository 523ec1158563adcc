"""One message, one turn: runs the turns of inbox messages."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import msgspec

from denizen.config.rules import all_arguments
from denizen.engine import TurnOptions, run_turn
from denizen.engine.resume import question_of
from denizen.engine.session_state import IN_SIGHT, InSight, state_of
from denizen.engine.turn import Start
from denizen.entries import CompactionEntry, ParkedEntry, StateEntry, SystemEntry
from denizen.errors import DenizenError, SessionHeld, SessionUnavailable, SessionUnknown, ToolRefused
from denizen.events import Compacted, Notice, Retry, RunEvent, RunResult
from denizen.messages import UserMessage
from denizen.ports.host import Answer, Ask, Control, Parked, Stop
from denizen.ports.queue import InboundMessage, OutboundMessage, ParkedTurn, QueuedTurn
from denizen.ports.session import Session
from denizen.runtime.cancellation import first_completed
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
from denizen.worlds.chat.timers.wake_script import WakeScript, WakeScriptModel, outcome_of
from denizen.worlds.chat.turns import caller, characters, commands, spawn
from denizen.worlds.chat.turns.queue import HELD_RETRY_S
from denizen.worlds.chat.turns.spending_caps import SpendingCaps
from denizen.worlds.chat.turns.summaries import Summaries
from denizen.worlds.chat.turns.transcription import Transcription
from denizen.worlds.server_prompts import prompt_said
from denizen.worlds.world import AgentHandle

NOTICE_DELAY_S = 5.0
"""The chat gets a notice if the model is asked again only after so many seconds."""

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class TurnRunner:
    """Runs the turns of messages, and summarises their sessions afterwards; `listeners` hear what happens."""

    def __init__(
        self, agent: AgentHandle, outbox: Outbox, listeners: Listeners, metrics: Metrics, caps: SpendingCaps
    ) -> None:
        self.summaries = Summaries(self._keep_summary)
        self._agent = agent
        self._settings = agent.config.section("gateway", GatewaySettings)
        self._outbox = outbox
        self._listeners = listeners
        self._metrics = metrics
        self._caps = caps
        self._transcription = Transcription(agent.config, outbox)
        self._open: dict[str, Session] = {}
        self._started = agent.record.clock.now()
        self._notices: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Cancel the summaries, and wait for the notices that are being sent."""
        await self.summaries.close()
        await asyncio.gather(*self._notices)

    def explain(self, error: Exception) -> str:
        """The error in words, without secrets."""
        text = str(error) if isinstance(error, DenizenError) else f"{type(error).__name__}: {error}"
        return self._agent.record.redact(text)

    async def run(self, turn: QueuedTurn) -> OutboundMessage | InboundMessage | Parked | None:
        """Run the turn of a message; its reply, a subagent's report, a job to wake the model for, or a question."""
        message = turn.message
        if characters.is_instruction(message):
            return await characters.reply_of_character(self._agent.record, message)
        if WakeScript.of(message) and turn.attempt == 1:
            with suppress(SessionUnknown):  # of the last run: there may be a run each minute
                await self._agent.record.store.remove(message.session_key)
        try:
            async with self._opened(message.session_key) as session:
                return await _while_held(session, self._run(turn, session))
        finally:
            await self._listeners.flush()  # listeners get all events of a turn before its end

    async def _run(self, turn: QueuedTurn, session: Session) -> OutboundMessage | InboundMessage | Parked | None:
        message = turn.message
        if message.channel == ledger.SYSTEM:
            await _keep(session, message)
            return None
        if spawned := spawn.spawned_by(message):
            return await self._run_subagent(turn, session, spawned)
        if script := WakeScript.of(message):
            return await self._run_script(turn, session, script)
        if commands.QUEUED in message.metadata:
            words = await commands.carry_out(self._agent, session, message)
            return outbound.reply_to(message, self._agent.record.redact(words))
        if turn.attempt == 1 and (
            refusal := await self._caps.refusal(message)
        ):  # one that has begun ends by its budget
            return refusal
        try:
            result = await self._run_agent(turn, session)
        except ToolRefused as error:
            return outbound.reply_to(message, self.explain(error))
        except DenizenError as error:
            if BEAT not in message.metadata:
                raise
            _log.error("The heartbeat failed; it isn't repeated: %s", self.explain(error))
            return None
        message = self._with_sight(message, session)
        if result.stop_reason == "parked" and (question := question_of(session.entries)):
            return self._parked(message, question)
        if ReplyOptions.of(message).enable_summary:
            self.summaries.after_turn(commands.record_for(self._agent, session), session)
        return _reply(message, result)

    async def _run_agent(self, turn: QueuedTurn, session: Session) -> RunResult:
        """Have the agent answer the message. Raises ToolRefused for a server's prompt that isn't available."""
        tools = caller.offered(turn.message)
        record = caller.with_tools(commands.record_for(self._agent, session), tools)
        record = self._caps.with_caps(record, turn.message)
        message = await self._transcription.transcribed(turn.message, record.budget)
        stream = self._listeners.has_listener(message)
        host = _TurnHost(turn, self._emit, stream=stream)
        if tools and turn.attempt > 1:
            host.waiting = await caller.keep_results(session, turn.controls(), tools)
        options = self._options(message, stream=stream, history=ReplyOptions.of(message).history)
        if BEAT in message.metadata:
            start: Start = start_of(message, session.entries)
        else:
            prompt = await prompt_said(self._agent, session, message.content, message.id)
            start = UserMessage([*parts_of(message), *prompt], message.id)
        return await run_turn(record, session, start, host, options)

    def _options(self, message: InboundMessage, *, stream: bool, history: bool) -> TurnOptions:
        return TurnOptions(
            stream=stream,
            read_only=self._agent.read_only,
            channel=message.channel,
            chat=message.chat,
            history=history,
            prompt_since=self._started,
            resumes=True,
        )

    async def _run_subagent(
        self, turn: QueuedTurn, session: Session, spawned: spawn.Spawned
    ) -> InboundMessage | Parked:
        message, host = turn.message, _TurnHost(turn, self._emit, stream=False)
        record, read_only = self._agent.record, self._agent.read_only
        payer = await self._outbox.database.find(partial(ledger.latest, session_key=spawned.parent))
        record = self._caps.with_caps(record, payer) if payer else record
        result = await spawn.work(record, session, message, spawned, host, stop=host.stop, read_only=read_only)
        if result.details.get("stop_reason") == "parked" and (question := question_of(session.entries)):
            return self._parked(self._with_sight(message, session), question)
        return spawn.report(message, spawned, result)

    async def _run_script(
        self, turn: QueuedTurn, session: Session, script: WakeScript
    ) -> InboundMessage | OutboundMessage | Parked | None:
        """Run a job's wake script, without the model."""
        message = turn.message
        record = replace(self._agent.record, model=WakeScriptModel(script.command))
        options = self._options(message, stream=False, history=False)
        said, host = UserMessage(parts_of(message), message.id), _TurnHost(turn, self._emit, stream=False)
        result = await run_turn(record, session, said, host, options)
        if result.stop_reason == "parked" and (question := question_of(session.entries)):
            return self._parked(message, question)
        return outcome_of(script, message, session.entries, result.error)

    def _with_sight(self, message: InboundMessage, session: Session) -> InboundMessage:
        """The message, marked with what its turn has in sight if another session keeps the turn's words, too."""
        if ledger.ORIGIN not in message.metadata and not self._settings.owners:
            return message
        seen = msgspec.to_builtins(InSight.of(state_of(self._agent.record, session).in_sight))
        return msgspec.structs.replace(message, metadata={**message.metadata, ledger.IN_SIGHT: seen})

    @asynccontextmanager
    async def _opened(self, key: str) -> AsyncGenerator[Session]:
        session = await self._agent.open(key)
        self._open[key] = session
        try:
            yield session
            await session.sync()  # before the ledger records that the turn is over
        finally:
            del self._open[key]
            await self._agent.leave(session)

    async def _keep_summary(self, key: str, entry: CompactionEntry | StateEntry) -> None:
        """Write a summary, or its failure, into its session: through the turn that has it open, if any."""
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
            self._listeners.publish(TurnEvent(key, "", 0, 0, 0, Compacted(entry.old_count, entry.new_count)))

    def _parked(self, message: InboundMessage, parked: ParkedEntry) -> ParkedTurn:
        """A turn that waits, and its question to the owner; a call that the caller runs sends nothing."""
        if parked.question == caller.CALLER_RUNS:
            call_id = f"{message.id}:call:{parked.call_id}"
            kept = msgspec.structs.replace(outbound.reply_to(message, ""), id=call_id, send=False)
            return ParkedTurn(kept, parked.until)
        owners, own = self._settings.owners, f"{message.channel}:{message.chat}"
        owner, _, chat = (own if own in owners else next(iter(owners), "")).partition(":")
        is_persons = ledger.ORIGIN not in message.metadata and "~" not in parked.call_id  # no subagent's, cron's …
        metadata = {
            questions.CALL: parked.call_id,
            questions.ASKED_AT: self._agent.record.clock.now().timestamp(),
            questions.ANSWERED_BY: f"{message.channel}:{message.sender}" if is_persons else "",
        }
        if ledger.IN_SIGHT in message.metadata:
            metadata[ledger.IN_SIGHT] = message.metadata[ledger.IN_SIGHT]
        if owner or ledger.ORIGIN in message.metadata:
            metadata[ledger.ORIGIN] = ledger.origin_of(message.session_key, message.channel, message.chat)
        question = OutboundMessage(
            owner or message.channel,
            chat or message.chat,
            self._agent.record.redact(_question_text(parked)),
            message.session_key,
            message.id,
            metadata=metadata,
            id=questions.question_id(message, parked.call_id),
        )
        return ParkedTurn(question, parked.until)

    def _emit(self, message: InboundMessage, heard: TurnEvent) -> None:
        event = heard.event
        self._metrics.add(message.session_key, event)
        self._listeners.publish(heard)
        if isinstance(event, Notice):
            level = logging.getLevelNamesMapping()[event.level.upper()]
            _log.log(level, "%s: %s", message.session_key, self._agent.record.redact(event.text))
        awaits_reply = ledger.ORIGIN not in message.metadata and ReplyOptions.of(message).send_response
        if isinstance(event, Retry) and event.delay >= NOTICE_DELAY_S and awaits_reply:
            notice = asyncio.create_task(self._send_notice(message, event))
            self._notices.add(notice)
            notice.add_done_callback(self._notices.discard)

    async def _send_notice(self, message: InboundMessage, retry: Retry) -> None:
        """Tell the chat that the reply takes longer, once for a message."""
        text = f"I can't answer yet; I keep trying. {retry.words}"
        notice = OutboundMessage(message.channel, message.chat, text, message.session_key, id=f"{message.id}:retry")
        try:
            await self._outbox.put(notice)
        except LedgerError as error:
            _log.error("%s", error)


async def _while_held(session: Session, turn: Coroutine[Any, Any, _T]) -> _T:
    """The result of a turn, which is cancelled, with its commands, if the session is lost to another worker."""
    async with first_completed(turn, session.lost()) as (running, _):
        if running.done():
            return running.result()
        raise SessionHeld(f"Session {session.key} may be another worker's now: its turn was stopped here.")


class _TurnHost:
    """The host of a turn: nobody is present, so a question parks it."""

    def __init__(self, turn: QueuedTurn, emit: Callable[[InboundMessage, TurnEvent], None], *, stream: bool) -> None:
        self._turn = turn
        self._emit = emit
        self._events = 0 if stream else 1  # listeners that begin later find the first ones missing
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
    """Write a system message into its session, once."""
    kept = (entry for entry in session.entries if isinstance(entry, SystemEntry))
    if not any(entry.message_id == message.id for entry in kept):
        if seen := message.metadata.get(ledger.IN_SIGHT):
            await session.append(StateEntry(name=IN_SIGHT, value=seen))
        await session.append(SystemEntry(text=message.content, message_id=message.id))
    _log.info("Kept for %s, from %s: %s", message.session_key, message.sender, message.content.partition("\n")[0][:200])


def _reply(message: InboundMessage, result: RunResult) -> OutboundMessage | None:
    """The reply that a turn sends. A heartbeat may have none, and the `message` tool may have sent it already."""
    is_answered = has_answered(result)
    if BEAT in message.metadata and not is_answered:
        return reply_of(message, result)
    heard = [each.id for each in result.messages if isinstance(each, UserMessage) and each.id]
    reply = outbound.reply_to(message, reply_text(result), heard)
    return msgspec.structs.replace(reply, send=False) if is_answered else reply


def _question_text(parked: ParkedEntry) -> str:
    """The question, and the whole call if the question doesn't show all of it."""
    values = [msgspec.json.encode(value).decode() for value in parked.args.values()]
    if "…" not in parked.question and all(value in parked.question for value in values):
        return parked.question
    return f"{parked.question}\n{parked.name} {all_arguments(parked.args)}"
