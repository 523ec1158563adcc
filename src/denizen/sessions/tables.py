"""The tables of sessions and budgets in a PostgreSQL database, and the connections to them."""

import asyncio
import contextlib
import functools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, LiteralString

from denizen.errors import ConfigError, SessionError, SessionUnavailable
from denizen.runtime.postgres import PostgresDatabase

if TYPE_CHECKING:
    from psycopg import Connection

_MAX_CONNECTIONS = 4
"""Connections of a process; a statement takes less than a millisecond of one, or a sync of the server's disk."""
_VERSIONS: tuple[LiteralString, ...] = (
    """
    CREATE TABLE sessions (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- never used again, unlike the key of a removed session
        key text COLLATE "C" NOT NULL UNIQUE,
        fence bigint NOT NULL DEFAULT 1,  -- how often it was opened: who writes names it
        holder text NOT NULL,
        held_until timestamptz,
        entries bigint NOT NULL DEFAULT 0,
        info json NOT NULL
    ) WITH (fillfactor = 50);  -- its rows change with every entry
    CREATE TABLE entries (
        session bigint REFERENCES sessions ON DELETE CASCADE,
        seq bigint,
        line bytea NOT NULL,
        PRIMARY KEY (session, seq)
    );
    CREATE TABLE spend (name text COLLATE "C" PRIMARY KEY, usd double precision NOT NULL);
    """,
    """
    ALTER TABLE sessions ADD COLUMN used double precision NOT NULL DEFAULT 0;  -- seconds since the epoch
    UPDATE sessions SET used = (info->>'updated')::double precision;
    CREATE INDEX sessions_used ON sessions (used);
    ALTER TABLE spend ADD COLUMN at timestamptz NOT NULL DEFAULT now();  -- when something was added last
    """,
    # An append has locked its session already: a foreign key locks, and logs, it once more.
    """
    ALTER TABLE entries DROP CONSTRAINT entries_session_fkey;
    CREATE FUNCTION denizen_remove_entries() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN DELETE FROM entries WHERE session = OLD.id; RETURN NULL; END';
    CREATE TRIGGER sessions_entries AFTER DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION denizen_remove_entries();
    """,
    # The search index, derived from the entries up to number `searched.seq`
    """
    CREATE TABLE searched (
        session bigint PRIMARY KEY, seq bigint NOT NULL, began double precision NOT NULL, last double precision NOT NULL
    );
    CREATE TABLE said (
        session bigint, entry text, role text NOT NULL, at double precision NOT NULL, text text NOT NULL,
        terms tsvector NOT NULL, PRIMARY KEY (session, entry)
    );
    CREATE INDEX said_terms ON said USING gin (terms);
    CREATE TABLE spent (
        session bigint, entry text, at double precision NOT NULL, model text NOT NULL, calls bigint NOT NULL,
        retries bigint NOT NULL, errors bigint NOT NULL, input bigint NOT NULL, output bigint NOT NULL,
        cache_read bigint NOT NULL, cache_write bigint NOT NULL, cost_usd double precision NOT NULL,
        seconds double precision NOT NULL, PRIMARY KEY (session, entry)
    );
    CREATE INDEX spent_at ON spent (at);
    CREATE OR REPLACE FUNCTION denizen_remove_entries() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN
        DELETE FROM entries WHERE session = OLD.id;
        DELETE FROM searched WHERE session = OLD.id;
        DELETE FROM said WHERE session = OLD.id;
        DELETE FROM spent WHERE session = OLD.id;
        RETURN NULL;
    END';
    """,
)


class SharedTables:
    """The tables of sessions and budgets in the database at a URL, by a few connections."""

    def __init__(self, url: str, *, is_pooled: bool = False) -> None:
        self._database = PostgresDatabase(url, is_pooled=is_pooled)
        self._threads = ThreadPoolExecutor(_MAX_CONNECTIONS, "denizen-postgres")
        self._idle: list[Connection[tuple[Any, ...]]] = []
        self._unused = 0

    def prepare(self) -> None:
        """Create or upgrade the tables. Raises ConfigError if they can't be used."""
        with self._database.explained(ConfigError):
            self._database.prepare("sessions", *_VERSIONS)

    def close_unused(self) -> None:
        """Close connections that weren't used since the last call."""
        unused, self._unused = self._unused, len(self._idle)
        for _ in range(unused):
            with contextlib.suppress(IndexError):
                self._idle.pop(0).close()

    async def fetch(self, statement: LiteralString, /, **values: object) -> list[Any]:
        """Execute a statement; its rows. If the connection turns out to be broken, it is executed once more.

        Raises SessionUnavailable while the database can't, SessionError for data that it will always refuse, and
        ConfigError if its tables belong to a newer Denizen.
        """
        work = functools.partial(self.fetch_now, statement, **values)
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Close the connections; the next statement opens a new one."""
        idle, self._idle = self._idle, list["Connection[tuple[Any, ...]]"]()
        for connection in idle:
            connection.close()

    def fetch_now(self, statement: LiteralString, /, **values: object) -> list[Any]:
        """As `fetch`, for a thread that may wait."""
        from psycopg import OperationalError

        idle = self._idle
        with self._database.explained(SessionError, unavailable=SessionUnavailable):
            with contextlib.suppress(IndexError, OperationalError):
                connection = idle.pop()
                self._unused = min(self._unused, len(idle))
                return self._fetch_by(connection, idle, statement, values)
            self._database.prepare("sessions", *_VERSIONS)
            connection = self._database.connect()
            if not self._database.is_pooled:
                connection.execute("SET synchronous_commit = off")
            return self._fetch_by(connection, idle, statement, values)

    def _fetch_by(
        self,
        connection: "Connection[tuple[Any, ...]]",
        idle: "list[Connection[tuple[Any, ...]]]",
        statement: LiteralString,
        values: dict[str, object],
    ) -> list[Any]:
        try:
            cursor = connection.execute(statement, values, binary=True)
            rows = cursor.fetchall() if cursor.description else []
        except BaseException:
            connection.close()
            raise
        if idle is self._idle:
            idle.append(connection)
        else:  # closed meanwhile
            connection.close()
        return rows
