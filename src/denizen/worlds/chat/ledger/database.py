"""The ledger's writer: pending operations share a transaction, which is on disk before their callers go on."""

import asyncio
import logging
import queue
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol, TypeVar

from denizen.errors import DenizenError
from denizen.runtime.cancellation import run_to_completion
from denizen.runtime.clock import BackOff, Clock
from denizen.worlds.chat.ledger import ledger

T = TypeVar("T")

_MAX_BATCH = 500
"""Operations in one transaction."""
_MAX_SLEEP_S = 30.0
"""Longest wait before the time is read again: timers stop while the machine sleeps."""
_WRITE_RETRIES = BackOff(1.0, 10.0, jitter=0.5)
"""Delays between attempts to write while the disk or the server fails."""
_PRUNE_ROWS = 500
"""Rows that one transaction of a clean-up reads or removes, in a few milliseconds."""
_PRUNE_PAUSE_S = 0.01
_MAX_CONFLICTS, _CONFLICT_RETRIES = 10, BackOff(0.01, 0.5, jitter=0.5)
"""Attempts at an operation whose rows others change at the same time, and the delays between them."""
_log = logging.getLogger(__name__)


class LedgerError(DenizenError):
    """The ledger can't be read or written: the disk or the server fails.

    The operation had no effect, unless the server failed while it committed: then it may be complete.
    """


class LedgerConflict(LedgerError):
    """Others changed the same rows at the same time: a retry may succeed."""


class LedgerRefused(LedgerError):
    """The database will never accept this data, because of its content or size."""


class LedgerTaken(LedgerError):
    """Another process has taken over the ledger of this gateway, which must end."""


class _Operation(NamedTuple):
    work: Callable[[ledger.LedgerConnection], Any]
    session_key: str
    done: Future[Any]


class WorkerTiming(NamedTuple):
    """In seconds: the interval of a worker's heartbeats, the silence after which it counts as dead, and the interval at
    which it looks for delayed and missed work.
    """

    heartbeat: float = 5.0
    stalled: float = 15.0
    poll: float = 3.0


DEFAULT_TIMING = WorkerTiming()


class TurnClaimer:
    """Claims turns for a queue: if it is the only worker, whatever is due. `id` is its name in the ledger.

    `busy` are the sessions with a turn in this queue; at most `room` turns may begin. `claim` runs in a transaction.
    """

    def __init__(self) -> None:
        self.id = secrets.token_hex(8)

    def may_claim(self, busy: Collection[str], room: int) -> bool:
        """Whether a claim may find a turn."""
        return room > 0

    def claim(self, db: ledger.LedgerConnection, busy: Collection[str], now: float, room: int) -> list[ledger.Claim]:
        """Begin turns."""
        return ledger.claim(db, self.id, now, room)

    def next_due(self, db: ledger.LedgerConnection) -> float | None:
        """When to claim again, if no bell rings earlier."""
        return ledger.next_due(db)

    def expects_controls(self, claims: Sequence[ledger.Claim]) -> bool:
        """Whether controls may have arrived since the last call of `began`, or wait for the turns of these claims."""
        return True  # reading them costs a single worker nothing

    def began(self, claims: Sequence[ledger.Claim]) -> None:
        """Note that the claims are committed and their turns begin."""

    def ended(self, session_key: str) -> None:
        """Note that the session's turn has ended."""

    async def stop_claiming(self) -> None:
        """Leave further turns to other workers. Raises LedgerError."""


class Backend(Protocol):
    """Where the ledger's tables are."""

    @property
    def is_sole(self) -> bool:
        """Whether this process is the only writer. Otherwise sessions are locked in the order of their keys, to avoid
        deadlocks.
        """

    def transaction(self) -> AbstractContextManager[ledger.LedgerConnection]:
        """A transaction that is on disk when the block ends, and rolled back if it raises. For one thread.

        Raises LedgerError.
        """

    async def read(self, work: Callable[[ledger.LedgerConnection], T]) -> T:
        """Run `work`, which only reads committed data, and return its result. Raises LedgerError."""

    def worker(self, database: "Database", bell: asyncio.Event, turns: int) -> AbstractAsyncContextManager[TurnClaimer]:
        """A worker for up to `turns` concurrent turns; `bell` is set when it may claim."""

    def close(self) -> None:
        """Close its connections."""


