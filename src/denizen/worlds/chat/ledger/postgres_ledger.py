"""The ledger on a PostgreSQL server, for the gateway and any number of workers."""

import asyncio
import functools
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, cast

import psycopg

from denizen.errors import ConfigError
from denizen.runtime.postgres import PostgresDatabase, is_open
from denizen.sessions.tables import SharedTables
from denizen.text.plural import counted
from denizen.worlds.chat.ledger import job_tables, ledger
from denizen.worlds.chat.ledger.bells import NEWS, BellRinger, channel_of, working
from denizen.worlds.chat.ledger.database import (
    DEFAULT_TIMING,
    Database,
    LedgerConflict,
    LedgerError,
    LedgerRefused,
    T,
    TurnClaimer,
    WorkerTiming,
)
from denizen.worlds.chat.ledger.direct_connection import DirectConnection

if TYPE_CHECKING:
    from typing import LiteralString

_MAX_NEWS_CHARS = 1500
"""Characters that fit into a notification in any script."""
_log = logging.getLogger(__name__)
_SETTINGS = """
SET idle_in_transaction_session_timeout = '5s';
SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 2
"""
"""A process that is paused while it writes, or a machine that disappeared, doesn't block others for longer."""
_NEWS = f"""
CREATE FUNCTION denizen_news() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('{NEWS}', TG_TABLE_NAME);
    RETURN NULL;
END $$;
CREATE TRIGGER controls_news AFTER INSERT ON controls FOR EACH STATEMENT EXECUTE FUNCTION denizen_news();
CREATE TRIGGER cron_news AFTER INSERT OR UPDATE OR DELETE ON cron FOR EACH STATEMENT EXECUTE FUNCTION denizen_news();
"""
"""Every process is notified of changes to controls and cron jobs."""
_VERSIONS = (
    cast("LiteralString", ledger.SCHEMA.format(serial="BIGSERIAL PRIMARY KEY") + _NEWS),
    cast(
        "LiteralString",
        ledger.SCHEMA_2
        + "DROP TRIGGER IF EXISTS inbox_ring ON inbox; DROP FUNCTION IF EXISTS denizen_ring();"
        + "DROP TRIGGER IF EXISTS outbox_news ON outbox; DROP FUNCTION IF EXISTS denizen_outbox_news();",
    ),
    ledger.SCHEMA_3,
    ledger.SCHEMA_4,
    # a message's claim and end each add to all indexes: this one had the largest entries
    "DROP INDEX inbox_session; CREATE INDEX inbox_session ON inbox USING hash (session_key);",
)
_STATES: Mapping[str, type[LedgerError]] = {
    "22": LedgerRefused,
    "23": LedgerRefused,
    "54": LedgerRefused,
    "40": LedgerConflict,
    "55P03": LedgerConflict,
}
"""The errors, by the beginning of their SQLSTATE."""


async def notify(tables: SharedTables, subject: str, words: Sequence[str]) -> None:
    """Publish texts on a subject to other processes, in one transaction. Raises SessionError."""
    await tables.fetch(
        "SELECT pg_notify(%(channel)s, %(subject)s || ' ' || said) FROM unnest(%(words)s::text[]) AS said",
        channel=channel_of(subject),
        subject=subject,
        words=[*words],
    )


