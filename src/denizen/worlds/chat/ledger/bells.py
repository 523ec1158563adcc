"""Workers on a PostgreSQL server: procrastinate wakes them, hands out sessions, and detects dead workers.

A procrastinate job is the bell of a session; the inbox is the truth, so a bell may ring twice and then finds nothing.
The session's key is the job's `lock`, so only one bell of a session rings at a time, in all processes. Turns run inside
their bell: a turn that is running when a bell begins to ring was left by a dead worker.
"""

import asyncio
import hashlib
import json
import logging
import threading
import time
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import psycopg
from procrastinate import App, BaseConnector, BaseRetryStrategy, JobContext, RetryDecision
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException, UniqueViolation
from procrastinate.jobs import Job, JobDeferrer, Status
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from denizen.runtime.cancellation import run_to_completion
from denizen.runtime.clock import BackOff
from denizen.runtime.postgres import PostgresDatabase
from denizen.worlds.chat.ledger import ledger
from denizen.worlds.chat.ledger.database import Database, LedgerError, TurnClaimer, WorkerTiming
from denizen.worlds.chat.ledger.direct_connection import DirectConnection

if TYPE_CHECKING:
    from typing import LiteralString

NEWS = "denizen_news"
"""The channel on which the tables notify all processes; other subjects have their own channels."""
_QUEUE, _NO_QUEUE, _TASK = "denizen", "denizen.none", "denizen.turn"
_RETRY_S = 1.0
"""Seconds between attempts to reach the server."""
_LOCKED_RETRY = BackOff(0.02, 0.02, jitter=1.0)
"""The delay before a session is claimed again whose row another transaction has locked."""
_FALLBACK_DELAY = BackOff(0.5, 0.5, jitter=1.0)
"""The delay before a worker looks for bells that another worker handles first."""
_DAY_S = 86_400.0
_MAX_RUNG_AGAIN = 20
"""Sessions that one check rings for again, in case their bells were lost."""
_CLAIM = """
WITH due AS (
    SELECT seq, session_key FROM inbox WHERE session_key = ANY(?) AND state IN ('ready', 'running', 'parked')
    AND (state = 'running' OR due <= extract(epoch FROM clock_timestamp()))
), free AS (
    SELECT seq FROM inbox WHERE session_key = ANY(?) AND state IN ('ready', 'running', 'parked')
    AND (state = 'running' OR due <= extract(epoch FROM clock_timestamp())) FOR UPDATE SKIP LOCKED
), begun AS (
    UPDATE inbox SET state = 'running', worker = ?, attempt = attempt + 1,
    deaths = deaths + (state = 'running')::integer
    FROM free WHERE inbox.seq = free.seq RETURNING inbox.seq, message, attempt, failures, deaths, followed
)
SELECT session_key, begun.* FROM due FULL JOIN begun USING (seq)
"""
"""Begins the due turns of some sessions, and those that dead workers left. A row without a turn is a session that
another transaction has locked.
"""
_log = logging.getLogger(__name__)


def channel_of(subject: str) -> str:
    """The channel of a subject other than a table."""
    return f"denizen_{subject}"


def _bell(app: App, session_key: str, due: float = 0.0) -> JobDeferrer:
    """The job that rings for a session: now, unless one is already waiting to, or when it is due."""
    if due > time.time():
        # without the lock: a scheduled job would hold up all later jobs of its lock
        return app.configure_task(_TASK, queue=_QUEUE, schedule_at=datetime.fromtimestamp(due, UTC))
    lock = hashlib.blake2s(session_key.encode(), digest_size=12).hexdigest()  # four indexes hold it
    return app.configure_task(_TASK, queue=_QUEUE, lock=lock, queueing_lock=lock)


class BellRinger:
    """Rings bells, from processes with and without a worker."""

    def __init__(self) -> None:
        self._connector = _SyncConnector()
        self._app = App(connector=self._connector)

    def ring(self, db: psycopg.Connection[Any], bells: Iterable[tuple[str, float]]) -> None:
        """Ring for sessions, each at its time."""
        self._connector.db = db
        for session_key, due in bells:
            with suppress(AlreadyEnqueued):
                _bell(self._app, session_key, due).defer(session_key=session_key)


