"""Facts in an SQLite file that several processes share."""

import json
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import LiteralString

from denizen.config.home import private_folder
from denizen.config.lock_file import locked
from denizen.errors import DenizenError
from denizen.memory.store import MAX_FOUND, FactRow
from denizen.ports import Fact
from denizen.text.terms import index_terms, matches_prefixes, normalized

VERSION = 2
"""The format of the file that is written, and the newest that is read."""
_BUSY_TIMEOUT_S = 10.0
"""Seconds to wait for another process that writes."""
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS facts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again: who forgets p12 means the p12 that was shown
    key TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL,
    context TEXT NOT NULL,
    weight REAL NOT NULL,
    source TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS vectors (fact INTEGER PRIMARY KEY, model TEXT NOT NULL, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS untrusted (fact INTEGER PRIMARY KEY);
CREATE VIEW IF NOT EXISTS known AS SELECT facts.*, untrusted.fact NOTNULL
    FROM facts LEFT JOIN untrusted ON id = untrusted.fact;
CREATE VIRTUAL TABLE IF NOT EXISTS terms USING fts5(words, tokenize = "porter ascii tokenchars '_'");
PRAGMA user_version = {VERSION};
COMMIT;
"""  # noqa: S608 (the version is ours)
_KEEP = """
INSERT INTO facts (key, text, context, weight, source, at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
    context = iif(excluded.context = '', context, excluded.context),
    weight = max(weight, excluded.weight), source = excluded.source, at = excluded.at
RETURNING id, context
"""


class FactFile:
    """The facts of one file, which is made with the first of them.

    Each operation opens the file again, so that it may be moved away meanwhile. Raises DenizenError when the file is
    damaged, or the disk refuses.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def select(self, where: LiteralString, *values: object, limit: int) -> list[FactRow]:
        """The facts for which a condition holds, the latest first."""
        if not self._path.exists():
            return []
        statement = f"SELECT * FROM known WHERE {where} ORDER BY at DESC, id DESC LIMIT ?"  # noqa: S608 (ours)
        with self._reading() as db:
            return db.execute(statement, (*values, limit)).fetchall()

    def keep(self, fact: Fact, at: datetime) -> bool:
        """Keep a fact, synced to disk; whether it is new."""
        key = normalized(fact.text)
        with self._writing() as db:
            known = db.execute("SELECT 1 FROM facts WHERE key = ?", (key,)).fetchone()
            row = (key, fact.text, fact.context, fact.weight, fact.source, at.timestamp())
            number, context = db.execute(_KEEP, row).fetchone()
            if fact.untrusted:
                db.execute("INSERT OR IGNORE INTO untrusted VALUES (?)", (number,))
            words = " ".join(index_terms(f"{fact.text} {context} {at:%Y-%m-%d}"))
            db.execute("INSERT OR REPLACE INTO terms (rowid, words) VALUES (?, ?)", (number, words))
            return known is None

    def remove(self, key: str) -> bool:
        """Forget a fact; whether it was known."""
        if not self._path.exists():
            return False
        with self._writing() as db:
            row = db.execute("DELETE FROM facts WHERE key = ? RETURNING id", (key,)).fetchone()
            if row:
                db.execute("DELETE FROM terms WHERE rowid = ?", row)
                db.execute("DELETE FROM vectors WHERE fact = ?", row)
                db.execute("DELETE FROM untrusted WHERE fact = ?", row)
            return row is not None

    def with_terms(self, terms: Sequence[str]) -> tuple[int, list[tuple[FactRow, frozenset[str]]]]:
        """The number of facts, and those with any of the terms or with words that begin with one."""
        if not self._path.exists():
            return 0, []
        with self._reading() as db:
            hits: dict[int, set[str]] = {}
            for term in terms:
                match = f'"{term}"*' if matches_prefixes(term) else f'"{term}"'  # quoted, so that nothing is a sign
                for (number,) in db.execute("SELECT rowid FROM terms WHERE words MATCH ?", (match,)):
                    hits.setdefault(number, set()).add(term)
            best = sorted(hits, key=lambda number: (len(hits[number]), number), reverse=True)[:MAX_FOUND]
            (total,) = db.execute("SELECT count(*) FROM facts").fetchone()
            chosen = "SELECT * FROM known WHERE id IN (SELECT value FROM json_each(?))"
            rows = db.execute(chosen, (json.dumps(best),)).fetchall()
            return total, [(row, frozenset(hits[row[0]])) for row in rows]

    def put_vectors(self, model: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Keep what a model makes of facts."""
        with self._writing() as db:
            rows = [(number, model, data) for number, data in vectors]
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    def vectors(self, model: str, limit: int) -> list[tuple[int, bytes]]:
        """What a model makes of the latest facts."""
        if not self._path.exists():
            return []
        latest = "SELECT fact, data FROM vectors WHERE model = ? ORDER BY fact DESC LIMIT ?"
        with self._reading() as db:
            return db.execute(latest, (model, limit)).fetchall()

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        with self._reading() as db:
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        try:
            private_folder(self._path.parent)
            with locked(
                self._path.with_suffix(".lock")
            ):  # several that enter WAL mode at once fail, whatever they wait
                db = self._connect()
            with closing(db):
                yield db
        except (sqlite3.Error, OSError) as error:
            advice = f"can't be used: {error}. Make room, or end what holds it."
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                advice = f"is damaged: {error}. Move it away to start over; `sqlite3 FILE .recover` may bring it back."
            raise DenizenError(f"{self._path} {advice}") from error

    def _connect(self) -> sqlite3.Connection:
        self._path.touch(mode=0o600)
        db = sqlite3.connect(self._path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
        try:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version > VERSION:
                raise DenizenError(f"{self._path} was written by a newer Denizen: update this one.")
            if version < VERSION:
                db.execute("PRAGMA journal_mode = WAL")
                db.executescript(_SCHEMA)
            db.execute("PRAGMA synchronous = FULL")
        except BaseException:
            db.close()
            raise
        return db
