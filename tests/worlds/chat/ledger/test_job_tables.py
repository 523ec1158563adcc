"""Procrastinate's tables: of this version and of others, whichever is installed."""

from pathlib import Path

import psycopg
import pytest
from procrastinate.schema import SchemaManager

from denizen.errors import ConfigError
from denizen.runtime.postgres import PostgresDatabase
from denizen.worlds.chat.ledger import job_tables


def prepare(url: str) -> None:
    PostgresDatabase(url).prepare("procrastinate", *job_tables.VERSIONS, then=job_tables.migrate)


def migrations(url: str) -> list[str]:
    with psycopg.connect(url) as db:
        return [name for (name,) in db.execute("SELECT name FROM denizen_job_migrations ORDER BY name").fetchall()]


def test_migrations_that_the_tables_have_not_had_are_applied_once(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(postgres_url)
    had = migrations(postgres_url)
    for name in had:
        (tmp_path / name).write_text("SELECT 1 / 0")  # which isn't run again
    (tmp_path / "99.00.00_01_add_colour.sql").write_text("ALTER TABLE procrastinate_jobs ADD COLUMN colour text")
    monkeypatch.setattr(SchemaManager, "get_migrations_path", lambda: str(tmp_path))
    for _ in range(2):
        prepare(postgres_url)
    assert migrations(postgres_url) == [*had, "99.00.00_01_add_colour.sql"]
    with psycopg.connect(postgres_url) as db:
        assert db.execute("SELECT colour FROM procrastinate_jobs").fetchall() == []


def test_tables_of_a_newer_procrastinate_are_refused(postgres_url: str) -> None:
    prepare(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("INSERT INTO denizen_job_migrations VALUES ('99.00.00_01_add_colour.sql')")
    with pytest.raises(ConfigError, match=r"newer procrastinate \(99.00.00_01_add_colour.sql\)"):
        prepare(postgres_url)


def test_tables_of_the_first_version_are_brought_up_to_date(postgres_url: str) -> None:
    PostgresDatabase(postgres_url).prepare("procrastinate", job_tables.VERSIONS[0])
    prepare(postgres_url)
    prepare(postgres_url)
    assert migrations(postgres_url)
