"""The file of the home that adds up what was spent."""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from denizen.errors import DenizenError
from denizen.sessions.home_database import HomeDatabase

_SCHEMA = "CREATE TABLE IF NOT EXISTS spend (name TEXT PRIMARY KEY, usd REAL) WITHOUT ROWID"
_READ = "SELECT name, usd FROM spend WHERE name IN (SELECT value FROM json_each(?))"
_ADD = """INSERT INTO spend SELECT key, value FROM json_each(?) WHERE true
          ON CONFLICT (name) DO UPDATE SET usd = usd + excluded.usd"""


class SpendFile:
    """The `Sums` of one machine. The file is made with the first of them."""

    is_remote = False

    def __init__(self, path: Path) -> None:
        self._database = HomeDatabase(path, _SCHEMA)

    def read(self, names: Sequence[str]) -> Mapping[str, float]:
        return dict(self._execute(_READ, names) if self._database.path.exists() else ())

    def add(self, sums: Mapping[str, float]) -> None:
        self._execute(_ADD, sums)

    def close(self) -> None:
        self._database.close()

    def _execute(self, statement: str, values: object) -> list[tuple[str, float]]:
        try:
            return self._database.execute(statement, [msgspec.json.encode(values).decode()])
        except (sqlite3.Error, OSError) as error:
            raise DenizenError(
                f"{self._database.path} can't count what calls cost: {error}. "
                "End what holds it, make room, or move the file away."
            ) from error
