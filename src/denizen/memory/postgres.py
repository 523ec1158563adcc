"""Facts and notes in a PostgreSQL database that several machines share."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, LiteralString

from denizen.errors import ConfigError
from denizen.memory.notes import LONG_TERM, MAX_READ
from denizen.memory.store import MAX_FOUND, FactRow
from denizen.ports import Fact
from denizen.runtime.postgres import PostgresDatabase, is_open
from denizen.text.terms import index_terms, matches_prefixes, normalized

if TYPE_CHECKING:
    from psycopg import Connection

_VERSIONS = (
    """
    CREATE TABLE facts (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        scope text NOT NULL,
        key text NOT NULL,
        text text NOT NULL,
        context text NOT NULL,
        weight double precision NOT NULL,
        source text NOT NULL,
        at double precision NOT NULL,
        untrusted boolean NOT NULL,
        words tsvector NOT NULL
    );
    CREATE UNIQUE INDEX facts_key ON facts (scope, md5(key));  -- a whole key may be too long for an index
    CREATE INDEX facts_words ON facts USING gin (words);
    CREATE TABLE vectors (
        fact bigint PRIMARY KEY REFERENCES facts ON DELETE CASCADE, model text NOT NULL, data bytea NOT NULL
    );
    CREATE TABLE notes (name text PRIMARY KEY, text text NOT NULL);
    -- the stem of a term that `index_terms` made; a lexeme has at most 2,046 bytes
    CREATE FUNCTION stem(term text) RETURNS text LANGUAGE sql IMMUTABLE AS
        $$ SELECT coalesce((ts_lexize('pg_catalog.english_stem', left(term, 500)))[1], left(term, 500)) $$;
    """,
)
_ROW: LiteralString = "id, key, text, context, weight, source, at, untrusted"
_KEEP = """
INSERT INTO facts (scope, key, text, context, weight, source, at, untrusted, words)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, (
    SELECT array_to_tsvector(array_agg(stem(term))) FROM unnest(%s::text[]) AS term
))
ON CONFLICT (scope, md5(key)) DO UPDATE SET
    context = CASE excluded.context WHEN '' THEN facts.context ELSE excluded.context END,
    weight = greatest(facts.weight, excluded.weight), source = excluded.source, at = excluded.at,
    untrusted = facts.untrusted OR excluded.untrusted, words = facts.words || excluded.words
RETURNING xmax = 0  -- no transaction has replaced the row before: it is new
"""
_WITH_TERMS = f"""
SELECT {_ROW}, array_agg(term)
FROM unnest(%s::text[], %s::text[]) AS asked (term, sign)
JOIN facts ON words @@ (quote_literal(stem(term)) || sign)::tsquery
WHERE scope = %s GROUP BY id ORDER BY count(*) DESC, id DESC LIMIT %s
"""  # noqa: S608 (the columns are ours)


class MemoryTables:
    """One connection to the database, made when it is needed, which threads use one after the other."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._connection: Connection[tuple[Any, ...]] | None = None
        self._lock = Lock()

    def prepare(self) -> None:
        """Create the tables if they are missing. Raises ConfigError if they can't be used."""
        with self._database.explained(ConfigError):
            self._database.prepare("memory", *_VERSIONS)

    @contextmanager
    def transaction(self) -> "Generator[Connection[tuple[Any, ...]]]":
        """A transaction, whole and durable or not at all. Raises DenizenError when the database refuses."""
        with self._lock, self._database.explained():
            connection = self._working_connection()
            with connection.transaction():
                yield connection

    def fetch(self, statement: LiteralString, values: Sequence[object]) -> list[Any]:
        """The rows of one statement, a transaction by itself. Raises DenizenError when the database refuses."""
        with self._lock, self._database.explained():
            return self._working_connection().execute(statement, values).fetchall()

    def close(self) -> None:
        """Give the connection back; the next transaction makes another."""
        with self._lock:
            if self._connection:
                self._connection.close()

    def _working_connection(self) -> "Connection[tuple[Any, ...]]":
        """The connection, or another where the server has closed it meanwhile."""
        if self._connection and is_open(self._connection):
            return self._connection
        self._database.prepare("memory", *_VERSIONS)
        self._connection = self._database.connect()
        return self._connection


