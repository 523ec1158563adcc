"""The ledger's SQLite file: what waits is written together, and is on the disk when its caller goes on."""

import asyncio
import fcntl
import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from denizen.cancellation import run_to_completion
from denizen.clock import Clock
from denizen.config.home import private_folder
from denizen.errors import ConfigError, DenizenError
from denizen.worlds.chat import ledger

T = TypeVar("T")

_MOST = 500
"""Operations in one transaction."""
_DISK_WAIT = 1.0
"""Seconds between two tries to write."""
_LOCK_TRIES, _LOCK_WAIT = 10, 0.05
"""How often a lock is tried that whoever asks for the gateway may hold for a moment, and the seconds in between."""
_SERIAL = "INTEGER PRIMARY KEY AUTOINCREMENT"
_log = logging.getLogger(__name__)


class LedgerError(DenizenError):
    """The ledger can't be read or written: the disk refuses. Nothing of what was asked has happened."""


class _Operation(NamedTuple):
    work: Callable[[ledger.Connection], Any]
    done: Future[Any]


class Database:
    """The file at `path`, for this process alone: another one is refused with a ConfigError.

    A thread writes. Whatever waits meanwhile goes into one transaction, so that a sync is shared by all of it.
    Turns that the last process left running are given back. `bells` ring when something may be due.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        private_folder(path.parent)
        self._lock = _locked(path.with_suffix(".lock"))
        self._clock = clock
        self.bells: set[asyncio.Event] = set()
        self._path = path
        self._waiting: queue.SimpleQueue[_Operation | None] = queue.SimpleQueue()
        try:
            self._db = self._open()
        except sqlite3.Error as error:
            os.close(self._lock)
            raise ConfigError(f"{path} can't be opened: {error}. Look at the disk, or put a backup there.") from error
        except BaseException:
            os.close(self._lock)
            raise
        self._thread = threading.Thread(target=self._work, name="denizen-ledger", daemon=True)
        self._thread.start()

    def _open(self) -> sqlite3.Connection:
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version > ledger.VERSION:
                raise ConfigError(f"{self._path} was made by a later version of Denizen. Update Denizen.")
            if not version:
                schema = ledger.SCHEMA.format(serial=_SERIAL)
                db.executescript(f"BEGIN; {schema} PRAGMA user_version = {ledger.VERSION}; COMMIT;")
            ledger.release_dead(db)
        except BaseException:
            db.close()
            raise
        return db

    async def persist(self, work: Callable[[ledger.Connection], T]) -> T:
        """As `run`, as soon as the disk allows; what has begun is done even where the caller is cancelled."""
        while True:
            try:
                return await run_to_completion(self.run(work))
            except LedgerError as error:
                _log.error("%s Trying again.", error)
                await self._clock.sleep(_DISK_WAIT)

    async def run(self, work: Callable[[ledger.Connection], T]) -> T:
        """Do the work, all of it or nothing; on return it is on the disk.

        Raises LedgerError, and what `work` raises.
        """
        done: Future[T] = Future()
        self._waiting.put(_Operation(work, done))
        return await asyncio.wrap_future(done)

    def ring(self) -> None:
        """Tell whoever serves that something may be due."""
        for bell in self.bells:
            bell.set()

    def close(self) -> None:
        """Finish what waits, and let other processes use the file."""
        self._waiting.put(None)
        self._thread.join()
        self._db.close()
        os.close(self._lock)

    def _work(self) -> None:
        while (operation := self._waiting.get()) is not None:
            batch: list[_Operation] = [operation]
            closing = False
            with suppress(queue.Empty):
                while len(batch) < _MOST and not closing:
                    following = self._waiting.get_nowait()
                    closing = following is None
                    batch += [following] if following else []
            self._commit([each for each in batch if each.done.set_running_or_notify_cancel()])
            if closing:
                return

    def _commit(self, batch: list[_Operation]) -> None:
        results: list[tuple[Future[Any], Any]] = []
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for work, done in batch:
                self._db.execute("SAVEPOINT operation")
                try:
                    results.append((done, work(self._db)))
                except sqlite3.Error:
                    raise
                except Exception as error:  # noqa: BLE001 (the caller's own: it gets it back, and the others go on)
                    self._db.execute("ROLLBACK TO operation")
                    done.set_exception(error)
                self._db.execute("RELEASE operation")
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            why = LedgerError(f"{self._path} can't be written: {error}. Free some space, or look at the disk.")
            for each in batch:
                if not each.done.done():
                    each.done.set_exception(why)
            return
        for done, result in results:
            done.set_result(result)


async def bell_or_due(bell: asyncio.Event, due: float | None, clock: Clock) -> None:
    """Wait until the bell rings, or something is due, in seconds since the epoch (None: nothing is)."""
    if due is None or due == float("inf"):
        await bell.wait()
        return
    rest = due - clock.now().timestamp()
    ringing, timer = asyncio.ensure_future(bell.wait()), asyncio.ensure_future(clock.sleep(max(rest, 0.0)))
    try:
        await asyncio.wait((ringing, timer), return_when=asyncio.FIRST_COMPLETED)
    finally:
        ringing.cancel()
        timer.cancel()


def _locked(path: Path) -> int:
    """A descriptor that holds the lock file, which names this process."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for _ in range(_LOCK_TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.pwrite(descriptor, str(os.getpid()).ljust(20).encode(), 0)
            return descriptor
        time.sleep(_LOCK_WAIT)
    holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
    os.close(descriptor)
    raise ConfigError(
        f"A gateway is running on this home already (process {holder}). Stop that one first, or choose another home "
        "with $DENIZEN_HOME."
    )


def is_locked(path: Path) -> bool:
    """Whether a process has the database at `path` open."""
    try:
        descriptor = os.open(path.with_suffix(".lock"), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
