"""The SQLite file of an index: several processes may open it at once; a damaged or outdated one is replaced."""

import os
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from denizen.config.home import private_folder
from denizen.config.lock_file import locked
from denizen.errors import ToolRefused
from denizen.structure.languages import QUERIES

T = TypeVar("T")

BUSY_TIMEOUT_S = 30.0
"""Seconds to wait for another process that writes."""
FORMAT = 1
"""Raise it when the same source gives another outline or measure, for reasons other than its queries."""
_SCHEMA = """
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, language TEXT NOT NULL,
    size INTEGER NOT NULL, mtime INTEGER NOT NULL, inode INTEGER NOT NULL,
    lines INTEGER NOT NULL, problems INTEGER NOT NULL, generated INTEGER NOT NULL, note TEXT NOT NULL
);
CREATE TABLE symbols (
    file INTEGER NOT NULL REFERENCES files ON DELETE CASCADE, number INTEGER NOT NULL,
    name TEXT NOT NULL, kind TEXT NOT NULL, path TEXT NOT NULL, depth INTEGER NOT NULL, line INTEGER NOT NULL,
    first INTEGER NOT NULL, last INTEGER NOT NULL, start INTEGER NOT NULL, attributed INTEGER NOT NULL,
    declared INTEGER NOT NULL, end INTEGER NOT NULL,
    signature TEXT NOT NULL, doc TEXT NOT NULL,
    PRIMARY KEY (file, number)
) WITHOUT ROWID;
CREATE INDEX symbols_by_name ON symbols (name COLLATE NOCASE);
CREATE TABLE refs (
    file INTEGER NOT NULL REFERENCES files ON DELETE CASCADE, number INTEGER NOT NULL,
    name TEXT NOT NULL, kind TEXT NOT NULL, line INTEGER NOT NULL, symbol INTEGER NOT NULL,
    PRIMARY KEY (file, number)
) WITHOUT ROWID;
CREATE INDEX refs_by_name ON refs (name);
CREATE TABLE measures (
    file INTEGER NOT NULL REFERENCES files ON DELETE CASCADE, what TEXT NOT NULL, measure BLOB NOT NULL,
    PRIMARY KEY (file, what)
) WITHOUT ROWID;
"""
_CORRUPTION_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def with_database(path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """The result of `work` with the open file; a damaged file is replaced, and the work done again.

    Raises ToolRefused when the disk refuses, or another process writes for too long.
    """
    private_folder(path.parent)
    try:
        try:
            return _use(path, work)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _CORRUPTION_CODES:
                raise
            with locked(path.with_suffix(".lock")):
                _erase(path)
            return _use(path, work)
    except sqlite3.Error as error:
        raise ToolRefused(f"the code index {path} can't be used: {error}; if this persists, delete it") from error


def _use(path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    try:
        with locked(path.with_suffix(".lock")):
            database = _open(path)
    except OSError as error:
        raise sqlite3.OperationalError(error.strerror) from error
    with closing(database):
        return work(database)


def _open(path: Path) -> sqlite3.Connection:
    """The file with our tables. Its version covers the tables and queries; one made with others is replaced."""
    checksum = zlib.crc32(f"{FORMAT}{_SCHEMA}".encode())
    for file in sorted(QUERIES.glob("*.scm")):
        checksum = zlib.crc32(file.read_bytes(), checksum)
    version = checksum % (2**31 - 1) + 1
    for _ in range(2):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        database = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        try:
            database.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON")
            found = database.execute("PRAGMA user_version").fetchone()[0]
            if not found:
                database.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {version}; COMMIT;")
            if found in {0, version}:
                return database
        except BaseException:  # reraised: the connection must not stay open
            database.close()
            raise
        database.close()
        _erase(path)
    raise sqlite3.OperationalError("another version of Denizen uses it")


def _erase(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).unlink()
