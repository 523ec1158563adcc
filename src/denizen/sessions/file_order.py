"""An index of when each session file of a home was last used; it is rebuilt from the files if it is missing."""

import contextlib
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import msgspec

from denizen.sessions.home_database import HomeDatabase

NAME = "index.db"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (path TEXT PRIMARY KEY, used REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sessions_used ON sessions (used);
CREATE TABLE IF NOT EXISTS folders (name TEXT PRIMARY KEY, changed INTEGER NOT NULL) WITHOUT ROWID;
"""
_USE = "INSERT INTO sessions VALUES (?, ?) ON CONFLICT (path) DO UPDATE SET used = excluded.used"
_ADD = """
INSERT INTO sessions SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?) WHERE true
ON CONFLICT DO NOTHING
"""
_REMOVE = "DELETE FROM sessions WHERE path IN (SELECT value FROM json_each(?))"
_PAGE = """
SELECT path, used FROM sessions WHERE used < ? AND used >= coalesce(
    (SELECT used FROM sessions WHERE used < ? ORDER BY used DESC LIMIT 1 OFFSET ? - 1), -1
) ORDER BY used DESC, path
"""
_CLOCK_STEP_NS = 100_000_000
"""A folder that changed less than this ago may change again without a new time."""
_log = logging.getLogger(__name__)


class FileOrder:
    """The files `AGENT/NAME.jsonl` below `root`, by the time when each was last used.

    Files that other programs add or remove are noticed by the modification time of their folder; `last_used` finds the
    time of a file that isn't in the index. A damaged index is rebuilt; if it can't be written, every file is read.
    """

    def __init__(self, root: Path, last_used: Callable[[Path], float]) -> None:
        self._root = root
        self._last_used = last_used
        self._database = HomeDatabase(root / NAME, _SCHEMA)

    def use(self, path: Path, at: float) -> None:
        """Record that a file was used at that time."""
        with self._logged():
            self._database.execute(_USE, (f"{path.parent.name}/{path.name}", at))

    def page(self, limit: int, before: float) -> Sequence[tuple[Path, float]]:
        """The `limit` files last used before that time, and when; with all those of the last one's moment."""
        if not self._root.exists():
            return []
        with self._logged():
            self._refresh()
            rows = self._database.execute(_PAGE, (before, before, limit))
            return [(self._root / name, used) for name, used in rows]
        files = self._root.glob("*/*.jsonl")
        found = [(path, used) for path in files if (used := self._last_used(path)) < before]
        found.sort(key=lambda each: each[1], reverse=True)
        return found[:limit]

    def _refresh(self) -> None:
        """Add and remove files that changed without this index."""
        seen = dict(self._database.execute("SELECT name, changed FROM folders"))
        with os.scandir(self._root) as entries:
            folders = {entry.name: entry.stat().st_mtime_ns for entry in entries if entry.is_dir()}
        for folder, changed in folders.items():
            if seen.pop(folder, None) == changed:
                continue
            names = {f"{folder}/{name}" for name in os.listdir(self._root / folder) if name.endswith(".jsonl")}  # noqa: PTH208 (thousands)
            known = {name for (name,) in self._in_folder("SELECT path", folder)}
            new = [(name, self._last_used(self._root / name)) for name in names - known]
            self._change(_ADD, new)
            self._change(_REMOVE, [*known - names])
            if time.time_ns() - changed > _CLOCK_STEP_NS:
                self._database.execute("INSERT OR REPLACE INTO folders VALUES (?, ?)", (folder, changed))
        for gone in seen:
            self._in_folder("DELETE", gone)
            self._database.execute("DELETE FROM folders WHERE name = ?", (gone,))

    def _in_folder(self, what: str, folder: str) -> list[tuple[str]]:
        where = "FROM sessions WHERE path >= ? || '/' AND path < ? || '0'"  # '0' follows '/'
        return self._database.execute(f"{what} {where}", (folder, folder))

    def _change(self, statement: str, values: Sequence[object]) -> None:
        if values:
            self._database.execute(statement, [msgspec.json.encode(values).decode()])

    @contextlib.contextmanager
    def _logged(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.OperationalError, OSError) as error:
            _log.info("%s can't be used: %s. Sessions are listed without it.", self._database.path, error)
        except sqlite3.Error as error:
            _log.warning("%s is damaged, and will be rebuilt: %s", self._database.path, error)
            for path in self._root.glob(f"{NAME}*"):
                path.unlink(missing_ok=True)
