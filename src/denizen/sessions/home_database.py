"""SQLite files of the home that many short-lived processes share: derived data, and sums."""

import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from denizen.config.lock_file import locked
from denizen.sessions.file import identity, is_at

TIMEOUT_S = 5.0
"""Seconds to wait while another process writes."""

Result = TypeVar("Result")


class HomeDatabase:
    """A database that is created on first use, readable by the user alone.

    If the file is removed or replaced, the next statement uses the new one. The connection is closed by `close`, or
    with the last reference. Threads take turns. Raises sqlite3.Error and OSError.
    """

    def __init__(self, path: Path, schema: str) -> None:
        self.path = path
        self._schema = schema
        self._identity = (0, 0)
        self._lock = threading.RLock()  # a connection that is closed while another thread uses it crashes Python
        self._db: sqlite3.Connection | None = None
        self._closing: weakref.finalize[..., Any] | None = None

    def execute(self, statement: str, values: Iterable[object] = ()) -> list[Any]:
        """Execute and commit a statement; its rows."""
        return self._with(lambda db: db.execute(statement, tuple(values)).fetchall())

    def transact(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Do the work in one transaction: all of it or nothing is written."""

        def transaction(db: sqlite3.Connection) -> Result:
            with db:
                db.execute("BEGIN IMMEDIATE")
                return work(db)

        return self._with(transaction)

    def _with(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        with self._lock:
            try:
                if self._db and not is_at(str(self.path), self._identity):
                    self.close()
                return work(self._db or self._connect())
            except (sqlite3.Error, OSError):
                self.close()  # the user may put another file in its place
                raise

    def close(self) -> None:
        """Close the connection; the next statement opens another."""
        with self._lock:
            if self._closing:
                self._closing()
            self._db = self._closing = None

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(self.path.with_suffix(".lock")):  # of several that enter WAL mode at once, all but one fail
            self.path.touch(mode=0o600)
            self._identity = identity(self.path.stat())
            # an agent may go on in the event loop of another thread
            db = sqlite3.connect(self.path, timeout=TIMEOUT_S, isolation_level=None, check_same_thread=False)
            self._db, self._closing = db, weakref.finalize(self, db.close)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")  # written, not synced: a call must not wait for the disk
            db.executescript(self._schema)
        return db
