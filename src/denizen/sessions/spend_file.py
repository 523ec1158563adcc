"""The file in the home with the sums of what was spent."""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from denizen.errors import DenizenError
from denizen.sessions.home_database import HomeDatabase

_SCHEMA = """
CREATE TABLE IF NOT EXISTS spend (name TEXT PRIMARY KEY, usd REAL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spend_days (name TEXT PRIMARY KEY, day REAL NOT NULL) WITHOUT ROWID;
"""
_READ = "SELECT name, usd FROM spend WHERE name IN (SELECT value FROM json_each(?))"
_ADD = """INSERT INTO spend SELECT key, value FROM json_each(?) WHERE true
          ON CONFLICT (name) DO UPDATE SET usd = usd + excluded.usd"""
_USE = """INSERT INTO spend_days SELECT key, julianday('now') FROM json_each(?) WHERE true
          ON CONFLICT (name) DO UPDATE SET day = excluded.day WHERE day < excluded.day - 1"""
# sums without a day are those of earlier versions: their days begin now
_DATE = "INSERT INTO spend_days SELECT name, julianday('now') FROM spend WHERE true ON CONFLICT DO NOTHING"
_OLD = "SELECT name FROM spend_days WHERE day < julianday('now') - ? LIMIT ?"
_FORGET_SUM = "DELETE FROM spend WHERE name IN (SELECT value FROM json_each(?))"
_FORGET_DAY = "DELETE FROM spend_days WHERE name IN (SELECT value FROM json_each(?))"


class SpendFile:
    """The `Sums` of one machine. The first sum creates the file."""

    is_remote = False

    def __init__(self, path: Path) -> None:
        self._database = HomeDatabase(path, _SCHEMA)

    def read(self, names: Sequence[str]) -> Mapping[str, float]:
        return dict(self._execute(_READ, names) if self._database.path.exists() else ())

    def add(self, sums: Mapping[str, float]) -> None:
        self._execute(_USE, sums)  # first: sums that can't be added are added again later
        self._execute(_ADD, sums)

    def forget(self, days: float, limit: int) -> int:
        if not self._database.path.exists():
            return 0
        self._execute(_DATE)
        old = [name for (name,) in self._execute(_OLD, days, limit)]
        self._execute(_FORGET_SUM, old)
        self._execute(_FORGET_DAY, old)
        return len(old)

    def close(self) -> None:
        self._database.close()

    def _execute(self, statement: str, *values: object) -> list[Any]:
        """Execute a statement; collections are passed as JSON."""
        try:
            plain = [each if isinstance(each, int | float) else msgspec.json.encode(each).decode() for each in values]
            return self._database.execute(statement, plain)
        except (sqlite3.Error, OSError) as error:
            raise DenizenError(
                f"{self._database.path} can't count what calls cost: {error}. "
                "End what holds it, make room, or move the file away."
            ) from error