class FactRows:
    """The facts of one `scope`: the user's, or a project's. Raises DenizenError when the database refuses."""

    def __init__(self, tables: MemoryTables, scope: str) -> None:
        self._tables = tables
        self._scope = scope

    def select(self, where: LiteralString, *values: object, limit: int) -> list[FactRow]:
        """The facts for which a condition holds, the latest first."""
        condition = where.replace("?", "%s")
        statement = (
            f"SELECT {_ROW} FROM facts WHERE scope = %s AND {condition} "  # noqa: S608 (ours)
            "ORDER BY at DESC, id DESC LIMIT nullif(%s, -1)"
        )
        return self._fetch(statement, self._scope, *values, limit)

    def keep(self, fact: Fact, at: datetime) -> bool:
        """Keep a fact; whether it is new. The words of its earlier contexts and days find it, too."""
        key, words = normalized(fact.text), index_terms(f"{fact.text} {fact.context} {at:%Y-%m-%d}")
        row = (key, fact.text, fact.context, fact.weight, fact.source, at.timestamp(), fact.untrusted, words)
        [(is_new,)] = self._fetch(_KEEP, self._scope, *row)
        return is_new

    def remove(self, key: str) -> bool:
        """Forget a fact; whether it was known."""
        return bool(self._fetch("DELETE FROM facts WHERE scope = %s AND key = %s RETURNING id", self._scope, key))

    def with_terms(self, terms: Sequence[str]) -> tuple[int, list[tuple[FactRow, frozenset[str]]]]:
        """The number of facts, and those with any of the terms or with words that begin with one."""
        signs = [":*" if matches_prefixes(term) else "" for term in terms]
        found = self._fetch(_WITH_TERMS, [*terms], signs, self._scope, MAX_FOUND)
        [(total,)] = self._fetch("SELECT count(*) FROM facts WHERE scope = %s", self._scope)
        return total, [(row[:-1], frozenset(row[-1])) for row in found]

    def put_vectors(self, model: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Keep what a model makes of facts."""
        statement = (
            "INSERT INTO vectors SELECT id, %s, %s FROM facts WHERE id = %s "  # it may be forgotten meanwhile
            "ON CONFLICT (fact) DO UPDATE SET model = excluded.model, data = excluded.data"
        )
        with self._tables.transaction() as db:
            db.cursor().executemany(statement, [(model, data, number) for number, data in vectors])

    def vectors(self, model: str, limit: int) -> list[tuple[int, bytes]]:
        """What a model makes of the latest facts."""
        statement = (
            "SELECT fact, data FROM vectors JOIN facts ON id = fact "
            "WHERE scope = %s AND model = %s ORDER BY fact DESC LIMIT %s"
        )
        return self._fetch(statement, self._scope, model, limit)

    def _fetch(self, statement: LiteralString, *values: object) -> list[Any]:
        return self._tables.fetch(statement, values)


class NoteRows:
    """The notes of all machines. Raises DenizenError when the database refuses; then nothing has changed."""

    in_workspace = False

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def daily(self) -> list[str]:
        """The names of the daily notes."""
        return [name for (name,) in self._tables.fetch("SELECT name FROM notes WHERE name <> %s", [LONG_TERM])]

    def read(self, names: Sequence[str]) -> list[str]:
        """The texts of notes, empty for those that don't exist."""
        statement = "SELECT name, right(text, %s) FROM notes WHERE name = ANY(%s)"
        texts = dict(self._tables.fetch(statement, [MAX_READ, [*names]]))
        return [texts.get(name, "") for name in names]

    def append(self, name: str, addition: Callable[[str], str]) -> bool:
        """Add to a note."""
        with self._tables.transaction() as db:
            db.execute("INSERT INTO notes VALUES (%s, '') ON CONFLICT DO NOTHING", [name])
            [(kept,)] = db.execute("SELECT right(text, %s) FROM notes WHERE name = %s FOR UPDATE", [MAX_READ, name])
            added = addition(kept)
            db.execute("UPDATE notes SET text = text || %s WHERE name = %s", [added, name])
        return bool(added)

    def remove_lines(self, name: str, says: Callable[[str], bool]) -> bool:
        """Take lines out; whether there was one."""
        with self._tables.transaction() as db:
            lines = [
                line
                for (text,) in db.execute("SELECT text FROM notes WHERE name = %s FOR UPDATE", [name])
                for line in text.splitlines(keepends=True)
            ]
            kept = [line for line in lines if not says(line)]
            if len(kept) < len(lines):
                db.execute("UPDATE notes SET text = %s WHERE name = %s", ["".join(kept), name])
        return len(kept) < len(lines)
