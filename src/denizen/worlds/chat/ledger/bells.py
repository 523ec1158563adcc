"""Workers on a PostgreSQL server: procrastinate wakes them, and finds those that died.

A job of procrastinate is the bell of a session, and the inbox the truth: a bell may ring twice, and then finds nothing.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import psycopg
from procrastinate import App, JobContext
from procrastinate.connector import BaseAsyncConnector, BaseConnector, Notify
from procrastinate.exceptions import ConnectorException
from procrastinate.worker import Worker as Fetcher
from psycopg import sql
from psycopg.rows import dict_row

from denizen.runtime.cancellation import run_to_completion
from denizen.runtime.postgres import PostgresDatabase
from denizen.worlds.chat.ledger import ledger
from denizen.worlds.chat.ledger.database import Database, LedgerError, WorkerTiming

if TYPE_CHECKING:
    from typing import LiteralString

NEWS = "denizen_news"
"""The channel on which the tables tell all processes what is new; other subjects have channels of their own."""
QUEUE, TASK = "denizen", "denizen.turn"
_NO_QUEUE = "denizen.none"
_RETRY_WAIT = 1.0
"""Seconds between two tries to reach the server."""
_POLL = 5.0
"""Seconds after which what a process wasn't told is looked for, where nothing was new meanwhile."""
_SELDOM = 86_400.0
_log = logging.getLogger(__name__)


def channel_of(subject: str) -> str:
    """The channel of a subject that isn't a table's."""
    return f"denizen_{subject}"


class JobClaimer:
    """A worker whose sessions are rung for."""

    def __init__(self, database: Database, bell: asyncio.Event) -> None:
        self.id = ""
        self.fetcher: Fetcher | None = None
        self.jobs: set[int] = set()
        self._database = database
        self._bell = bell
        self._rung: dict[str, asyncio.Event] = {}
        self._running: dict[str, asyncio.Event] = {}
        self._asked: set[str] = set()

    async def ring(self, context: JobContext, session_key: str) -> None:
        """Have a session's turn claimed; on return it is over, or there was none."""
        job = context.job.id or 0
        self.jobs.add(job)
        self.id = str(context.job.worker_id)
        over = self._rung.setdefault(session_key, asyncio.Event())
        self._asked.discard(session_key)  # what is being claimed may have been read before
        self._bell.set()
        try:
            await over.wait()
        finally:
            self.jobs.discard(job)

    def may_claim(self, busy: Collection[str], room: int) -> bool:
        return room > 0 and any(key not in busy for key in self._rung)

    def claim(self, db: ledger.LedgerConnection, busy: Collection[str], now: float, room: int) -> list[ledger.Claim]:
        asked = [key for key in [*self._rung] if key not in busy][:room]  # a copy: the loop's thread rings meanwhile
        self._asked = {*asked}
        return _claim(db, self.id, asked) if asked else []

    def next_due(self, db: ledger.LedgerConnection) -> float | None:
        return None

    def began(self, claims: Sequence[ledger.Claim]) -> None:
        for key in (claim.message.session_key for claim in claims):
            self._running[key] = self._rung.pop(key, None) or asyncio.Event()
        self._end(self._asked)

    def ended(self, session_key: str) -> None:
        self._running.pop(session_key).set()

    async def stop_claiming(self) -> None:
        if self.fetcher:
            self.fetcher.queues = [_NO_QUEUE]
        left = [*self._rung]
        await self._database.run(partial(_ring_again, sessions=left))
        self._end(left)

    def _end(self, sessions: Iterable[str]) -> None:
        """End the jobs that rang for these sessions, but for those whose turns have begun."""
        for key in sessions:
            if over := self._rung.pop(key, None):
                over.set()


@asynccontextmanager
async def working(
    server: PostgresDatabase, database: Database, bell: asyncio.Event, turns: int, timing: WorkerTiming
) -> AsyncGenerator[JobClaimer]:
    """Have sessions rung for, the dead's too, and hear what other processes tell, for as long as the block runs."""
    connector, door = _Connector(server, database), JobClaimer(database, bell)
    app = App(connector=connector)
    app.task(name=TASK, pass_context=True)(door.ring)

    async def fetch() -> None:
        while connector.patient:
            door.fetcher = Fetcher(
                app,
                queues=[QUEUE],
                concurrency=turns,
                fetch_job_polling_interval=timing.poll,
                abort_job_polling_interval=_SELDOM,
                shutdown_graceful_timeout=0.0,  # turns aren't part of their jobs
                delete_jobs="always",
                install_signal_handlers=False,
                update_heartbeat_interval=timing.heartbeat,
                stalled_worker_timeout=timing.stalled,
            )
            with suppress(ConnectorException):
                await door.fetcher.run()
            if connector.patient:
                _log.warning("Others have taken this worker for dead: it begins again.")
                await asyncio.sleep(_RETRY_WAIT)

    async with asyncio.TaskGroup() as tasks:
        work = [tasks.create_task(fetch()), tasks.create_task(_look_after(database, door, timing))]
        try:
            yield door
        finally:
            connector.patient = False
            for task in work:
                task.cancel()
            await asyncio.wait(work)
            await connector.close_async()
            with suppress(LedgerError):  # which whoever takes over finds out, too
                await run_to_completion(door.stop_claiming())


