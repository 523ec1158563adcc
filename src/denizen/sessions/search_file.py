"""The search index in the home, `search.db`, derived from the transcripts."""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from denizen.entries import header_of
from denizen.errors import DenizenError
from denizen.sessions.codec import decode_entries
from denizen.sessions.home_database import HomeDatabase
from denizen.sessions.key import SessionKey, key_of
from denizen.sessions.search_index import (
    FoundSession,
    IndexProgress,
    UsageBy,
    UsageRow,
    found_session,
    read_entries,
    searched_terms,
    terms_of,
)

_SCHEMA = """
PRAGMA secure_delete = ON;  -- overwrites removed sessions
CREATE TABLE IF NOT EXISTS transcripts (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, session TEXT NOT NULL, channel TEXT NOT NULL,
    profile TEXT NOT NULL, inode INTEGER NOT NULL, size INTEGER NOT NULL, began REAL NOT NULL, last REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS said (
    id INTEGER PRIMARY KEY, transcript INTEGER NOT NULL, entry TEXT NOT NULL, role TEXT NOT NULL, at REAL NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS said_transcript ON said (transcript);
CREATE VIRTUAL TABLE IF NOT EXISTS terms
    USING fts5(words, content = '', detail = none, tokenize = "ascii tokenchars '_'");
CREATE TABLE IF NOT EXISTS spent (
    transcript INTEGER NOT NULL, entry TEXT NOT NULL, at REAL NOT NULL, model TEXT NOT NULL, calls INTEGER NOT NULL,
    retries INTEGER NOT NULL, errors INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL, cost_usd REAL NOT NULL, seconds REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS spent_transcript ON spent (transcript);
CREATE INDEX IF NOT EXISTS spent_at ON spent (at);
"""
_FIND = """
SELECT session,
    coalesce((SELECT text FROM said AS first WHERE transcript = found.transcript AND role = 'user' LIMIT 1), ''),
    entry, role, at, text, hits
FROM (SELECT max(id) AS id, count(*) AS hits FROM said WHERE id IN (SELECT rowid FROM terms WHERE terms MATCH ?)
      GROUP BY transcript) AS latest
JOIN said AS found USING (id) JOIN transcripts ON transcripts.id = transcript ORDER BY at DESC LIMIT ?
"""
_USAGE = """
SELECT date(at + ?, 'unixepoch') AS day, {by} AS name, sum(calls), sum(retries), sum(errors), sum(input), sum(output),
    sum(cache_read), sum(cache_write), sum(cost_usd), sum(seconds)
FROM spent JOIN transcripts ON transcripts.id = transcript WHERE at >= ? GROUP BY day, name ORDER BY day, name
"""
_SPEND = "INSERT INTO spent VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_FILES_AT_ONCE = 500
"""Files that are read in one transaction."""
_COLUMNS: Mapping[UsageBy, str] = {"model": "model", "channel": "channel", "session": "session", "profile": "profile"}


