"""The ledger in an SQLite file, for one process alone."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

from denizen.config.home import private_folder
from denizen.config.lock_file import lock
from denizen.errors import ConfigError
from denizen.worlds.chat.ledger import ledger
from denizen.worlds.chat.ledger.database import Database, LedgerError, LedgerRefused, T, TurnClaimer
from denizen.worlds.chat.ledger.ledger import LedgerConnection

BUSY = (
    "A gateway is running on this home already (process {holder}). Stop that one first, or choose another home with "
    "$DENIZEN_HOME."
)
"""The error if another process holds the lock."""
_VERSIONS = (
    ledger.SCHEMA.format(serial="INTEGER PRIMARY KEY AUTOINCREMENT"),
    ledger.SCHEMA_2,
    ledger.SCHEMA_3,
    ledger.SCHEMA_4,
)
"""Statements that upgrade the tables from version n to n + 1."""


class SqliteFile:
    """The file at `path`; a second process gets a ConfigError.

    Turns that the last process left running are released.
    """

    is_sole = True

    def __init__(self, path: Path) -> None:
        private_folder(path.parent)
        self._lock = lock(path.with_suffix(".lock"), BUSY)
        self._path = path
        with ExitStack() as opened:
            opened.callback(os.close, self._lock)
            try:
                self._db = self._open()
                opened.callback(self._db.close)
                self._reader = _connect(path)
                opened.callback(self._reader.close)
                self._reader.execute("PRAGMA query_only = ON")
            except sqlite3.Error as error:
                raise ConfigError(
                    f"{path} can't be opened: {error}. Check the disk, or restore a backup. To start with an empty "
                    "ledger, move the file away and pass --new-ledger."
                ) from error
            opened.pop_all()

    def _open(self) -> "_LedgerFile":
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        db = _connect(self._path)
        try:
            db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
            if (flaw := db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise sqlite3.DatabaseError(flaw)
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version > len(_VERSIONS):
                raise ConfigError(f"{self._path} was made by a later version of Denizen. Update Denizen.")
            if version < len(_VERSIONS):
                steps = "".join(_VERSIONS[version:])
                db.executescript(f"BEGIN; {steps} PRAGMA user_version = {len(_VERSIONS)}; COMMIT;")
            ledger.release_dead(db)
        except BaseException:
            db.close()
            raise
        return db

    @contextmanager
    def transaction(self) -> "Generator[_LedgerFile]":
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db
            self._db.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            match error:
                case sqlite3.DataError() | sqlite3.IntegrityError():
                    raise LedgerRefused(f"{self._path} refuses this: {error}.") from error
                case sqlite3.Error():
                    raise LedgerError(
                        f"{self._path} can't be written: {error}. Free some space, or check the disk."
                    ) from error
            raise

    async def read(self, work: Callable[[LedgerConnection], T]) -> T:
        await asyncio.sleep(0)  # a caller that polls must let others run
        try:
            return work(self._reader)  # mostly cached: a thread would take longer
        except sqlite3.Error as error:
            raise LedgerError(f"{self._path} can't be read: {error}. Check the disk.") from error

    @asynccontextmanager
    async def worker(self, database: Database, bell: asyncio.Event, turns: int) -> AsyncGenerator[TurnClaimer]:
        yield TurnClaimer()

    def close(self) -> None:
        self._reader.close()
        self._db.close()
        os.close(self._lock)


class _LedgerFile(sqlite3.Connection):
    """The ledger's connection: alone, it needs no bells and no news."""

    def ring(self, session_key: str, due: float) -> None:
        pass

    def notify(self, subject: str, text: str) -> None:
        pass


def _connect(path: Path) -> _LedgerFile:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=_LedgerFile)
