"""A PostgreSQL database: its connections, the versions of our tables, and errors with advice."""

import contextlib
import select
from collections.abc import Callable, Generator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, LiteralString

from denizen.config.extras import how_to_install
from denizen.errors import ConfigError, DenizenError

if TYPE_CHECKING:
    from psycopg import AsyncConnection, Connection

_DEFAULTS: dict[str, Any] = {
    "application_name": "denizen",
    "client_encoding": "UTF8",
    "connect_timeout": 10,  # seconds
    "tcp_user_timeout": 15_000,  # milliseconds until a machine that fell silent counts as gone
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    # a process that is paused within a transaction must not hold up the others for ever
    "options": "-c idle_in_transaction_session_timeout=15s -c statement_timeout=30s",
}
_ADVICE = {
    "25006": "It can only be read: give the address of the primary.",
    "42501": "Grant its user the right, or start Denizen once as the owner of the database.",
    "42P01": "Its tables were removed while Denizen was running: start Denizen again.",
    "53100": "Free some space there; what was written before is safe.",
    "53300": "Raise its max_connections, or start fewer workers.",
}
_LASTING = ("21", "22", "23", "42601", "42703", "42804", "54")
"""Beginnings of SQLSTATEs for statements that will always fail, because of their data, form or size."""
_UNREACHABLE = "Check that it is running, and that its URL is right."
_ONE_AT_A_TIME = 0x64656E697A656E
"""The advisory lock of the process that creates tables."""


def is_open(connection: "Connection[Any]") -> bool:
    """Whether an idle connection still works. If the server has sent something, it may have closed it."""
    from psycopg import OperationalError

    if not connection.closed:
        said = select.poll()
        said.register(connection.fileno(), select.POLLIN)
        if said.poll(0):
            with contextlib.suppress(OperationalError):
                connection.execute("")
    return not connection.closed


class PostgresDatabase:
    """The database at a URL, `postgresql://user:password@host:port/name`.

    What the URL leaves out is taken from the environment, as `psql` does. Connections commit each statement by itself
    unless a transaction is begun. With `is_pooled` the URL is that of a pooler that shares connections between
    transactions, so session settings and prepared statements don't persist. Raises ConfigError if psycopg is missing,
    or the URL is invalid.
    """

    def __init__(self, url: str, *, is_pooled: bool = False) -> None:
        try:
            from psycopg import ProgrammingError
            from psycopg.conninfo import conninfo_to_dict, make_conninfo
        except ImportError as missing:
            raise ConfigError(
                f"PostgreSQL needs a package that is not installed: {how_to_install('postgres')}"
            ) from missing
        found: dict[str, Any] = {}
        with contextlib.suppress(ProgrammingError):  # it quotes the password
            found = conninfo_to_dict(url)
        host, port, name = (str(found.get(part) or "") for part in ("host", "port", "dbname"))
        is_port = not port or port.replace(",", "").isdecimal()
        if not found or not is_port or "@" in host + name:
            raise ConfigError(
                "The URL of the database isn't one. Its form is postgresql://user:password@host:port/name; in the "
                "password, @ is written %40, / is %2F, and % is %25."
            )
        self.name = f"{host or 'localhost'}:{port or 5432}/{name}"
        """Its name in messages: host, port and database, without user and password."""
        self.is_pooled = is_pooled
        defaults = {name: value for name, value in _DEFAULTS.items() if name != "options" or not is_pooled}
        self._address = make_conninfo("", **defaults | found)
        self._prepare_after = None if is_pooled else 5  # times that a statement was sent
        self._prepared: set[str] = set()

    def connect(self) -> "Connection[tuple[Any, ...]]":
        """A new connection. Raises psycopg's errors, which `explained` puts into words."""
        import psycopg

        return psycopg.connect(self._address, autocommit=True, prepare_threshold=self._prepare_after)

    async def connect_async(self) -> "AsyncConnection[tuple[Any, ...]]":
        """A new connection, for the event loop that runs. Raises psycopg's errors."""
        import psycopg

        return await psycopg.AsyncConnection.connect(
            self._address, autocommit=True, prepare_threshold=self._prepare_after
        )

    def prepare(
        self,
        part: str,
        *versions: LiteralString,
        then: "Callable[[Connection[tuple[Any, ...]], int], None]" = lambda *_: None,
    ) -> None:
        """Create or upgrade the tables of `part`: statement n upgrades them from version n to n + 1.

        `then` gets the version found, in the same transaction. Only the first call for a part checks. Raises
        psycopg's errors, and ConfigError if the tables belong to a newer Denizen, or the database can't store all
        text.
        """
        if part in self._prepared:
            return
        with self.connect() as connection, connection.transaction():
            encoding = connection.info.parameter_status("server_encoding")
            if encoding != "UTF8":
                raise ConfigError(
                    f"The database at {self.name} can't hold every text: its encoding is {encoding}. Create one with "
                    "`createdb --encoding=UTF8 --template=template0 NAME`."
                )
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_ONE_AT_A_TIME])
            # asked for first: IF NOT EXISTS needs the right to create tables even if there is nothing to create
            if connection.execute("SELECT to_regclass('denizen_versions') IS NULL").fetchall() == [(True,)]:
                connection.execute("CREATE TABLE denizen_versions (part text PRIMARY KEY, version integer NOT NULL)")
            found = connection.execute("SELECT version FROM denizen_versions WHERE part = %s", [part]).fetchone()
            version = found[0] if found else 0
            if version > len(versions):
                raise ConfigError(
                    f"The database at {self.name} was written by a newer Denizen ({part}, version {version}; this one "
                    f"knows {len(versions)}). Update Denizen."
                )
            for statement in versions[version:]:
                connection.execute(statement)
            if version < len(versions):
                connection.execute(
                    "INSERT INTO denizen_versions VALUES (%s, %s) "
                    "ON CONFLICT (part) DO UPDATE SET version = excluded.version",
                    [part, len(versions)],
                )
            then(connection, version)
        self._prepared.add(part)

    @contextlib.contextmanager
    def explained(
        self,
        kind: type[DenizenError] = DenizenError,
        *,
        unavailable: type[DenizenError] | None = None,
        states: Mapping[str, type[DenizenError]] = MappingProxyType({}),
    ) -> Generator[None]:
        """Turns psycopg's errors into one of this kind, which names the database and says what to do.

        Temporary ones (the database is unreachable, full or locked) become `unavailable`. The keys of `states` are
        beginnings of SQLSTATEs that become other errors.
        """
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            what = " ".join((error.diag.message_primary or str(error)).split()).rstrip(".?")
            advice = "" if error.sqlstate else _UNREACHABLE
            advice = _ADVICE.get(error.sqlstate or "", advice)
            if unavailable and (not error.sqlstate or not error.sqlstate.startswith(_LASTING)):
                kind = unavailable
            kind = next((each for begin, each in states.items() if (error.sqlstate or "").startswith(begin)), kind)
            raise kind(f"The database at {self.name}: {what}. {advice}".rstrip()) from error