class JobClaimer(TurnClaimer):
    """Claims the turns of sessions whose bells ring."""

    def __init__(self, app: App, database: Database, bell: asyncio.Event) -> None:
        super().__init__()
        self.queues = [_QUEUE]
        self.jobs: set[int] = set()
        self.registered_as: int | None = None
        self.workers: Sequence[int] = ()
        self._app = app
        self._database = database
        self._bell = bell
        self._heard_of = self._looked_at = -1
        self._rung: dict[str, asyncio.Event] = {}
        self._running: dict[str, asyncio.Event] = {}
        self._asked: set[str] = set()
        self._locked: set[str] = set()
        self._mutex = threading.Lock()  # what is rung for is claimed in the ledger's thread

    async def ring(self, context: JobContext, session_key: str) -> None:
        """Have the session's turn claimed; return once it has ended, or at once if there is none."""
        if not context.job.lock:  # it waited for its time
            await self.ring_again(session_key)
            return
        job = context.job.id or 0
        self.jobs.add(job)
        self.registered_as = context.job.worker_id
        with self._mutex:
            over = self._rung.setdefault(session_key, asyncio.Event())
        self._bell.set()
        try:
            await over.wait()
        finally:
            self.jobs.discard(job)

    def is_first_for(self, notification: str) -> bool:
        """Whether this worker should look for the new job first, or doesn't know who should."""
        if self.registered_as not in self.workers:
            return True
        job = json.loads(notification).get("job_id", 0)
        return self.workers[job % len(self.workers)] == self.registered_as

    async def ring_again(self, session_key: str) -> None:
        """Ring for a session by a new job."""
        with suppress(AlreadyEnqueued):
            await _bell(self._app, session_key).defer_async(session_key=session_key)

    def may_claim(self, busy: Collection[str], room: int) -> bool:
        return room > 0 and any(key not in busy for key in self._rung)

    def claim(self, db: ledger.LedgerConnection, busy: Collection[str], now: float, room: int) -> list[ledger.Claim]:
        with self._mutex:
            asked = [key for key in self._rung if key not in busy][:room]
            self._asked = {*asked}
        if not asked:
            return []
        rows = db.execute(_CLAIM, [asked, asked, self.id]).fetchall()
        self._locked = {key for key, seq, *_ in rows if seq is None}
        return ledger.claims(self.id, [row[1:] for row in rows if row[1] is not None])

    def next_due(self, db: ledger.LedgerConnection) -> float | None:
        return None

    def expects_controls(self, claims: Sequence[ledger.Claim]) -> bool:
        self._heard_of = self._database.controls_heard_of
        return self._heard_of != self._looked_at or any(claim.followed for claim in claims)

    def began(self, claims: Sequence[ledger.Claim]) -> None:
        self._looked_at = self._heard_of
        with self._mutex:
            for key in (claim.message.session_key for claim in claims):
                self._running[key] = self._rung.pop(key, None) or asyncio.Event()
            over = [self._rung.pop(key) for key in self._asked - self._locked if key in self._rung]
            self._asked = set()
        for each in over:
            each.set()
        if self._locked:
            asyncio.get_running_loop().call_later(_LOCKED_RETRY.after(1), self._bell.set)

    def ended(self, session_key: str) -> None:
        self._running.pop(session_key).set()

    async def stop_claiming(self) -> None:
        self.queues[:] = [_NO_QUEUE]
        with self._mutex:
            left = {key: self._rung.pop(key) for key in [*self._rung] if key not in self._asked}

        for key in left:
            await self.ring_again(key)
        for over in left.values():
            over.set()


