"""The ledger's writer: what waits is written together, and is on the disk when its caller goes on."""

import asyncio
import logging
import queue
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

_MOST = 500
"""Operations in one transaction."""
_NAP = 30.0
"""Seconds after which who waits looks at the time again: a timer stands still while the machine sleeps."""
_RETRY = BackOff(1.0, 10.0, jitter=0.5)
"""Between two tries to write, where the disk or the server refuses."""
_PRUNED = 500
"""Rows that one transaction looks at, or removes: a few milliseconds."""
_PRUNE_PAUSE_S = 0.01
_MAX_CONFLICTS, _CONFLICT = 10, BackOff(0.01, 0.5, jitter=0.5)
"""How often an operation is tried whose rows others change at the same time, and the time between."""
_log = logging.getLogger(__name__)


class LedgerError(DenizenError):
    """The ledger can't be read or written: the disk refuses, or the server is gone.

    Nothing of what was asked has happened; where a server broke off at the very end, all of it may have.
    """


class LedgerConflict(LedgerError):
    """Others changed the same rows at the same time: the same may be written in a moment."""


class LedgerRefused(LedgerError):
    """What was to be written is never taken, by its content or its size."""


class LedgerTaken(LedgerError):
    """Another process has the ledger that this one had for itself: it must end."""


class _Operation(NamedTuple):
    work: Callable[[ledger.LedgerConnection], Any]
    session_key: str
    done: Future[Any]


class WorkerTiming(NamedTuple):
    """Seconds between the heartbeats of a worker, until it counts as dead without one, and between two looks for what
    was due later, or was missed.
    """

    heartbeat: float = 5.0
    stalled: float = 15.0
    poll: float = 3.0


DEFAULT_TIMING = WorkerTiming()


class TurnClaimer(Protocol):
    """Who takes turns for a queue: `claim` within a transaction.

    `busy` are the sessions that have a turn here; at most `room` turns may begin.
    """

    @property
    def id(self) -> str:
        """What the ledger calls it."""

    def may_claim(self, busy: Collection[str], room: int) -> bool:
        """Whether a claim may find anything."""

    def claim(self, db: ledger.LedgerConnection, busy: Collection[str], now: float, room: int) -> list[ledger.Claim]:
        """Begin turns."""

    def next_due(self, db: ledger.LedgerConnection) -> float | None:
        """When to claim again, if no bell rings earlier."""

    def expects_controls(self, claims: Sequence[ledger.Claim]) -> bool:
        """Whether controls may have come since turns last `began` here, or for the turns that begin now."""

    def began(self, claims: Sequence[ledger.Claim]) -> None:
        """What was claimed is written, and begins."""

    def ended(self, session_key: str) -> None:
        """The session's turn here is over."""

    async def stop_claiming(self) -> None:
        """Leave what comes to others. Raises LedgerError."""


class Backend(Protocol):
    """Where the ledger's tables are."""

    @property
    def is_sole(self) -> bool:
        """Whether nobody else writes there. Else sessions are locked in the order of their keys, against deadlocks."""

    def transaction(self) -> AbstractContextManager[ledger.LedgerConnection]:
        """One that is on the disk when the block ends, and undone where that raises: for one thread.

        Raises LedgerError.
        """

    async def read(self, work: Callable[[ledger.LedgerConnection], T]) -> T:
        """What the work finds in what is committed. Raises LedgerError."""

    def worker(self, database: "Database", bell: asyncio.Event, turns: int) -> AbstractAsyncContextManager[TurnClaimer]:
        """A worker that takes so many turns at once; the bell rings when it may claim."""

    def close(self) -> None:
        """Give back what it holds."""