async def _look_after(database: Database, door: JobClaimer, timing: WorkerTiming) -> None:
    """Take over what dead workers leave: where the server was away, others must have had the time to beat again."""
    since = time.monotonic()
    while True:
        await asyncio.sleep(timing.heartbeat)
        if time.monotonic() - since < timing.stalled:
            continue
        take_over = partial(_take_over, worker=door.id, jobs=[*door.jobs], stalled=timing.stalled)
        try:
            if taken := await database.run(take_over):
                _log.warning("A worker died: %s of its turns are given to others.", taken)
        except LedgerError:
            since = time.monotonic()


def _claim(db: ledger.LedgerConnection, worker: str, sessions: Sequence[str]) -> list[ledger.Claim]:
    """Begin the turns of these sessions that are due, and those whose beginning the worker never heard of."""
    rows = db.execute(
        "UPDATE inbox SET state = 'running', worker = ?, attempt = attempt + 1 WHERE session_key = ANY(?) AND "
        "(state IN ('ready', 'parked') AND due <= extract(epoch FROM clock_timestamp()) "
        "OR state = 'running' AND worker = ?) RETURNING seq, message, attempt, failures, deaths",
        [worker, sessions, worker],
    )
    return ledger.claims(worker, rows.fetchall())


def _ring_again(db: ledger.LedgerConnection, sessions: Sequence[str]) -> None:
    """Ring for sessions whose bells weren't answered."""
    db.execute("UPDATE inbox SET due = due WHERE session_key = ANY(?) AND state IN ('ready', 'parked')", [sessions])


def _take_over(db: ledger.LedgerConnection, worker: str, jobs: Sequence[int], stalled: float) -> int:
    """Give back the turns of workers without a heartbeat, and ring again where a bell was lost; the number of turns.

    `jobs` are those that `worker`, who asks, knows to be its own.
    """
    beating = "SELECT id FROM procrastinate_workers WHERE last_heartbeat > now() - make_interval(secs => ?)"
    live = [row[0] for row in db.execute(beating, [stalled]).fetchall()]
    taken = db.execute(
        "UPDATE inbox SET state = 'ready', worker = '', due = 0, deaths = deaths + 1 "
        "WHERE state = 'running' AND NOT worker = ANY(?) RETURNING 1",
        [[worker, *map(str, live)]],
    ).fetchall()
    db.execute(  # a job whose row is locked ends just now
        "SELECT procrastinate_retry_job_v2(id, now(), NULL, NULL, NULL) FROM (SELECT id FROM procrastinate_jobs "
        "WHERE queue_name = ? AND status = 'doing' AND (worker_id IS NULL OR NOT worker_id = ANY(?) "
        "OR worker_id::text = ? AND NOT id = ANY(?)) FOR UPDATE SKIP LOCKED) AS lost",
        [QUEUE, live, worker, jobs],
    )
    return len(taken)


class _Connector(BaseAsyncConnector):
    """Procrastinate's way to the server: one connection, which is made again where it breaks.

    While it is `patient` it waits for a server that is away; `database` gets the news of other processes.
    """

    def __init__(self, server: PostgresDatabase, database: Database) -> None:
        self.patient = True
        self._server = server
        self._database = database
        self._db: psycopg.AsyncConnection[Any] | None = None
        self._lock = asyncio.Lock()

    def get_sync_connector(self) -> BaseConnector:
        return self

    async def open_async(self, pool: object = None) -> None:
        pass

    async def close_async(self) -> None:
        if self._db:
            await self._db.close()

    async def execute_query_async(self, query: str, **arguments: Any) -> None:
        with suppress(psycopg.errors.RaiseException):  # a job that is over was rung again, and is another worker's
            await self._execute(query, arguments)

    async def execute_query_one_async(self, query: str, **arguments: Any) -> dict[str, Any]:
        rows = await self.execute_query_all_async(query, **arguments)
        return rows[0]

    async def execute_query_all_async(self, query: str, **arguments: Any) -> list[dict[str, Any]]:
        return await (await self._execute(query, arguments)).fetchall()

    async def _execute(self, query: str, arguments: Mapping[str, Any]) -> psycopg.AsyncCursor[dict[str, Any]]:
        async with self._lock:
            while True:
                try:
                    if self._db is None or self._db.closed:
                        self._db = await self._server.connect_async()
                        await self._db.execute("SET synchronous_commit = off")  # a lost bell is rung again
                    cursor = self._db.cursor(row_factory=dict_row)
                    return await cursor.execute(cast("LiteralString", query), arguments)
                except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                    if not self.patient:
                        raise ConnectorException from error
                    await asyncio.sleep(_RETRY_WAIT)
                except psycopg.errors.RaiseException:
                    raise
                except psycopg.Error as error:
                    raise ConnectorException from error

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """Listen to `channels`, and to the news."""
        own = {NEWS, *map(channel_of, self._database.news)}
        while True:
            try:
                async with await self._server.connect_async() as db:
                    for channel in (*channels, *own):
                        await db.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                    while True:
                        self._database.hear("")  # whatever was missed
                        async for news in db.notifies(timeout=_POLL):
                            if news.channel in own:
                                self._database.hear(news.payload)
                            else:
                                await on_notification(channel=news.channel, payload=news.payload)
                        await db.execute("SELECT 1")
            except psycopg.Error:
                await asyncio.sleep(_RETRY_WAIT)
