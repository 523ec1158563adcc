"""Procrastinate's tables: made by its schema, and brought up to date by its migrations, each of which runs once."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from procrastinate.schema import SchemaManager

from denizen.errors import ConfigError

if TYPE_CHECKING:
    from typing import LiteralString

    from psycopg import Connection

VERSIONS: tuple["LiteralString", ...] = (
    SchemaManager.get_schema(),
    'CREATE TABLE denizen_job_migrations (name text COLLATE "C" PRIMARY KEY)',
)
_LAST_OF_VERSION_1 = "03.04.00_50_post_add_retry_failed_job_procedure.sql"
"""The last migration of the procrastinate whose schema version 1 was: no database has an older one."""


def migrate(connection: "Connection[Any]", version: int) -> None:
    """Run the migrations that tables of this version (0: they are new) haven't had.

    Raises ConfigError for tables of a procrastinate that is newer than the one installed here.
    """
    files = {path.name: path for path in Path(SchemaManager.get_migrations_path()).glob("*.sql")}
    had = {name for (name,) in connection.execute("SELECT name FROM denizen_job_migrations").fetchall()}
    if version < len(VERSIONS):
        had = {name for name in files if not version or name <= _LAST_OF_VERSION_1}
        _remember(connection, had)
    if unknown := had - files.keys():
        raise ConfigError(
            f"The database's job queue is that of a newer procrastinate ({max(unknown)}). Update it: "
            "pip install --upgrade procrastinate"
        )
    for name in sorted(files.keys() - had):
        connection.execute(cast("LiteralString", files[name].read_text()))
        _remember(connection, {name})


def _remember(connection: "Connection[Any]", names: set[str]) -> None:
    connection.execute("INSERT INTO denizen_job_migrations SELECT unnest(%s::text[])", [[*names]])