class Database:
    """The ledger. A thread writes: whatever comes before a transaction is over joins it, and shares its sync.

    `bells` ring when something may be due. `news` are called with what another process tells on that subject, or with
    nothing, where it may be anything.
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
        """As `run`, as soon as the disk allows; what has begun is done even where the caller is cancelled.

        So is `then`, which gets the result. Raises LedgerTaken and LedgerRefused.
        """

        async def attempt() -> T:
            result = await self.run(work, session_key)
            then(result)
            return result

        return await self._retry_until_written(lambda: run_to_completion(attempt()))

    async def find(self, work: Callable[[ledger.LedgerConnection], T]) -> T:
        """As `read`, as soon as the disk allows."""
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
            await self._clock.sleep(_RETRY.after(failures))

    async def read(self, work: Callable[[ledger.LedgerConnection], T]) -> T:
        """What the work, which writes nothing, finds in what is committed: it waits for no writer.

        Raises LedgerError, and what `work` raises.
        """
        return await self._backend.read(work)

    async def run(self, work: Callable[[ledger.LedgerConnection], T], session_key: str = "") -> T:
        """Do the work, all of it or nothing; on return it is on the disk. Work that fails is done again, by itself.

        Say which session it changes, if it is one. Raises LedgerError, and what `work` raises.
        """
        done: Future[T] = Future()
        self._waiting.put(_Operation(work, session_key, done))
        return await asyncio.wrap_future(done)

    async def prune(self, keep: float) -> None:
        """Remove what has been over for `keep` seconds: a few rows at a time, so that everybody else writes in between.

        Raises LedgerTaken.
        """
        now = self._clock.now().timestamp()
        number: int | None = 0
        while number is not None:
            after = number
            number = await self.persist(partial(ledger.prune_inbox, now=now, keep=keep, after=after, most=_PRUNED))
            if number and number - after >= _PRUNED:  # there are many
                await self._clock.sleep(_PRUNE_PAUSE_S)
        place: ledger.Place | None = ("", "", 0)
        while place is not None:
            place = await self.persist(partial(ledger.prune_outbox, now=now, keep=keep, after=place, most=_PRUNED))

    def worker(self, bell: asyncio.Event, turns: int) -> AbstractAsyncContextManager[TurnClaimer]:
        """Take so many turns at once for as long as the block runs; the bell rings when one may begin."""
        return self._backend.worker(self, bell, turns)

    def ring(self) -> None:
        """Tell whoever serves that something may be due."""
        for bell in self.bells:
            bell.set()

    def hear(self, news: str) -> None:
        """Tell whoever waits for it: a subject, and what there is to say on it; empty: anything may be new."""
        subject, _, said = news.partition(" ")
        for name, heard in self.news.items():
            if not subject or name == subject:
                heard(said)

    def _hear_of_controls(self, _: str) -> None:
        self.controls_heard_of += 1
        self.ring()

    def close(self) -> None:
        """Finish what waits, and let others use the backend."""
        self._waiting.put(None)
        self._thread.join()
        self._backend.close()

    def _work(self) -> None:
        while (operation := self._waiting.get()) is not None:
            self._commit(operation)

    def _batch(self, first: _Operation) -> Iterable[_Operation]:
        """What shares a transaction: all that waits, and, where nobody else writes, what comes while that is done."""
        if self._backend.is_sole:
            return chain([first], self._arriving())
        return sorted([first, *self._arriving()], key=lambda operation: operation.session_key)

    def _arriving(self) -> Iterator[_Operation]:
        for _ in range(_MOST - 1):
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
        """Do work again whose transaction was undone, until others leave its rows alone."""
        for failures in range(1, _MAX_CONFLICTS + 1):
            try:
                with self._backend.transaction() as db:
                    result = operation.work(db)
            except LedgerConflict as error:
                if failures == _MAX_CONFLICTS:
                    operation.done.set_exception(error)
                    return
                time.sleep(_CONFLICT.after(failures))
            except Exception as error:  # noqa: BLE001 (the caller gets it back)
                operation.done.set_exception(error)
                return
            else:
                operation.done.set_result(result)
                return


async def wait_for_event_or(bell: asyncio.Event, due: float | None, clock: Clock) -> None:
    """Wait until the bell rings, or something is due, in seconds since the epoch (None: nothing is)."""
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
    """Wait until that time, in seconds since the epoch, also where the machine sleeps or its clock is set forward.

    Where the clock is set back, return earlier: the time may be another one now.
    """
    while (rest := due - (before := clock.now().timestamp())) > _NAP:
        await clock.sleep(_NAP)
        if clock.now().timestamp() < before:
            return
    await clock.sleep(max(rest, 0.0))
