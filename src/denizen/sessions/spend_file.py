"""The file of the home that adds up what was spent."""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from denizen.config.lock_file import locked
from denizen.errors import DenizenError
from denizen.sessions.file import identity, is_at

PATIENCE = 5.0
"""Seconds to wait for another process that writes."""

_ADD = """INSERT INTO spend SELECT key, value FROM json_each(?) WHERE true
          ON CONFLICT (name) DO UPDATE SET usd = usd + excluded.usd"""


class SpendFile:
    """The `Sums` of one machine. The file is made with the first of them.

    Where it is removed or replaced, counting goes on in the one that is there.
    """

    is_remote = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._is = (0, 0)  # which file that is

    def read(self, names: Sequence[str]) -> Mapping[str, float]:
        query = "SELECT name, usd FROM spend WHERE name IN (SELECT value FROM json_each(?))"
        return dict(self._execute(query, names) if self._path.exists() else ())

    def add(self, sums: Mapping[str, float]) -> None:
        self._execute(_ADD, sums)

    def close(self) -> None:
        if self._db:
            self._db.close()
            self._db = None

    def _execute(self, statement: str, values: object) -> list[tuple[str, float]]:
        try:
            if self._db and not is_at(str(self._path), self._is):
                self.close()
            db = self._db or self._connect()
            return db.execute(statement, [msgspec.json.encode(values).decode()]).fetchall()
        except (sqlite3.Error, OSError) as why:
            self.close()  # the user may put another in its place
            raise DenizenError(
                f"{self._path} can't count what calls cost: {why}. End what holds it, make room, or move the file away."
            ) from why

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(self._path.with_suffix(".lock")):  # several that enter WAL mode at once fail, whatever they wait
            self._path.touch(mode=0o600)
            self._is = identity(self._path.stat())
            # an agent may go on in the event loop of another thread
            self._db = sqlite3.connect(self._path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")  # written, not synced: a call must not wait for the disk
            self._db.execute("CREATE TABLE IF NOT EXISTS spend (name TEXT PRIMARY KEY, usd REAL) WITHOUT ROWID")
        return self._db
