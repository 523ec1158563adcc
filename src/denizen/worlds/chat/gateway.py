"""The gateway: what comes in becomes turns of one agent, and their replies go out."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec

from denizen.config.files import write_private
from denizen.config.home import places
from denizen.engine import TurnOptions, run_turn
from denizen.engine.resume import question_of
from denizen.engine.session_state import IN_SIGHT
from denizen.entries import AnyEntry, CompactionEntry, EndEntry, ParkedEntry, StateEntry, SystemEntry, UserEntry
from denizen.errors import DenizenError, SessionError
from denizen.events import Compacted, RunEvent, RunResult
from denizen.messages import Text, UserMessage
from denizen.ports import (
    Answer,
    Ask,
    Channel,
    Control,
    InboundMessage,
    OutboundMessage,
    Parked,
    ParkedTurn,
    QueuedTurn,
    Session,
    Stop,
)
from denizen.worlds.chat import caller, ledger, spawn
from denizen.worlds.chat.cron import Cron
from denizen.worlds.chat.heartbeat import BEAT, Heartbeat, reply_of, start_of
from denizen.worlds.chat.message import has_answered
from denizen.worlds.chat.outbox import Outbox
from denizen.worlds.chat.queue import LedgerQueue
from denizen.worlds.chat.settings import GatewaySettings
from denizen.worlds.chat.summaries import Summaries
from denizen.worlds.world import AgentHandle

INTERNAL = frozenset({"cli", ledger.SYSTEM})
"""Channels that don't lead out."""
DEFAULT_RESPONSE = "I've finished, and have nothing to add."
COMMANDS = {
    "/stop": "Nothing runs here that could be stopped.",
    "/approve": "Nothing waits here for an approval.",
    "/deny": "Nothing waits here for an approval.",
}
"""What overtakes all messages, and the reply where there is nothing to control."""
_RUN = "denizen.run"
_DAY = 86_400.0
_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a channel that failed receives again: at first, and at most."""

OnEvent = Callable[[str, RunEvent], None]
"""Hears the events of all turns; the first argument is the session's key."""

_log = logging.getLogger(__name__)


class RunOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one message is answered.

    Without `history` the model sees nothing of earlier turns; `default_response` stands in for an empty reply; without
    `send_response` the reply is kept for whoever asked; without `enable_summary` the turn is no reason to summarise the
    session.
    """

    history: bool = True
    default_response: str = DEFAULT_RESPONSE
    send_response: bool = True
    enable_summary: bool = True

    @classmethod
    def of(cls, message: InboundMessage) -> "RunOptions":
        """Those that a message came with."""
        return msgspec.convert(message.metadata.get(_RUN, {}), cls)

    def put_in(self, message: InboundMessage) -> InboundMessage:
        """The message, to be answered so."""
        metadata = {**message.metadata, _RUN: msgspec.to_builtins(self)}
        return msgspec.structs.replace(message, metadata=metadata)


class LastChat(msgspec.Struct, frozen=True):
    """`state.json`: where the last message from outside came from."""

    last_channel: str = ""
    last_chat: str = ""


class Gateway:
    """One agent that serves many sessions: in each in order, and in all of them concurrently.

    The channels of the outbox bring messages and take replies, besides those that are polled over HTTP. `listeners`
    hear all events, `watchers` those of the turn of one message, by its id.
    """

    def __init__(self, agent: AgentHandle, outbox: Outbox, cron: Cron) -> None:
        self.agent = agent
        self.settings = agent.config.section("gateway", GatewaySettings)
        self.outbox = outbox
        self.cron = cron
        self.database = database = outbox.database
        self.listeners: list[OnEvent] = []
        self.watchers: dict[str, Callable[[RunEvent], None]] = {}
        self.home, _ = places(agent.config)
        self._last = read_last_chat(self.home)
        self._open: dict[str, Session] = {}
        self._prune_at = 0.0
        self.summaries = Summaries(self._keep_summary)
        self.queue = LedgerQueue(
            database,
            clock=agent.record.clock,
            attempts=self.settings.attempts,
            turns=self.settings.turns,
            when_busy=self.settings.when_busy,
            explain=self._explain,
            on_reply=self.outbox.added,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set.

        Turns that run then have the grace time to end, and none where this is cancelled; the others go on at the next
        start.
        """
        await self._prune()
        heartbeat = Heartbeat(
            *(self.settings.heartbeat, self.database, self.agent.config.agent.workspace_dir / "HEARTBEAT.md"),
            lambda: (self._last.last_channel, self._last.last_chat),
            clock=self.agent.record.clock,
            zone=self.agent.record.zone,
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                work = [
                    tasks.create_task(self.queue.serve(self.handle)),
                    tasks.create_task(self.outbox.run()),
                    tasks.create_task(self.cron.run()),
                    tasks.create_task(heartbeat.run()),
                    *(tasks.create_task(self._receive(channel)) for channel in self.outbox.channels.values()),
                ]
                await stop.wait()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.settings.grace):
                        await self.queue.drain()
                for task in work:
                    task.cancel()
        finally:
            await self.summaries.close()

    async def _receive(self, channel: Channel) -> None:
        """Take in what a channel brings; one that fails begins again, after a time that doubles."""
        clock, pause = self.agent.record.clock, _PAUSE
        while True:
            began = clock.monotonic()
            try:
                return await channel.receive(self.accept)
            except Exception as broken:  # noqa: BLE001 (the boundary to a channel: the others go on)
                if clock.monotonic() - began > _LONGEST_PAUSE:
                    pause = _PAUSE
                _log.error("Channel %s receives again in %g s: %s", channel.name, pause, self._explain(broken))
            await clock.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _prune(self) -> None:
        """Once a day, remove what has been over for long."""
        now = self.agent.record.clock.now().timestamp()
        if now >= self._prune_at:
            self._prune_at = now + _DAY
            await self.database.persist(partial(ledger.prune, now=now, keep=self.settings.keep_days * _DAY))

    async def accept(self, message: InboundMessage) -> bool:
        """Take a message in; False: it was accepted before.

        `/stop`, `/approve` and `/deny`, with words after them, overtake all messages.
        """
        word, _, words = message.content.strip().partition(" ")
        if word not in COMMANDS or message.channel == ledger.SYSTEM:
            return await self.queue.put(message)
        key, control = message.session_key, Stop() if word == "/stop" else None
        asked = partial(ledger.open_question, channel=message.channel, chat=message.chat)
        if not control and (question := await self.database.run(asked)):
            key = question.session_key
            control = Answer(question.metadata[ledger.CALL], allow=word == "/approve", text=words.strip())
        obey = partial(ledger.obey, message=message, session_key=key, given=control, otherwise=COMMANDS[word])
        new = await self.database.run(obey)
        self.database.ring()
        self.outbox.added(message)
        return new

    async def ask(
        self,
        content: str,
        session_key: str,
        *,
        channel: str = "cli",
        chat: str = "direct",
        run: RunOptions | None = None,
    ) -> str:
        """The reply to a message of a program's own, which goes the way of all others."""
        message = InboundMessage(channel, chat, "direct", content, session_key)
        message = (run or RunOptions(send_response=False)).put_in(message)
        await self.queue.put(message)
        return await self.outbox.reply_to(message)

    async def handle(self, turn: QueuedTurn) -> OutboundMessage | Parked | None:
        """Run the turn of a message: its reply, or the question that it waits with."""
        await self._prune()
        message, run = turn.message, RunOptions.of(turn.message)
        async with self._opened(message.session_key) as session:
            if message.channel == ledger.SYSTEM:
                await _keep(session, message)
                return None
            if turn.attempt > 1 and _was_heard(session.entries, message.id):
                return None
            if spawned := spawn.spawned_by(message):
                return await self._work(turn, session, spawned)
            self._remember(message)
            tools = caller.offered(message)
            host = _TurnHost(turn, self._emit)
            if tools and turn.attempt > 1:
                host.waiting = await caller.keep_results(session, turn.controls(), tools)
            start = UserMessage([Text(_words(message))], message.id)
            if is_beat := BEAT in message.metadata:
                start = start_of(message, session.entries)
            try:
                result = await run_turn(
                    caller.with_tools(self.agent.record, tools),
                    session,
                    start,
                    host,
                    TurnOptions(
                        stream=bool(self.listeners) or message.id in self.watchers,
                        read_only=self.agent.read_only,
                        channel=message.channel,
                        chat=message.chat,
                        history=self.settings.heartbeat.history if is_beat else run.history,
                        resumes=True,
                    ),
                )
            except DenizenError as error:
                if not is_beat:
                    raise
                _log.error("The heartbeat failed, and isn't made up: %s", self._explain(error))
                return None
            question = question_of(session.entries) if result.stop_reason == "parked" else None
            if run.enable_summary and not question and not is_beat:
                self.summaries.after_turn(self.agent.record, session)
        if question:
            return ParkedTurn(self._question(message, question), question.until)
        if is_beat and not has_answered(result):
            return reply_of(message, result)
        reply = ledger.reply_to(message, reply_text(result, run.default_response))
        return msgspec.structs.replace(reply, send=run.send_response and not has_answered(result))

    async def _work(self, turn: QueuedTurn, session: Session, spawned: spawn.Spawned) -> Parked | None:
        """Run a subagent's turn, whose result goes to the session that it works for."""
        message, host = turn.message, _TurnHost(turn, self._emit)
        record, read_only = self.agent.record, self.agent.read_only
        result = await spawn.work(record, session, message, spawned, host, read_only=read_only)
        if result.details.get("stop_reason") == "parked" and (question := question_of(session.entries)):
            return ParkedTurn(self._question(message, question), question.until)
        await self.queue.put(spawn.report(message, spawned, result))
        return None

    @asynccontextmanager
    async def _opened(self, key: str) -> AsyncGenerator[Session]:
        session = await self.agent.open(key)
        self._open[key] = session
        try:
            yield session
        finally:
            del self._open[key]
            await self.agent.leave(session)

    async def _keep_summary(self, key: str, entry: CompactionEntry) -> None:
        """Put a summary in its session: in the one that a turn has open, if any."""
        if session := self._open.get(key):
            await session.append(entry)
        else:
            async with self._opened(key) as session:
                await session.append(entry)
        for listener in self.listeners:
            listener(key, Compacted(entry.old_count, entry.new_count))

    async def answer(self, session_key: str, answer: Answer) -> bool:
        """Answer the question that a session waits with; False: it waits with none of that call."""
        try:
            question = question_of(await self.agent.record.store.read(session_key))
        except SessionError:
            return False
        return bool(question and question.call_id == answer.call_id) and await self.queue.control(session_key, answer)

    def _question(self, message: InboundMessage, parked: ParkedEntry) -> OutboundMessage:
        """What the owner is asked; of a call that the caller runs, nothing is sent."""
        if parked.question == caller.CALLER_RUNS:
            kept = ledger.reply_to(message, "")
            return msgspec.structs.replace(kept, id=f"{message.id}:call:{parked.call_id}", send=False)
        owner, _, chat = self.settings.owner.partition(":")
        args = msgspec.json.encode(parked.args).decode()
        call = f"\n{parked.name} {args}" if parked.name and args not in parked.question else ""
        origin = ledger.origin_of(message.session_key, message.channel, message.chat)
        text = f"{parked.question}{call}\n\nAnswer /approve, or /deny and why (call {parked.call_id})."
        return OutboundMessage(
            owner or message.channel,
            chat or message.chat,
            self.agent.record.redact(text),
            message.session_key,
            message.id,
            metadata={
                ledger.CALL: parked.call_id,
                **({ledger.ORIGIN: origin} if owner or ledger.ORIGIN in message.metadata else {}),
            },
            id=f"{message.id}:ask:{parked.call_id}",
        )

    def _remember(self, message: InboundMessage) -> None:
        """Keep where the last message from outside came from."""
        last = LastChat(message.channel, message.chat)
        if message.channel not in INTERNAL and ledger.ORIGIN not in message.metadata and last != self._last:
            data = msgspec.json.format(msgspec.json.encode(last))
            write_private(self.home / "state.json", data, sync=False)
            self._last = last

    def _emit(self, message: InboundMessage, event: RunEvent) -> None:
        for listener in self.listeners:
            listener(message.session_key, event)
        if watcher := self.watchers.get(message.id):
            watcher(event)

    def _explain(self, error: Exception) -> str:
        text = str(error) if isinstance(error, DenizenError) else f"{type(error).__name__}: {error}"
        return self.agent.record.redact(text)


