"""The gateway: what comes in becomes turns of one agent, and their replies go out."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from denizen.config.home import places
from denizen.engine.resume import question_of
from denizen.errors import DenizenError, SessionUnknown
from denizen.ports import Answer, Channel, InboundMessage, OutboundMessage, Parked, QueuedTurn, Stop
from denizen.runtime.clock import BackOff
from denizen.sessions import SessionKey
from denizen.sessions.key import bounded
from denizen.trusted.session_files import SessionFiles
from denizen.worlds.chat.delivery.last_chat import LastChatFile
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.events.listeners import Listeners
from denizen.worlds.chat.events.metrics import Metrics
from denizen.worlds.chat.events.relay import SideChannel
from denizen.worlds.chat.ledger import ledger, outbound, questions
from denizen.worlds.chat.ledger.database import LedgerError
from denizen.worlds.chat.ledger.reply_options import ReplyOptions, has_attachments
from denizen.worlds.chat.settings import GatewaySettings
from denizen.worlds.chat.timers.cron import Cron
from denizen.worlds.chat.timers.heartbeat import Heartbeat
from denizen.worlds.chat.turns import commands, spawn
from denizen.worlds.chat.turns.queue import LedgerQueue
from denizen.worlds.chat.turns.turn_runner import TurnRunner
from denizen.worlds.commands import split_command, without_escape
from denizen.worlds.server_prompts import says_prompt
from denizen.worlds.world import AgentHandle

_NOTHING_RUNS = "Nothing runs here that could be stopped. `/stop all` also stops subagents in the background."
MAX_KEY_CHARS = 2000
"""Characters of a session's key: an index of PostgreSQL takes no more than 2,704 bytes."""
_DAY_S = 86_400.0
_RECEIVE_RETRIES = BackOff(1.0, 60.0)
"""The waits before a channel that failed receives again."""
_log = logging.getLogger(__name__)


