"""The gateway: what comes in becomes turns of one agent, and their replies go out."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from denizen.config.files import write_private
from denizen.config.home import places
from denizen.config.rules import all_arguments
from denizen.engine import TurnOptions, run_turn
from denizen.engine.resume import question_of
from denizen.engine.session_state import IN_SIGHT, InSight, state_of
from denizen.engine.turn import Start
from denizen.entries import AnyEntry, CompactionEntry, EndEntry, ParkedEntry, StateEntry, SystemEntry, UserEntry
from denizen.errors import ConfigError, DenizenError, SessionError, ToolRefused
from denizen.events import Compacted, Notice, Retry, RunEvent, RunResult
from denizen.messages import Image, Text, UserMessage, UserPart
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
from denizen.worlds.chat import caller, ledger, outbound, spawn
from denizen.worlds.chat.cron import Cron
from denizen.worlds.chat.database import LedgerError
from denizen.worlds.chat.heartbeat import BEAT, Heartbeat, reply_of, start_of
from denizen.worlds.chat.message import has_answered
from denizen.worlds.chat.metrics import Metrics
from denizen.worlds.chat.outbox import Outbox
from denizen.worlds.chat.queue import LedgerQueue
from denizen.worlds.chat.relay import Audience, Reporter, SideChannel, TurnEvent
from denizen.worlds.chat.settings import GatewaySettings
from denizen.worlds.chat.summaries import Summaries
from denizen.worlds.server_prompts import prompt_said, says_prompt
from denizen.worlds.world import AgentHandle

INTERNAL = frozenset({"cli", ledger.SYSTEM})
"""Channels that don't lead out."""
DEFAULT_RESPONSE = "I've finished, and have nothing to add."
COMMANDS = {
    "/stop": "Nothing runs here that could be stopped. `/stop all` also stops subagents in the background.",
    "/approve": "Nothing waits here for an approval.",
    "/deny": "Nothing waits here for an approval.",
}
"""What overtakes all messages, and the reply where there is nothing to control."""
_RUN, _IMAGES = "denizen.run", "denizen.images"
_DAY = 86_400.0
_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a channel that failed receives again: at first, and at most."""

LONG_WAIT = 5.0
"""Seconds before the model is asked again from which on the chat is told."""

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
    hear all events, `watchers` those of the turn of one message, by its id. By the `side` channel it hears those of
    workers' turns, too, if there may be workers.
    """

    def __init__(self, agent: AgentHandle, outbox: Outbox, cron: Cron, side: SideChannel | None = None) -> None:
        self.agent = agent
        self.settings = agent.config.section("gateway", GatewaySettings)
        self.outbox = outbox
        self.cron = cron
        self.database = database = outbox.database
        self.listeners: list[OnEvent] = []
        self.watchers: dict[str, Callable[[TurnEvent], None]] = {}
        clock = agent.record.clock
        self.metrics = Metrics(clock)
        self._side = side
        self._audience: Audience | None = None
        self._reporter: Reporter | None = None
        self.home, _ = places(agent.config)
        self._last = read_last_chat(self.home)
        self._open: dict[str, Session] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self._prune_at = 0.0
        self.summaries = Summaries(self._keep_summary)
        self.queue = LedgerQueue(
            database,
            clock=clock,
            attempts=self.settings.attempts,
            turns=self.settings.turns,
            when_busy=self.settings.when_busy,
            explain=self._explain,
            on_reply=self.outbox.added,
            on_over=lambda state: self.metrics.count("denizen_messages_total", state=state),
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set.

        Turns that run then have the grace time to end, and none where this is cancelled; the others go on at the next
        start, or with another worker.
        """
        heartbeat = Heartbeat(
            *(self.settings.heartbeat, self.database, self.agent.config.agent.workspace_dir / "HEARTBEAT.md"),
            lambda: (self._last.last_channel, self._last.last_chat),
            clock=self.agent.record.clock,
            zone=self.agent.record.zone,
        )
        receiving = (partial(self._receive, channel) for channel in self.outbox.channels.values())
        hearing: list[Callable[[], Coroutine[Any, Any, None]]] = []
        if self._side:
            clock = self.agent.record.clock
            self._audience = Audience(self._side, self.database, self._tell_here, self.metrics, clock)
            hearing.append(self._audience.run)
        await self._serve(stop, self.outbox.run, self.cron.run, heartbeat.run, *hearing, *receiving)

    async def work(self, stop: asyncio.Event) -> None:
        """As `run`, as a worker: take turns, and leave what else there is to do to the gateway."""
        if self._side:
            self._reporter = Reporter(self._side, self.database, self.metrics, self.agent.record.clock)
        await self._serve(stop, *([self._reporter.run] if self._reporter else []))

    async def _serve(self, stop: asyncio.Event, *more: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await self._prune()
        try:
            async with asyncio.TaskGroup() as tasks:
                serving = (partial(self.queue.serve, self.handle), *more)
                work = [tasks.create_task(each()) for each in serving]
                await stop.wait()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.settings.grace):
                        await self.queue.drain()
                for task in work:
                    task.cancel()
        finally:
            await self.summaries.close()
            await asyncio.gather(*self._telling)

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

        `/stop`, `/approve` and `/deny`, with words after them, overtake all messages; `/stop all` also stops the
        subagents in the background.
        """
        word, words = split_command(message.content)
        if word not in COMMANDS or message.channel == ledger.SYSTEM:
            self.remember(message)
            return await self.queue.put(message, waits=says_prompt(self.agent, message.content))
        key, control = message.session_key, Stop() if word == "/stop" else None
        asked = partial(outbound.open_question, channel=message.channel, chat=message.chat)
        if not control and (question := await self.database.read(asked)):
            key = question.session_key
            control = Answer(question.metadata[outbound.CALL], allow=word == "/approve", text=words)
        obey = partial(
            outbound.obey,
            message=message,
            session_key=key,
            given=control,
            otherwise=COMMANDS[word],
            subagents=word == "/stop" and words == "all",
        )
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
        self.remember(message)
        await self.queue.put(message)
        return await self.outbox.reply_to(message)

    async def handle(self, turn: QueuedTurn) -> OutboundMessage | InboundMessage | Parked | None:
        """Run the turn of a message: its reply, a subagent's report, or the question that it waits with."""
        try:
            return await self._answer(turn)
        finally:
            if self._reporter:  # whoever hears that the turn is over has heard all of it
                await self._reporter.flush()

    async def _answer(self, turn: QueuedTurn) -> OutboundMessage | InboundMessage | Parked | None:
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
            tools = caller.offered(message)
            stream = self.is_heard(message)
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
                    caller.with_tools(self.agent.record, tools),
                    session,
                    start,
                    host,
                    TurnOptions(
                        stream=stream,
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
            message = self._with_sight(message, session)
            question = question_of(session.entries) if result.stop_reason == "parked" else None
            if run.enable_summary and not question and not is_beat:
                self.summaries.after_turn(self.agent.record, session)
        if question:
            return ParkedTurn(self._question(message, question), question.until)
        if is_beat and not has_answered(result):
            return reply_of(message, result)
        reply = outbound.reply_to(message, reply_text(result, run.default_response))
        return msgspec.structs.replace(reply, send=run.send_response and not has_answered(result))

    async def _start(self, message: InboundMessage, session: Session) -> Start:
        """What a message begins its turn with. Raises ToolRefused where it says a server's prompt that there isn't."""
        if BEAT in message.metadata:
            return start_of(message, session.entries)
        prompt = await prompt_said(self.agent, session, message.content, message.id)
        return UserMessage([*_parts(message), *prompt], message.id)

    async def _work(self, turn: QueuedTurn, session: Session, spawned: spawn.Spawned) -> InboundMessage | Parked:
        """Run a subagent's turn: its report to the session that it works for."""
        message, host = turn.message, _TurnHost(turn, self._emit, stream=False)
        record, read_only = self.agent.record, self.agent.read_only
        result = await spawn.work(record, session, message, spawned, host, stop=host.stop, read_only=read_only)
        if result.details.get("stop_reason") == "parked" and (question := question_of(session.entries)):
            return ParkedTurn(self._question(self._with_sight(message, session), question), question.until)
        return spawn.report(message, spawned, result)

    def _with_sight(self, message: InboundMessage, session: Session) -> InboundMessage:
        """The message, with what its turn has in sight where the turn's words are kept in another session, too."""
        if ledger.ORIGIN not in message.metadata and not self.settings.owner:
            return message
        seen = msgspec.to_builtins(InSight.of(state_of(self.agent.record, session).in_sight))
        return msgspec.structs.replace(message, metadata={**message.metadata, ledger.IN_SIGHT: seen})

    @asynccontextmanager
    async def _opened(self, key: str) -> AsyncGenerator[Session]:
        session = await self.agent.open(key)
        self._open[key] = session
        try:
            yield session
            await session.sync()  # the ledger is about to say that it is over
        finally:
            del self._open[key]
            await self.agent.leave(session)

    async def _keep_summary(self, key: str, entry: CompactionEntry | StateEntry) -> None:
        """Put a summary, or that there is none, in its session: in the one that a turn has open, if any."""
        if session := self._open.get(key):
            await session.append(entry)
        else:
            async with self._opened(key) as session:
                await session.append(entry)
        if isinstance(entry, CompactionEntry):
            self._tell(TurnEvent(key, "", 0, 0, 0, Compacted(entry.old_count, entry.new_count)))

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
            kept = outbound.reply_to(message, "")
            return msgspec.structs.replace(kept, id=f"{message.id}:call:{parked.call_id}", send=False)
        owner, _, chat = self.settings.owner.partition(":")
        args = all_arguments(parked.args)
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
                outbound.CALL: parked.call_id,
                **{name: seen for name, seen in message.metadata.items() if name == ledger.IN_SIGHT},
                **({ledger.ORIGIN: origin} if owner or ledger.ORIGIN in message.metadata else {}),
            },
            id=f"{message.id}:ask:{parked.call_id}",
        )

    def remember(self, message: InboundMessage) -> None:
        """Keep where the last message from outside came from."""
        last = LastChat(message.channel, message.chat)
        if message.channel not in INTERNAL and ledger.ORIGIN not in message.metadata and last != self._last:
            self._last = last
            data = msgspec.json.format(msgspec.json.encode(last))
            try:
                write_private(self.home / "state.json", data, sync=False)
            except ConfigError as error:  # no reason to refuse the message
                _log.warning("The last chat isn't kept: %s", error)

    def listening(self) -> AbstractAsyncContextManager[None]:
        """Hear the events of workers' turns, too, for as long as the block runs."""
        return self._audience.listening() if self._audience else nullcontext()

    def is_heard(self, message: InboundMessage) -> bool:
        """Whether somebody listens to a message's turn, here or where this worker reports to."""
        here = bool(self.listeners) or message.id in self.watchers
        return here or (self._reporter is not None and self._reporter.is_heard)

    def _tell(self, event: TurnEvent) -> None:
        """Tell whoever listens, here or where this worker reports to."""
        self._tell_here(event)
        if self._reporter:
            self._reporter.add(event)

    def _tell_here(self, event: TurnEvent) -> None:
        for listener in self.listeners:
            listener(event.session_key, event.event)
        if watcher := self.watchers.get(event.message_id):
            watcher(event)

    def _emit(self, message: InboundMessage, told: TurnEvent) -> None:
        event = told.event
        self.metrics.add(message.session_key, event)
        self._tell(told)
        if isinstance(event, Notice):
            level = logging.getLevelNamesMapping()[event.level.upper()]
            _log.log(level, "%s: %s", message.session_key, self.agent.record.redact(event.text))
        waits_for_reply = ledger.ORIGIN not in message.metadata and RunOptions.of(message).send_response
        if isinstance(event, Retry) and event.delay >= LONG_WAIT and waits_for_reply:
            telling = asyncio.create_task(self._tell_chat(message, event))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

    async def _tell_chat(self, message: InboundMessage, retry: Retry) -> None:
        """Send word that the reply takes longer, once for a message."""
        text = f"I can't answer yet, and keep trying. {retry.words}"
        told = OutboundMessage(message.channel, message.chat, text, message.session_key, id=f"{message.id}:retry")
        try:
            await self.database.run(partial(outbound.add_outbound, message=told, state=outbound.first_state(told)))
        except LedgerError as error:
            _log.error("%s", error)
        self.outbox.added(told)

    def _explain(self, error: Exception) -> str:
        text = str(error) if isinstance(error, DenizenError) else f"{type(error).__name__}: {error}"
        return self.agent.record.redact(text)


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

    def stop(self) -> None:
        self.waiting = [*self.waiting, Stop()]

    async def ask(self, request: Ask) -> Answer | Parked:
        return Parked()


def split_command(text: str) -> tuple[str, str]:
    """The first word, which may be one of `COMMANDS`, and what comes after it."""
    word, words = [*text.split(maxsplit=1), "", ""][:2]
    return word, words.strip()


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
        if seen := message.metadata.get(ledger.IN_SIGHT):
            await session.append(StateEntry(name=IN_SIGHT, value=seen))
        await session.append(SystemEntry(text=message.content, message_id=message.id))
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


def with_images(message: InboundMessage, images: Sequence[Image]) -> InboundMessage:
    """The message, with pictures for the model to see."""
    if not images:
        return message
    return msgspec.structs.replace(message, metadata={**message.metadata, _IMAGES: msgspec.to_builtins(images)})


def _parts(message: InboundMessage) -> list[UserPart]:
    words = "\n".join((message.content, *(f"[attached: {each}]" for each in message.media)))
    images = msgspec.convert(message.metadata.get(_IMAGES, []), list[Image])
    return [Text(words), *images] if words or not images else [*images]


def reply_text(result: RunResult, default: str = DEFAULT_RESPONSE) -> str:
    """What whoever wrote the message is told."""
    if result.reply.strip():
        return result.reply
    return "Stopped." if result.stop_reason == "cancelled" else result.error or default