class _RingAgain(BaseRetryStrategy):
    """Rings a bell again that was cut short because its worker stopped or the server was unreachable."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision:
        return RetryDecision(retry_at=datetime.now(UTC) + timedelta(seconds=_RETRY_S if job.lock is None else 0.0))


@asynccontextmanager
async def working(
    server: PostgresDatabase,
    direct: DirectConnection,
    database: Database,
    bell: asyncio.Event,
    *,
    turns: int,
    timing: WorkerTiming,
) -> AsyncGenerator[JobClaimer]:
    """Take part in the work for as long as the block runs: hear bells and news, and take over from dead workers."""
    connector = _Connector(server, direct, database)
    app = App(connector=connector)
    claimer = connector.claimer = JobClaimer(app, database, bell)
    app.task(name=_TASK, pass_context=True, retry=_RingAgain())(claimer.ring)

    async def fetch() -> None:
        while connector.patient:
            with suppress(ConnectorException):
                await app.run_worker_async(
                    queues=claimer.queues,
                    concurrency=turns,
                    fetch_job_polling_interval=timing.poll,
                    abort_job_polling_interval=_DAY_S,
                    shutdown_graceful_timeout=0.0,  # turns aren't part of their jobs
                    delete_jobs="always",
                    install_signal_handlers=False,
                    update_heartbeat_interval=timing.heartbeat,
                    stalled_worker_timeout=timing.stalled,
                )
            if connector.patient:
                _log.warning("Other workers declared this one dead. It registers again.")
                await asyncio.sleep(_RETRY_S)

    async with asyncio.TaskGroup() as tasks:
        work = [tasks.create_task(fetch()), tasks.create_task(_look_after(app, connector, database, claimer, timing))]
        try:
            yield claimer
        finally:
            connector.patient = False
            for task in work:
                task.cancel()
            await asyncio.wait(work)
            with suppress(ConnectorException):  # the worker that takes over notices anyway
                await run_to_completion(claimer.stop_claiming())
            await connector.close_async()


async def _look_after(
    app: App, connector: "_Connector", database: Database, claimer: JobClaimer, timing: WorkerTiming
) -> None:
    """Ring for the turns of dead workers. After an outage, workers first get time to send heartbeats again."""
    began, waited_before = time.monotonic(), set[tuple[int, str]]()
    while True:
        await asyncio.sleep(timing.stalled / 2)
        try:
            found = await database.read(partial(_find_waiting, stalled=timing.stalled))
            claimer.workers = sorted(number for number, key in found if not key)
            waiting, waited_before = waited_before.intersection(found), {*found}
            if time.monotonic() - max(began, connector.failed_at) < timing.stalled:
                continue
            stalled = [
                *await app.job_manager.get_stalled_jobs(queue=_QUEUE, seconds_since_heartbeat=timing.stalled),
                *await _lost_jobs(app, connector, claimer),
            ]
            for job in stalled:
                if job.id not in claimer.jobs:
                    await _replace(app, claimer, job)
            for _, key in sorted(waiting):
                if key:  # a process may have died before it rang
                    await claimer.ring_again(key)
        except (LedgerError, ConnectorException):
            continue


async def _lost_jobs(app: App, connector: "_Connector", claimer: JobClaimer) -> list[Job]:
    """Jobs that this worker was given while its connection broke, and so never received."""
    if connector.failed_at <= connector.looked_at:
        return []
    running = await app.job_manager.list_jobs_async(queue=_QUEUE, status=Status.DOING.value)
    connector.looked_at = time.monotonic()
    return [job for job in running if job.worker_id == claimer.registered_as]


async def _replace(app: App, claimer: JobClaimer, job: Job) -> None:
    """Ring again for the session of a job whose worker died.

    It rings by a new job, because a worker that was only paused will end the old one.
    """
    _log.warning("A worker died. Its turn continues on another worker.")
    await claimer.ring_again(str(job.task_kwargs["session_key"]))
    await app.job_manager.finish_job(job, status=Status.FAILED, delete_job=True)


def _find_waiting(db: ledger.LedgerConnection, stalled: float) -> list[tuple[int, str]]:
    """The messages that have waited longest for a worker, with their session keys, and the ids of live workers."""
    rows = db.execute(  # one statement, because idle processes also send it
        "(SELECT seq, session_key FROM inbox WHERE state IN ('ready', 'parked') "
        "AND due <= extract(epoch FROM now()) ORDER BY due, seq LIMIT ?) UNION ALL "
        "(SELECT id, '' FROM procrastinate_workers WHERE last_heartbeat > now() - make_interval(secs => ?))",
        [_MAX_RUNG_AGAIN, stalled],
    )
    return rows.fetchall()


def _storable(value: Any) -> Any:
    """An argument of procrastinate, converted for psycopg."""
    match value:
        case dict():
            return Jsonb(value)
        case list():
            return [_storable(each) for each in value]
        case tuple():
            return tuple(_storable(each) for each in value)
    return value


def _explained(error: psycopg.Error) -> ConnectorException:
    """The error, as procrastinate expects it."""
    if isinstance(error, psycopg.errors.UniqueViolation):
        return UniqueViolation(constraint_name=error.diag.constraint_name or "", queueing_lock=None)
    return ConnectorException()


class _SyncConnector(BaseConnector):
    """Runs procrastinate's statements on the connection `db`."""

    db: psycopg.Connection[Any]

    def get_sync_connector(self) -> BaseConnector:
        return self

    def execute_query_one(self, query: "LiteralString", **arguments: Any) -> dict[str, Any]:
        return self.execute_query_all(query, **arguments)[0]

    def execute_query_all(self, query: "LiteralString", **arguments: Any) -> list[dict[str, Any]]:
        stored = {name: _storable(value) for name, value in arguments.items()}
        try:
            return self.db.cursor(row_factory=dict_row).execute(query, stored).fetchall()
        except psycopg.errors.UniqueViolation as error:
            raise _explained(error) from error