class Gateway:
    """One agent that serves many sessions: in each in order, and in all of them concurrently.

    The channels of the outbox bring messages and take replies, besides those that are polled over HTTP. By the `side`
    channel it hears the turns of workers, if there may be any.
    """

    def __init__(self, agent: AgentHandle, outbox: Outbox, cron: Cron, side: SideChannel | None = None) -> None:
        self.agent = agent
        self.settings = agent.config.section("gateway", GatewaySettings)
        self.outbox = outbox
        self.cron = cron
        self.database = database = outbox.database
        clock = agent.record.clock
        self.metrics = Metrics(clock)
        self.listeners = Listeners(side, database, self.metrics, clock)
        self.home, _ = places(agent.config)
        self.last_chat = LastChatFile(self.home, clock)
        self.runner = TurnRunner(agent, outbox, self.listeners, self.metrics, self._explain)
        self._prune_at = 0.0
        self.queue = LedgerQueue(
            database,
            clock=clock,
            attempts=self.settings.attempts,
            turns=self.settings.turns,
            when_busy=self.settings.when_busy,
            explain=self._explain,
            apology=spawn.apology,
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
            lambda: (self.last_chat.now.last_channel, self.last_chat.now.last_chat),
            clock=self.agent.record.clock,
            zone=self.agent.record.zone,
            session_files=SessionFiles(self.home),
        )
        receiving = (partial(self._receive, channel) for channel in self.outbox.channels.values())
        hearing = self.listeners.hear_workers()
        running = (self.outbox.run, self.cron.run, heartbeat.run, self.last_chat.run)
        await self._serve(stop, *running, *hearing, *receiving)

    async def work(self, stop: asyncio.Event) -> None:
        """As `run`, as a worker: take turns, and leave what else there is to do to the gateway."""
        await self._serve(stop, *self.listeners.report())

    async def _serve(self, stop: asyncio.Event, *more: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                serving = (self._prune, partial(self.queue.serve, self.handle), *more)
                work = [tasks.create_task(each()) for each in serving]
                await stop.wait()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.settings.grace):
                        await self.queue.drain()
                for task in work:
                    task.cancel()
        finally:
            await self.runner.close()
            await self.listeners.close()

    async def prepare(self) -> None:
        """Before it listens: let the chat that wrote last in a session of several go on with it, as ids were folded."""
        store = self.agent.record.store
        for old, new in await self.database.find(ledger.folded_sessions):
            known = {each.key for each in await store.list()}
            if old in known:
                if new not in known:
                    await store.fork(old, new)
                await store.remove(old)
            await self.database.persist(partial(ledger.rename_session, old=old, new=new))

    async def _receive(self, channel: Channel) -> None:
        """Take in what a channel brings; one that fails begins again, after a time that doubles."""
        clock, failures = self.agent.record.clock, 0
        while True:
            began = clock.monotonic()
            try:
                return await channel.receive(self.accept)
            except Exception as broken:  # noqa: BLE001 (the boundary to a channel: the others go on)
                failures = 1 if clock.monotonic() - began > _RECEIVE_RETRIES.max_s else failures + 1
                pause = _RECEIVE_RETRIES.after(failures)
                _log.error("Channel %s receives again in %g s: %s", channel.name, pause, self._explain(broken))
            await clock.sleep(pause)

    async def _prune(self) -> None:
        """Once a day, remove what has been over for long."""
        now = self.agent.record.clock.now().timestamp()
        if now >= self._prune_at:
            self._prune_at = now + _DAY_S
            await self.database.persist(partial(ledger.prune, now=now, keep=self.settings.keep_days * _DAY_S))

    async def accept(self, message: InboundMessage) -> bool:
        """Take a message in; False: it was accepted before.

        Commands of `COMMANDS` are obeyed; those that need no turn of their own overtake all messages.
        """
        message = _with_bounded_ids(message)
        if message.channel == ledger.SYSTEM:
            return await self.queue.put(message)
        if (new := await self._obey(message)) is not None:
            return new
        message = msgspec.structs.replace(message, content=without_escape(message.content))
        self.last_chat.remember(message)
        waits = has_attachments(message) or says_prompt(self.agent, message.content)
        new = await self.queue.put(message, waits=waits)
        if new and self.settings.when_busy.get(message.channel) != "interrupt":
            await self._tell_what_waits(message)
        return new

    async def _obey(self, message: InboundMessage) -> bool | None:
        """Accept a message that is a command, or answers a question; None: it is one like any other."""
        name, words = split_command(message.content)
        if name == "stop":
            nothing, stops_all = questions.Reading(_NOTHING_RUNS, message.session_key), words.lower() == "all"
            return await self._control(message, lambda _: nothing, Stop(), subagents=stops_all)
        if questions.may_be_answer(message.content):
            may_answer = partial(self._may_answer, message)
            read = partial(questions.read_answer, message=message, may_answer=may_answer)
            return await self._control(message, read)
        if not name:
            return None
        is_owner = self.is_owner(message)
        reply = await commands.reply_at_once(self.agent, self.database, message, is_owner=is_owner)
        if reply is not None:
            return await self._control(message, lambda _: questions.Reading(self.agent.record.redact(reply)))
        queued = msgspec.structs.replace(message, metadata={**message.metadata, commands.QUEUED: True})
        new = await self.queue.put(queued, waits=True)
        if new and name in commands.ENDS_PARKED:
            await self.database.run(partial(ledger.control_parked, session_key=message.session_key, given=[Stop()]))
            self.database.ring()
        return new

    async def _control(
        self,
        message: InboundMessage,
        read: Callable[[ledger.LedgerConnection], questions.Reading | None],
        stop: Stop | None = None,
        *,
        subagents: bool = False,
    ) -> bool | None:
        """Accept a message that controls a turn; None: it is one like any other, and wasn't accepted."""

        def put(db: ledger.LedgerConnection) -> bool | None:
            reading = read(db)
            if reading is None:
                return None
            key, control = reading.session_key or message.session_key, stop or reading.answer
            return outbound.put_command(db, message, key, control, reading.reply, subagents=subagents)

        new = await self.database.run(put)
        if new is not None:
            self.database.ring()
            self.outbox.added(message)
        return new

    def is_owner(self, message: InboundMessage) -> bool:
        """Whether the owner wrote it, or somebody who has the token."""
        by = {f"{message.channel}:{message.chat}", f"{message.channel}:{message.sender}"}
        return message.channel in outbound.POLLED or self.settings.owner in by

    def _may_answer(self, message: InboundMessage, question: OutboundMessage) -> bool:
        answered_by = question.metadata.get(questions.ANSWERED_BY)
        return self.is_owner(message) or answered_by == f"{message.channel}:{message.sender}"

    async def _tell_what_waits(self, message: InboundMessage) -> None:
        """Tell the chat what its parked turn waits for, and how to answer; in a group each member once."""
        try:
            text, about = await self.database.read(partial(questions.waiting_text, message=message))
            if text and ReplyOptions.of(message).send_response:
                is_direct = SessionKey.parse(message.session_key).kind == "direct"
                told = message.id if is_direct else f"{about}:{message.sender}"
                sent = OutboundMessage(message.channel, message.chat, text, message.session_key, id=f"{told}:waits")
                await self.outbox.put(sent)
        except LedgerError as error:  # the message itself is accepted
            _log.error("%s", error)

    async def ask(self, content: str, session_key: str, *, channel: str = "cli", chat: str = "direct") -> str:
        """The reply to a message of a program's own, which goes the way of all others, and is not sent."""
        message = InboundMessage(channel, chat, "direct", content, session_key)
        message = ReplyOptions(send_response=False).put_in(message)
        self.last_chat.remember(message)
        await self.queue.put(message)
        return await self.outbox.reply_to(message)

    async def handle(self, turn: QueuedTurn) -> OutboundMessage | InboundMessage | Parked | None:
        """Run the turn of a message: its reply, a subagent's report, or the question that it waits with."""
        await self._prune()
        try:
            return await self.runner.run(turn)
        finally:
            await self.listeners.flush()  # whoever hears that the turn is over has heard all of it

    async def answer(self, session_key: str, answer: Answer) -> bool:
        """Answer the question that a session waits with; False: it waits with none of that call."""
        try:
            question = question_of(await self.agent.record.store.read(session_key))
        except SessionUnknown:
            return False
        return bool(question and question.call_id == answer.call_id) and await self.queue.control(session_key, answer)

    def _explain(self, error: Exception) -> str:
        text = str(error) if isinstance(error, DenizenError) else f"{type(error).__name__}: {error}"
        return self.agent.record.redact(text)


def _with_bounded_ids(message: InboundMessage) -> InboundMessage:
    """The message with an id and a session key that every database takes."""
    key = message.session_key
    if len(key) > MAX_KEY_CHARS:
        key = str(replace(SessionKey.parse(key), peer=hashlib.sha256(key.encode(errors="replace")).hexdigest()))
    return msgspec.structs.replace(message, id=bounded(message.id, questions.MAX_ID_CHARS), session_key=key)
