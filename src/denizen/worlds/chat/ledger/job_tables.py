"""Creates procrastinate's tables from its schema, and runs each of its migrations once."""

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
"""The last migration that version 1 of our tables contained; no database has an older one."""


def migrate(connection: "Connection[Any]", version: int) -> None:
    """Run the migrations that tables of this version (0: new ones) lack.

    Raises ConfigError if the tables belong to a newer procrastinate than the installed one.
    """
    files = {path.name: path for path in Path(SchemaManager.get_migrations_path()).glob("*.sql")}
    had = {name for (name,) in connection.execute("SELECT name FROM denizen_job_migrations").fetchall()}
    if version < len(VERSIONS):
        had = {name for name in files if not version or name <= _LAST_OF_VERSION_1}
        _remember(connection, had)
    if unknown := had - files.keys():
        raise ConfigError(
            f"The database's job queue belongs to a newer procrastinate ({max(unknown)}). Update it: "
            "pip install --upgrade procrastinate"
        )
    for name in sorted(files.keys() - had):
        connection.execute(cast("LiteralString", files[name].read_text()))
        _remember(connection, {name})


def _remember(connection: "Connection[Any]", names: set[str]) -> None:
    connection.execute("INSERT INTO denizen_job_migrations SELECT unnest(%s::text[])", [[*names]])
