"""Facts in an SQLite file that several processes share: each kept once, found by its terms."""

import json
import math
import sqlite3
import struct
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from denizen.clock import Clock
from denizen.config.home import private_folder
from denizen.errors import DenizenError
from denizen.memory.terms import index_terms, matches_prefixes, normalized
from denizen.ports import Fact

VERSION = 2
"""The format of the file that is written, and the newest that is read."""
MAX_FOUND = 500
"""Facts of a file that one search weighs against each other: those with most of its terms."""
_PATIENCE = 10.0
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

Vector = tuple[float, ...]
_Row = tuple[int, str, str, str, float, str, float, int]


@dataclass(frozen=True, slots=True)
class FoundFact:
    """A fact, and those of the terms that were looked for that it has."""

    fact: Fact
    terms: frozenset[str]


class FactStore:
    """The facts of one file, which is made with the first of them; their ids begin with `prefix`.

    Each operation opens the file again, so that it may be moved away meanwhile. Raises DenizenError when the file is
    damaged, or the disk refuses.
    """

    def __init__(self, path: Path, prefix: str, clock: Clock) -> None:
        self.path = path
        self.prefix = prefix
        self._clock = clock

    def add(
        self, text: str, *, context: str = "", weight: float = 0.5, source: str = "", untrusted: bool = False
    ) -> bool:
        """Keep a fact, synced to disk; whether it is new. One that is there already becomes the latest, and weightier.

        The same in other cases or with other white space is the same. What was `untrusted` once stays so.
        """
        now = self._clock.now().timestamp()
        with self._writing() as db:
            known = db.execute("SELECT 1 FROM facts WHERE key = ?", (normalized(text),)).fetchone()
            row = (normalized(text), text, context, weight, source, now)
            number, context = db.execute(_KEEP, row).fetchone()
            if untrusted:
                db.execute("INSERT OR IGNORE INTO untrusted VALUES (?)", (number,))
            words = " ".join(index_terms(f"{text} {context} {self._clock.now():%Y-%m-%d}"))
            db.execute("INSERT OR REPLACE INTO terms (rowid, words) VALUES (?, ?)", (number, words))
            return known is None

    def remove(self, text: str) -> bool:
        """Forget a fact; whether it was known."""
        if not self.path.exists():
            return False
        with self._writing() as db:
            row = db.execute("DELETE FROM facts WHERE key = ? RETURNING id", (normalized(text),)).fetchone()
            if row:
                db.execute("DELETE FROM terms WHERE rowid = ?", row)
                db.execute("DELETE FROM vectors WHERE fact = ?", row)
                db.execute("DELETE FROM untrusted WHERE fact = ?", row)
            return row is not None

    def by_id(self, fact_id: str) -> Fact | None:
        """The fact of that id."""
        number = fact_id.removeprefix(self.prefix)
        if number == fact_id or not (number.isascii() and number.isdigit() and len(number) < 19):
            return None
        return next(iter(self._select("SELECT * FROM known WHERE id = ?", int(number))), None)

    def by_text(self, text: str) -> Fact | None:
        """The fact of that text."""
        return next(iter(self._select("SELECT * FROM known WHERE key = ?", normalized(text))), None)

    def latest(self, limit: int = -1) -> list[Fact]:
        """The facts that were said last, the latest first; all of them unless limited."""
        return self._select("SELECT * FROM known ORDER BY at DESC, id DESC LIMIT ?", limit)

    def with_terms(self, terms: Sequence[str]) -> tuple[int, list[FoundFact]]:
        """How many facts there are, and those with any of the terms, or words that begin with one."""
        if not self.path.exists():
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
            return total, [FoundFact(self._fact(row), frozenset(hits[row[0]])) for row in rows]

    def containing(self, text: str, limit: int) -> list[Fact]:
        """The facts that contain the text as it is, the latest first."""
        statement = "SELECT * FROM known WHERE instr(key, ?) ORDER BY at DESC, id DESC LIMIT ?"
        return self._select(statement, normalized(text), limit)

    def without_vector(self, model: str, limit: int) -> list[Fact]:
        """The latest facts that a model hasn't seen yet."""
        unseen = (
            "SELECT * FROM known WHERE id NOT IN (SELECT fact FROM vectors WHERE model = ?) ORDER BY id DESC LIMIT ?"
        )
        return self._select(unseen, model, limit)

    def put_vectors(self, model: str, vectors: Sequence[tuple[Fact, Vector]]) -> None:
        """Keep what the model makes of facts: vectors of length 1."""
        if not vectors:
            return
        with self._writing() as db:
            rows = [
                (int(fact.id.removeprefix(self.prefix)), model, struct.pack(f"{len(vector)}f", *vector))
                for fact, vector in vectors
            ]
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    def similarities(self, model: str, vector: Vector, limit: int) -> dict[str, float]:
        """The cosines between a vector of the model's and those of the latest facts that it has seen, by their ids."""
        if not self.path.exists():
            return {}
        size = struct.Struct(f"{len(vector)}f")
        with self._reading() as db:
            latest = "SELECT fact, data FROM vectors WHERE model = ? ORDER BY fact DESC LIMIT ?"
            return {
                f"{self.prefix}{number}": 1 - math.dist(vector, size.unpack(data)) ** 2 / 2
                for number, data in db.execute(latest, (model, limit))
                if len(data) == size.size
            }

    def _select(self, statement: str, *values: object) -> list[Fact]:
        if not self.path.exists():
            return []
        with self._reading() as db:
            return [self._fact(row) for row in db.execute(statement, values)]

    def _fact(self, row: _Row) -> Fact:
        number, _, text, context, weight, source, at, untrusted = row
        when = datetime.fromtimestamp(at, UTC)
        return Fact(text, f"{self.prefix}{number}", context, weight, source, when, bool(untrusted))

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        with self._reading() as db:
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        try:
            with closing(self._connect()) as db:
                yield db
        except (sqlite3.Error, OSError) as error:
            advice = f"can't be used: {error}. Make room, or end what holds it."
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                advice = f"is damaged: {error}. Move it away to start over; `sqlite3 FILE .recover` may bring it back."
            raise DenizenError(f"{self.path} {advice}") from error

    def _connect(self) -> sqlite3.Connection:
        private_folder(self.path.parent)
        self.path.touch(mode=0o600)
        db = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
        try:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version > VERSION:
                raise DenizenError(f"{self.path} was written by a newer Denizen: update this one.")
            if version < VERSION:
                db.execute("PRAGMA journal_mode = WAL")
                db.executescript(_SCHEMA)
            db.execute("PRAGMA synchronous = FULL")
        except BaseException:
            db.close()
            raise
        return db