class SearchFile:
    """The `SearchIndex` of the transcripts `AGENT/NAME.jsonl` below `root`.

    Every query first indexes new entries. A missing or damaged file is rebuilt.
    """

    def __init__(self, root: Path, path: Path) -> None:
        self._root = root
        self._database = HomeDatabase(path, _SCHEMA)

    def find(self, words: str, limit: int) -> Sequence[FoundSession]:
        match = " ".join(f'"{term}"{"*" if is_prefix else ""}' for term, is_prefix in searched_terms(words))
        rows = self._query(_FIND, match, limit) if match else ()
        return [found_session(key, first, said, hits, words) for key, first, *said, hits in rows]

    def usage(self, since: float, utc_offset: float, by: UsageBy) -> Sequence[UsageRow]:
        return [UsageRow(*row) for row in self._query(_USAGE.format(by=_COLUMNS[by]), utc_offset, since)]

    def purge_removed(self) -> None:
        """Delete removed sessions from the index now, and all traces of their words from its file."""
        if self._database.path.exists():
            self._query("INSERT INTO terms (terms) VALUES ('optimize')")  # deleted terms stay in the file until then
            self._query("PRAGMA wal_checkpoint(TRUNCATE)")

    def _query(self, statement: str, *values: object) -> list[Any]:
        def query() -> list[Any]:
            self._update()
            return self._database.execute(statement, values)

        try:
            try:
                return query()
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:  # damaged
                self._database.close()
                for path in self._database.path.parent.glob(f"{self._database.path.name}*"):
                    path.unlink(missing_ok=True)
                return query()
        except (sqlite3.Error, OSError) as error:
            raise DenizenError(
                f"{self._database.path} can't be searched: {error}. Stop what uses it, free disk space, or delete it."
            ) from error

    def _update(self) -> None:
        """Index entries added to the transcripts, and delete transcripts that are gone."""
        rows = self._database.execute("SELECT path, inode, size FROM transcripts")
        known = {path: (inode, size) for path, inode, size in rows}
        changed = list[str]()
        for path, state in self._files():
            if known.pop(path, None) != state:
                changed.append(path)
        changed += known
        for first in range(0, len(changed), _FILES_AT_ONCE):
            paths = changed[first : first + _FILES_AT_ONCE]
            self._database.transact(lambda db, paths=paths: [self._index(db, path) for path in paths])

    def _files(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """The transcripts, each with its inode and size."""
        if not self._root.is_dir():
            return
        with os.scandir(self._root) as folders:
            for folder in folders:
                if not folder.is_dir():
                    continue
                with os.scandir(folder) as files:
                    for file in files:
                        if file.name.endswith(".jsonl"):
                            with suppress(FileNotFoundError):  # removed meanwhile
                                stat = file.stat()
                                yield f"{folder.name}/{file.name}", (stat.st_ino, stat.st_size)

    def _index(self, db: sqlite3.Connection, path: str) -> None:
        """Index the new lines of a transcript, or all lines if the file was replaced."""
        row = db.execute("SELECT id, inode, size, began, last FROM transcripts WHERE path = ?", [path]).fetchone()
        try:
            with (self._root / path).open("rb") as file:
                stat = os.fstat(file.fileno())
                if row and (row[1] != stat.st_ino or row[2] > stat.st_size):
                    _delete(db, row[0])
                    row = None
                start = row[2] if row else 0
                file.seek(start)
                data = file.read()
        except FileNotFoundError:
            if row:
                _delete(db, row[0])
            return
        entries = [*decode_entries(data[: data.rfind(b"\n") + 1].splitlines())]
        if row is None:
            header = header_of(entries)
            key = key_of(self._root / path) or header.key
            channel = SessionKey.parse(key).channel if key else ""
            id_ = db.execute(
                "INSERT INTO transcripts (path, session, channel, profile, inode, size, began, last) "
                "VALUES (?, ?, ?, ?, ?, 0, 0, 0) RETURNING id",
                [path, key, channel, header.profile, stat.st_ino],
            ).fetchone()[0]
            progress = IndexProgress()
        else:
            id_, progress = row[0], IndexProgress(*row[3:])
        said, spent, progress = read_entries(entries, progress)
        for each in said:
            values = [id_, each.entry, each.role, each.at, each.text]
            number = db.execute("INSERT INTO said VALUES (NULL, ?, ?, ?, ?, ?)", values).lastrowid
            db.execute("INSERT INTO terms (rowid, words) VALUES (?, ?)", [number, each.terms])
        db.executemany(_SPEND, [(id_, *each) for each in spent])
        size = start + data.rfind(b"\n") + 1
        db.execute("UPDATE transcripts SET size = ?, began = ?, last = ? WHERE id = ?", [size, *progress, id_])


def _delete(db: sqlite3.Connection, transcript: int) -> None:
    for number, text in db.execute("SELECT id, text FROM said WHERE transcript = ?", [transcript]).fetchall():
        db.execute("INSERT INTO terms (terms, rowid, words) VALUES ('delete', ?, ?)", [number, terms_of(text)])
    db.execute("DELETE FROM said WHERE transcript = ?", [transcript])
    db.execute("DELETE FROM spent WHERE transcript = ?", [transcript])
    db.execute("DELETE FROM transcripts WHERE id = ?", [transcript])