class Database:
    """The ledger. One thread writes; operations that arrive during a transaction join it and share its sync.

    `bells` are set when something may be due. `news` are called, by subject, with the text that another process
    published, or with an empty text if anything may have changed.
    """

    def __init__(self, backend: Backend, clock: Clock) -> None:
        self._backend = backend
        self._clock = clock
        self.bells: set[asyncio.Event] = set()
        self.news: dict[str, Callable[[str], None]] = {"controls": self._hear_of_controls}
        self.controls_heard_of = 0
        self._waiting: queue.SimpleQueue[_Operation | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="denizen-ledger", daemon=True)
        self._thread.start()

    async def persist(
        self,
        work: Callable[[ledger.LedgerConnection], T],
        then: Callable[[T], None] = lambda _: None,
        *,
        session_key: str = "",
    ) -> T:
        """As `run`, repeated until the disk allows it. An operation that has begun completes even if the caller is
        cancelled, and so does `then`, which gets its result.

        Raises LedgerTaken and LedgerRefused.
        """

        async def attempt() -> T:
            result = await self.run(work, session_key)
            then(result)
            return result

        return await self._retry_until_written(lambda: run_to_completion(attempt()))

    async def find(self, work: Callable[[ledger.LedgerConnection], T]) -> T:
        """As `read`, repeated until the disk allows it."""
        return await self._retry_until_written(lambda: self.read(work))

    async def _retry_until_written(self, attempt: Callable[[], Awaitable[T]]) -> T:
        failures = 0
        while True:
            try:
                return await attempt()
            except (LedgerTaken, LedgerRefused):
                raise
            except LedgerError as error:
                _log.error("%s Trying again.", error)
            failures += 1
            await self._clock.sleep(_WRITE_RETRIES.after(failures))

    async def read(self, work: Callable[[ledger.LedgerConnection], T]) -> T:
        """Run `work`, which only reads committed data, and return its result. It doesn't wait for writers.

        Raises LedgerError, and the errors of `work`.
        """
        return await self._backend.read(work)

    async def run(self, work: Callable[[ledger.LedgerConnection], T], session_key: str = "") -> T:
        """Run `work` in a transaction that is on disk on return. If a shared transaction fails, it is repeated alone.

        `session_key` names the session that it changes, if it is a single one. Raises LedgerError, and the errors of
        `work`.
        """
        done: Future[T] = Future()
        self._waiting.put(_Operation(work, session_key, done))
        return await asyncio.wrap_future(done)

    async def prune(self, keep: float) -> None:
        """Remove rows that have been over for `keep` seconds, a few at a time, so that others can write in between.

        Raises LedgerTaken.
        """
        now = self._clock.now().timestamp()
        number: int | None = 0
        while number is not None:
            after = number
            number = await self.persist(partial(ledger.prune_inbox, now=now, keep=keep, after=after, most=_PRUNE_ROWS))
            if number and number - after >= _PRUNE_ROWS:  # there are many
                await self._clock.sleep(_PRUNE_PAUSE_S)
        place: ledger.Place | None = ("", "", 0)
        while place is not None:
            place = await self.persist(partial(ledger.prune_outbox, now=now, keep=keep, after=place, most=_PRUNE_ROWS))

    def worker(self, bell: asyncio.Event, turns: int) -> AbstractAsyncContextManager[TurnClaimer]:
        """Run up to `turns` turns at once for as long as the block runs; `bell` is set when one may begin."""
        return self._backend.worker(self, bell, turns)

    def ring(self) -> None:
        """Wake the queues: something may be due."""
        for bell in self.bells:
            bell.set()

    def hear(self, news: str) -> None:
        """Pass on news from another process: a subject and a text, or nothing if anything may have changed."""
        subject, _, said = news.partition(" ")
        for name, heard in self.news.items():
            if not subject or name == subject:
                heard(said)

    def _hear_of_controls(self, _: str) -> None:
        self.controls_heard_of += 1
        self.ring()

    def close(self) -> None:
        """Finish the pending operations, and close the backend."""
        self._waiting.put(None)
        self._thread.join()
        self._backend.close()

    def _work(self) -> None:
        while (operation := self._waiting.get()) is not None:
            self._commit(operation)

    def _batch(self, first: _Operation) -> Iterable[_Operation]:
        """The operations of a transaction: all pending ones and, for a sole writer, those that arrive during it."""
        if self._backend.is_sole:
            return chain([first], self._arriving())
        return sorted([first, *self._arriving()], key=lambda operation: operation.session_key)

    def _arriving(self) -> Iterator[_Operation]:
        for _ in range(_MAX_BATCH - 1):
            try:
                operation = self._waiting.get_nowait()
            except queue.Empty:
                return
            if operation is None:
                self._waiting.put(None)  # it ends the thread, after this transaction
                return
            yield operation

    def _commit(self, first: _Operation) -> None:
        left, batch, results = iter(self._batch(first)), list[_Operation](), list[Any]()
        try:
            with self._backend.transaction() as db:
                for operation in left:
                    if operation.done.set_running_or_notify_cancel():
                        batch.append(operation)
                        results.append(operation.work(db))
        except Exception as error:  # noqa: BLE001 (the caller's own, too: it gets it back, and the others go on)
            taken = islice(left, 0 if batch else 1) if self._backend.is_sole else left
            batch += [each for each in taken if each.done.set_running_or_notify_cancel()]
            is_one_operation = isinstance(error, LedgerConflict | LedgerRefused) or not isinstance(error, LedgerError)
            for each in batch:
                if is_one_operation:
                    self._commit_alone(each)
                else:
                    each.done.set_exception(error)
            return
        for operation, result in zip(batch, results, strict=True):
            operation.done.set_result(result)

    def _commit_alone(self, operation: _Operation) -> None:
        """Repeat an operation whose transaction was rolled back, until no conflict is left."""
        for failures in range(1, _MAX_CONFLICTS + 1):
            try:
                with self._backend.transaction() as db:
                    result = operation.work(db)
            except LedgerConflict as error:
                if failures == _MAX_CONFLICTS:
                    operation.done.set_exception(error)
                    return
                time.sleep(_CONFLICT_RETRIES.after(failures))
            except Exception as error:  # noqa: BLE001 (the caller gets it back)
                operation.done.set_exception(error)
                return
            else:
                operation.done.set_result(result)
                return


async def wait_for_event_or(bell: asyncio.Event, due: float | None, clock: Clock) -> None:
    """Wait until the bell is set, or until `due`, in seconds since the epoch (None: only for the bell)."""
    if due is None or due == float("inf"):
        await bell.wait()
        return
    ringing, timer = asyncio.ensure_future(bell.wait()), asyncio.ensure_future(sleep_until(due, clock))
    try:
        await asyncio.wait((ringing, timer), return_when=asyncio.FIRST_COMPLETED)
    finally:
        ringing.cancel()
        timer.cancel()


async def sleep_until(due: float, clock: Clock) -> None:
    """Wait until `due`, in seconds since the epoch, even if the machine sleeps or its clock is set forward.

    If the clock is set back, return early: the due time may have changed.
    """
    while (rest := due - (before := clock.now().timestamp())) > _MAX_SLEEP_S:
        await clock.sleep(_MAX_SLEEP_S)
        if clock.now().timestamp() < before:
            return
    await clock.sleep(max(rest, 0.0))