class PostgresLedger:
    """The tables in the database at `url`. With `sole` for its gateway, of which there can be only one.

    All but one connection go through the pooler at the URL `pooler`, if it is given.

    Raises ConfigError if the database can't be used, has a gateway, or is in use by an earlier version.
    """

    is_sole = False

    def __init__(
        self, url: str, *, pooler: str = "", sole: bool = False, timing: WorkerTiming = DEFAULT_TIMING
    ) -> None:
        direct = PostgresDatabase(url)
        self._server = PostgresDatabase(pooler, is_pooled=True) if pooler else direct
        self._sole = sole
        self._timing = timing
        self._ringer = BellRinger()
        self._readers = ThreadPoolExecutor(1, "denizen-ledger-reader")
        self._reader: psycopg.Connection[tuple[Any, ...]] | None = None
        with direct.explained(ConfigError):
            direct.prepare("ledger", *_VERSIONS, then=self._refuse_earlier_processes)
            direct.prepare("procrastinate", *job_tables.VERSIONS, then=job_tables.migrate)
        self._direct = DirectConnection(direct, is_gateway=sole)
        with ExitStack() as opened, self._server.explained(ConfigError):
            opened.callback(self._direct.close)
            self._db = self._connect()
            opened.pop_all()

    def _refuse_earlier_processes(self, db: psycopg.Connection[tuple[Any, ...]], version: int) -> None:
        """Raises ConfigError while a process of an earlier version, which writes the tables differently, is running."""
        if version in (0, len(_VERSIONS)):
            return
        beating = db.execute(
            "SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > now() - make_interval(secs => %s)",
            [self._timing.stalled],
        ).fetchone()
        if beating and beating[0]:
            raise ConfigError(
                f"{counted(beating[0], 'process')} of an earlier version of Denizen still used the database "
                f"at {self._server.name} within the last {self._timing.stalled:g} s, so its tables stay as they are. "
                "Stop its gateway and its workers, then start this one again."
            )

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        db = self._server.connect()
        if not self._server.is_pooled:
            db.execute(_SETTINGS)
        return db

    @contextmanager
    def transaction(self) -> Generator[ledger.LedgerConnection]:
        with self._server.explained(LedgerError, states=_STATES):
            if self._sole:
                self._direct.renew()
            if not is_open(self._db):
                self._db = self._connect()
            # All statements of a pipeline are one transaction, without BEGIN and COMMIT, and wait for the server only
            # when their rows are read.
            statements = _Statements(self._db)
            with self._db.pipeline():
                try:
                    yield statements
                except BaseException as error:
                    if not isinstance(error, psycopg.Error):
                        self._db.execute("ROLLBACK")
                    raise
        if statements.rung or (statements.notices and not self._sole):
            self._readers.submit(self._announce, statements)

    def _announce(self, statements: "_Statements") -> None:
        """Ring bells and notify other processes; whatever is lost here is found by their periodic checks.

        This isn't part of the transaction, because one that notifies holds a server-wide lock until it is on disk.
        """
        try:
            with self._server.explained(LedgerError):
                self._ringer.ring(self._reading(), statements.rung)
                if statements.notices and not self._sole:  # only the gateway reads the outbox
                    self._reading().execute(
                        "SELECT pg_notify('denizen_' || split_part(notice, ' ', 1), notice) "
                        "FROM unnest(%s::text[]) AS notice",
                        [statements.notices],
                    )
        except LedgerError as error:
            _log.warning("%s Some turns will begin later.", error)

    async def read(self, work: Callable[[ledger.LedgerConnection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, work)

    def _read(self, work: Callable[[ledger.LedgerConnection], T]) -> T:
        with self._server.explained(LedgerError):
            return work(_Statements(self._reading()))

    def _reading(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._reader is None or not is_open(self._reader):
            self._reader = self._server.connect()
            if not self._server.is_pooled:
                self._reader.execute("SET synchronous_commit = off")
        return self._reader

    def worker(self, database: Database, bell: asyncio.Event, turns: int) -> AbstractAsyncContextManager[TurnClaimer]:
        return working(self._server, self._direct, database, bell, turns=turns, timing=self._timing)

    def close(self) -> None:
        self._readers.shutdown()
        if self._reader:
            self._reader.close()
        self._db.close()
        self._direct.close()


class _Statements:
    """The ledger's view of a connection: it collects bells and news for the end of the transaction."""

    def __init__(self, db: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._db = db
        self.rung: list[tuple[str, float]] = []
        self.notices: list[str] = []

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        storable = [each.replace("\0", "�") if isinstance(each, str) else each for each in parameters]
        return self._db.execute(_with_percent(sql), storable)

    def ring(self, session_key: str, due: float) -> None:
        self.rung.append((session_key, due))

    def notify(self, subject: str, text: str) -> None:
        self.notices.append(f"{subject} {text}"[:_MAX_NEWS_CHARS])


@functools.cache
def _with_percent(sql: str) -> "LiteralString":
    return cast("LiteralString", sql.replace("?", "%s"))
