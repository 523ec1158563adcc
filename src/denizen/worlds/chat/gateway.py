"""The gateway: messages come in, become turns of one agent, and the replies go out."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from denizen.config.home import places
from denizen.engine.resume import question_of
from denizen.errors import DenizenError, SessionUnknown
from denizen.ports import Accept, Answer, Channel, Fetch, InboundMessage
from denizen.runtime.clock import wait_until
from denizen.sessions.retention import prune
from denizen.sessions.search_file import SearchFile
from denizen.sessions.search_index import SearchIndex
from denizen.sessions.spend import Sums
from denizen.sessions.spend_file import SpendFile
from denizen.trusted.session_files import SessionFiles
from denizen.worlds.chat.delivery.alarms import Alarms
from denizen.worlds.chat.delivery.channel_states import ChannelStates
from denizen.worlds.chat.delivery.channels.media import prune_received
from denizen.worlds.chat.delivery.last_chat import LastChatFile
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.delivery.previews import Previews
from denizen.worlds.chat.events.listeners import Listeners
from denizen.worlds.chat.events.metrics import Metrics
from denizen.worlds.chat.events.relay import SideChannel
from denizen.worlds.chat.ledger import ledger
from denizen.worlds.chat.settings import GatewaySettings
from denizen.worlds.chat.timers.cron import Cron
from denizen.worlds.chat.timers.heartbeat import Heartbeat
from denizen.worlds.chat.turns.intake import Intake
from denizen.worlds.chat.turns.people import People
from denizen.worlds.chat.turns.queue import LedgerQueue
from denizen.worlds.chat.turns.seen_messages import MAX_COMPARED_MESSAGES, SeenMessages
from denizen.worlds.chat.turns.sender_access import SenderAccess
from denizen.worlds.chat.turns.spending_caps import SpendingCaps
from denizen.worlds.chat.turns.turn_runner import TurnRunner
from denizen.worlds.world import AgentHandle

_DAY_S = 86_400.0
_log = logging.getLogger(__name__)


class Gateway:
    """One agent that serves many sessions: in each in order, and in all of them concurrently.

    A message goes to `accept`, which queues it; the queue has the runner run its turn, and writes what that returns to
    the outbox. The outbox sends it, or HTTP clients fetch it. `side` brings the events of workers' turns, if there may
    be workers. `sums` is where the agent counts what it spends, and `search` finds what was said; by default they are
    the home's files.
    """

    def __init__(
        self,
        agent: AgentHandle,
        outbox: Outbox,
        cron: Cron,
        side: SideChannel | None = None,
        *,
        sums: Sums | None = None,
        search: SearchIndex | None = None,
    ) -> None:
        self.agent = agent
        self.settings = settings = agent.config.section("gateway", GatewaySettings)
        self.outbox = outbox
        self.cron = cron
        self.database = outbox.database
        clock = agent.record.clock
        self.metrics = Metrics(clock)
        self.listeners = Listeners(side, self.database, self.metrics, clock)
        self.home, _ = places(agent.config)
        self.previews = Previews(outbox, self.listeners, clock)
        alarms = Alarms(settings.owners, settings.alarms, outbox, clock)
        self.channels = ChannelStates(self.home / "channels.json", outbox.channels, clock, alarms.send)
        outbox.alarm, outbox.note_outcome = alarms.send, self.channels.note_outcome
        self.sums = sums or SpendFile(self.home / "spend.db")
        self.search = search or SearchFile(self.home / "sessions", self.home / "search.db")
        self.last_chat = LastChatFile(self.home, clock)
        people = People(agent.config)
        self.caps = SpendingCaps(settings, people, self.sums, clock)
        self.runner = TurnRunner(agent, outbox, self.listeners, self.metrics, self.caps)
        self.queue = LedgerQueue(
            self.database,
            clock=clock,
            attempts=settings.attempts,
            turns=settings.turns,
            when_busy=settings.when_busy,
            explain=self.runner.explain,
            on_reply=outbox.added,
            on_over=lambda state: self.metrics.count("denizen_messages_total", state=state),
        )
        self.access = SenderAccess(agent.config, people, outbox, clock)
        self.accept = Intake(agent, outbox, self.queue, self.last_chat, self.access).accept

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set.

        Running turns then have the grace time to end, and none if this is cancelled; the others go on at the next
        start, or with another worker.
        """
        heartbeat = Heartbeat(
            self.settings.heartbeat,
            self.database,
            self.agent.config.agent.workspace_dir / "HEARTBEAT.md",
            lambda: (self.last_chat.now.last_channel, self.last_chat.now.last_chat),
            clock=self.agent.record.clock,
            zone=self.agent.record.zone,
            session_files=SessionFiles(self.home),
        )
        receiving = [
            partial(self.channels.keep_receiving, channel, partial(self._accept_from, channel), self.runner.explain)
            for channel in self.outbox.channels.values()
        ]
        timers = [self.cron.run, heartbeat.run, self._prune_daily]
        hearing = self.listeners.hear_workers()
        await self._serve(
            stop,
            self.outbox.run,
            self.last_chat.run,
            self.previews.run,
            self.channels.run,
            *timers,
            *hearing,
            *receiving,
        )

    async def work(self, stop: asyncio.Event) -> None:
        """Run turns as a worker until `stop` is set; everything else is the gateway's."""
        await self._serve(stop, *self.listeners.report())

    async def _serve(self, stop: asyncio.Event, *more: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                serving = tasks.create_task(self.queue.serve(self.runner.run))
                others = [tasks.create_task(each()) for each in more]
                await stop.wait()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.settings.grace):
                        await self.queue.drain()
                for task in (serving, *others):
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

    async def _accept_from(self, channel: Channel) -> Accept:
        """The `accept` for a new connection, which drops replays if the service sends them with new ids."""
        recent = partial(ledger.recent_messages, channel=channel.name, most=MAX_COMPARED_MESSAGES)
        replays = channel.limits.replays_with_new_ids
        seen = SeenMessages(await self.database.find(recent) if replays else ())

        async def accept(message: InboundMessage, fetch: Fetch | None = None) -> bool:
            is_empty = not (fetch or message.media or message.content.strip())  # a sticker, or deleted meanwhile
            accepted = not is_empty and not seen.take_replay(message) and await self.accept(message, fetch)
            self.channels.note_message(channel.name)
            return accepted

        return accept

    async def _prune_daily(self) -> None:
        """Once a day, remove messages that have been over for `keep_days`, and what `[retention]` no longer keeps."""
        record, keep = self.agent.record, self.settings.keep_days * _DAY_S
        clock, open_sessions = record.clock, partial(self.database.find, ledger.open_sessions)
        while True:
            await self.database.prune(keep)
            files = await self.database.find(ledger.files_of_messages)
            remove = partial(prune_received, self.home, before=clock.now().timestamp() - keep, kept=files)
            await asyncio.to_thread(remove)
            try:
                pruned = await prune(record.store, self.sums, self.agent.config.retention, clock, open_sessions)
                if any(pruned):
                    _log.info("Retention: deleted %d sessions and %d sums of what was spent", *pruned)
            except DenizenError as error:
                _log.error("%s The clean-up goes on tomorrow.", error)
            await wait_until(clock, clock.monotonic() + _DAY_S)

    async def answer(self, session_key: str, answer: Answer) -> bool:
        """Answer the question that a session waits with; False: it doesn't wait for that call."""
        try:
            question = question_of(await self.agent.record.store.read(session_key))
        except SessionUnknown:
            return False
        return bool(question and question.call_id == answer.call_id) and await self.queue.control(session_key, answer)
