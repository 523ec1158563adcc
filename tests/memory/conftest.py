"""The two places of memory: files, and a PostgreSQL database that machines share."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from denizen.memory.note_files import NoteFiles
from denizen.memory.notes import NoteTexts
from denizen.memory.postgres import FactRows, MemoryTables, NoteRows
from denizen.memory.sqlite import FactFile
from denizen.memory.store import FactTable
from denizen.runtime.postgres import PostgresDatabase
from denizen.trusted.session_files import SessionFiles

TableOf = Callable[[str], FactTable]
OpenTexts = Callable[[], NoteTexts]


@pytest.fixture(params=["files", "postgresql"])
def database(request: pytest.FixtureRequest) -> PostgresDatabase | None:
    """Where memory is; None: in files. Each test that asks runs twice."""
    return None if request.param == "files" else PostgresDatabase(request.getfixturevalue("postgres_url"))


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """What is to be closed after the test."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def table_of(database: PostgresDatabase | None, opened: ExitStack, tmp_path: Path) -> TableOf:
    """Opens the facts of a scope, as another process does."""

    def table(scope: str) -> FactTable:
        if database is None:
            return FactFile(tmp_path / scope / "memory.db")
        tables = MemoryTables(database)
        opened.callback(tables.close)
        return FactRows(tables, scope)

    return table


@pytest.fixture
def open_texts(database: PostgresDatabase | None, opened: ExitStack, tmp_path: Path) -> OpenTexts:
    """Opens the notes, as another process does."""

    def texts() -> NoteTexts:
        if database is None:
            return NoteFiles(tmp_path, SessionFiles(tmp_path))
        tables = MemoryTables(database)
        opened.callback(tables.close)
        return NoteRows(tables)

    return texts