class _Connector(BaseConnector):
    """Runs procrastinate's statements on one connection, which is replaced when it breaks.

    While it is `patient`, it waits for an unreachable server; `database` gets the news of other processes.
    """

    claimer: JobClaimer

    def __init__(self, server: PostgresDatabase, direct: DirectConnection, database: Database) -> None:
        self.patient = True
        self.failed_at = self.looked_at = float("-inf")
        self._server = server
        self._direct = direct
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
        # the job has been replaced, or another one already waits to ring for the session
        with suppress(psycopg.errors.RaiseException, UniqueViolation):
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
                        if not self._server.is_pooled:  # there, settings don't outlast a transaction
                            await self._db.execute("SET synchronous_commit = off")  # a lost bell is rung again
                    cursor = self._db.cursor(row_factory=dict_row)
                    stored = {name: _storable(value) for name, value in arguments.items()}
                    return await cursor.execute(cast("LiteralString", query), stored)
                except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                    self.failed_at = time.monotonic()
                    if not self.patient:
                        raise ConnectorException from error
                    await asyncio.sleep(_RETRY_S)
                except psycopg.errors.RaiseException:
                    raise
                except psycopg.Error as error:
                    raise _explained(error) from error

    async def listen_notify(self, on_notification: Any, channels: Iterable[str]) -> None:
        """Listen to `channels`, and to the news."""
        own = {NEWS, *map(channel_of, self._database.news)}
        if not self._direct.is_gateway:
            own.discard(channel_of("outbox"))
        is_waiting = False

        async def look_later(channel: str, said: str) -> None:
            nonlocal is_waiting
            await asyncio.sleep(_FALLBACK_DELAY.after(1))
            is_waiting = False
            await on_notification(channel=channel, payload=said)

        async def hear(channel: str, said: str) -> None:
            nonlocal is_waiting
            if channel in own:
                self._database.hear(said)
            elif self.claimer.is_first_for(said):
                await on_notification(channel=channel, payload=said)
            elif not is_waiting:
                is_waiting = True
                tasks.create_task(look_later(channel, said))

        async with asyncio.TaskGroup() as tasks:
            await self._direct.listen({*channels, *own}, hear, lambda: self._database.hear(""))