class _TurnHost:
    """What a turn has of the gateway: nobody sits there, so a question parks it."""

    def __init__(self, turn: QueuedTurn, emit: Callable[[InboundMessage, RunEvent], None]) -> None:
        self._turn = turn
        self._emit = partial(emit, turn.message)
        self.waiting: Sequence[Control] = ()

    def emit(self, event: RunEvent) -> None:
        self._emit(event)

    def controls(self) -> Sequence[Control]:
        waiting, self.waiting = self.waiting, ()
        return [*waiting, *self._turn.controls()]

    async def ask(self, request: Ask) -> Answer | Parked:
        return Parked()


def read_last_chat(home: Path) -> LastChat:
    """Where the last message from outside came from; nowhere, where nothing readable says so."""
    try:
        return msgspec.json.decode((home / "state.json").read_bytes(), type=LastChat)
    except (OSError, msgspec.DecodeError):
        return LastChat()


async def _keep(session: Session, message: InboundMessage) -> None:
    """Keep a message of the system's in its session, once."""
    kept = (entry for entry in session.entries if isinstance(entry, SystemEntry))
    if not any(entry.message_id == message.id for entry in kept):
        if seen := message.metadata.get(spawn.IN_SIGHT):
            await session.append(StateEntry(name=IN_SIGHT, value=seen))
        await session.append(SystemEntry(text=message.content, message_id=message.id))
        await session.sync()
    _log.info("Kept for %s, from %s: %s", message.session_key, message.sender, message.content.partition("\n")[0][:200])


def _was_heard(entries: Sequence[AnyEntry], message_id: str) -> bool:
    """Whether the message was said to a turn that another one had begun, whose reply answers it, too."""
    open_turn = False
    for entry in entries:
        if isinstance(entry, EndEntry):
            open_turn = False
        elif isinstance(entry, UserEntry):
            if entry.message.id == message_id:
                return open_turn
            open_turn = True
    return False


def _words(message: InboundMessage) -> str:
    return "\n".join((message.content, *(f"[attached: {each}]" for each in message.media)))


def reply_text(result: RunResult, default: str = DEFAULT_RESPONSE) -> str:
    """What whoever wrote the message is told."""
    if result.reply.strip():
        return result.reply
    return "Stopped." if result.stop_reason == "cancelled" else result.error or default
