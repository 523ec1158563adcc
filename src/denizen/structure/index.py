"""The index of a project: the symbols and references of all its files; only files that changed are parsed again."""

import re
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from denizen.structure.database import with_database
from denizen.structure.languages import language_of
from denizen.structure.outline import MAX_BYTES, Outline, Symbol, SymbolReference, outline
from denizen.structure.parser import Unparsable

T = TypeVar("T")

BATCH_FILES = 100
"""Files per transaction; an interrupted refresh keeps those already written."""

HEAD_BYTES = 1000
"""Bytes at the beginning of a file that may say that it was generated."""

Stamp = tuple[int, int, int]
"""The version of a file: size in bytes, last change in ns, inode."""


class SourceFile(NamedTuple):
    """A file of the project as it is now. `path` is relative to the project; `read` returns its text as UTF-8.

    `read` is called before the next file is asked for, if at all. It returns None for binary data, and may raise
    OSError.
    """

    path: str
    stamp: Stamp
    read: Callable[[], bytes | None]


class IndexedFile(NamedTuple):
    """The index's record of a file. `problems` counts places that break the grammar; `note`: why it isn't parsed.

    `generated`: the file says that a program made it.
    """

    path: str
    language: str
    bytes: int
    lines: int
    problems: int
    generated: int
    note: str


class Located(NamedTuple):
    """A symbol and the file that it is in."""

    file: str
    symbol: Symbol

    @property
    def path(self) -> str:
        """Its path as the tools take it: `src/store.py/Store/add`."""
        return f"{self.file}/{self.symbol.path}"


class Mention(NamedTuple):
    """A reference, the file that it is in, and the symbol around it, if there is one."""

    file: str
    reference: SymbolReference
    within: Symbol | None


@dataclass(slots=True)
class RefreshCounts:
    """The counts of a refresh: files seen, parsed and removed; `whole`: it wasn't interrupted."""

    seen: int = 0
    parsed: int = 0
    removed: int = 0
    whole: bool = True


def use_index(path: Path, work: "Callable[[Index], T]") -> T:
    """The result of `work` with the index in the file `path` (`project_folder(home, workspace) / "index.db"`).

    The file is made if it is missing, damaged or of another version; `work` may then be called twice. Several
    processes may use it at once. Blocks: call it in a thread. Raises ToolRefused when the disk refuses.
    """
    return with_database(path, lambda database: work(Index(database)))


class Index:
    """Queries about a project. `below` is always a file or folder; "" and `.` mean everything."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def refresh(
        self,
        files: Iterable[SourceFile],
        *,
        below: str = "",
        stop: threading.Event | None = None,
        show: Callable[[int], None] = lambda parsed: None,
    ) -> RefreshCounts:
        """Bring the index up to date with the files `below`, until `stop` is set; the rest stays as it is.

        `show` gets the number of parsed files after each batch.
        """
        rows = self._select("SELECT path, size, mtime, inode FROM files", "", _below(below))
        known = {path: stamp for path, *stamp in rows}
        done, batch = RefreshCounts(), list[_Entry]()
        seen = set[str]()
        for file in files:
            if stop and stop.is_set():
                done.whole = False
                break
            language = language_of(file.path)
            if not language and "." in file.path.rpartition("/")[2]:
                continue
            done.seen += 1
            seen.add(file.path)
            if known.get(file.path) != [*file.stamp]:
                batch.append(_entry(file))
            if len(batch) == BATCH_FILES:
                done.parsed += self._write(batch)
                show(done.parsed)
        done.parsed += self._write(batch)
        if done.whole:
            gone = [(path,) for path in known if path not in seen]
            done.removed = len(gone)
            if gone:
                self._in_transaction(lambda: self._database.executemany("DELETE FROM files WHERE path = ?", gone))
        return done

    def files(self, *, below: str = "") -> list[IndexedFile]:
        """The files in which a language was recognised, by their paths."""
        what = "SELECT path, language, size, lines, problems, generated, note FROM files"
        rows = self._select(what, "ORDER BY files.path", [("files.language != ''", ()), *_below(below)])
        return [IndexedFile(*row) for row in rows]

    def symbols(
        self, *, name: str = "", kinds: Iterable[str] = (), below: str = "", exact: bool = True
    ) -> list[Located]:
        """The symbols with that name (`exact=False`: in any case) and of these kinds, in the order of the files."""
        named: list[_Condition] = [("symbols.name = ? COLLATE NOCASE", (name,))] if name else []  # as they are indexed
        named += [("symbols.name = ?", (name,))] if name and exact else []
        where = [*named, *_one_of("symbols.kind", kinds), *_below(below)]
        rows = self._select(_SYMBOLS, "ORDER BY files.path, symbols.number", where)
        return [Located(row[0], Symbol(*row[3:])) for row in rows]

    def references(
        self, *, name: str = "", kinds: Iterable[str] = (), below: str = "", lines: tuple[int, int] | None = None
    ) -> list[Mention]:
        """The references to that name, of these kinds, in the order of the files.

        `lines` narrows it to those lines of the file `below`: what a symbol refers to is in `(first, last)` of it.
        """
        where = [*_one_of("refs.kind", kinds), *_below(below)]
        where += [("refs.name = ?", (name,))] if name else []
        where += [("refs.line BETWEEN ? AND ?", lines)] if lines else []
        rows = self._select(_REFERENCES, "ORDER BY files.path, refs.number", where)
        return [
            Mention(row[0], SymbolReference(*row[3:7]), Symbol(*row[9:]) if row[9] is not None else None)
            for row in rows
        ]

    def reference_lines(self, *, kinds: Iterable[str], below: str = "") -> list[tuple[str, int]]:
        """The file and line of each reference of these kinds: much faster than `references`."""
        select = "SELECT files.path, refs.line FROM refs JOIN files ON files.id = refs.file"
        return [(path, line) for path, line in self._select(select, "", [*_one_of("refs.kind", kinds), *_below(below)])]

    def measures(self, what: str, *, below: str = "") -> dict[str, bytes]:
        """The kept measures of files as they are now, by their paths."""
        select = "SELECT files.path, measures.measure FROM measures JOIN files ON files.id = measures.file"
        return dict(self._select(select, "", [("measures.what = ?", (what,)), *_below(below)]))

    def keep_measures(self, what: str, measures: Mapping[str, bytes]) -> None:
        """Keep what was measured of files until they change."""
        insert = "INSERT OR REPLACE INTO measures SELECT id, ?, ? FROM files WHERE path = ?"
        rows = [(what, measure, path) for path, measure in measures.items()]
        self._in_transaction(lambda: self._database.executemany(insert, rows))

    def _select(self, what: str, order: str, where: "Sequence[_Condition]") -> list[tuple[Any, ...]]:
        condition = " AND ".join(clause for clause, _ in where) or "1"
        query = f"{what} WHERE {condition} {order}"
        return self._database.execute(query, [value for _, values in where for value in values]).fetchall()

    def _write(self, batch: "list[_Entry]") -> int:
        """Put the files into the index, all or none, and clear the batch."""
        count = len(batch)
        if batch:
            self._in_transaction(lambda: [self._put(entry) for entry in batch])
            batch.clear()
        return count

    def _put(self, entry: "_Entry") -> None:
        path, stamp, language, lines, generated, note, found = entry
        run = self._database.execute
        run("DELETE FROM files WHERE path = ?", (path,))
        number = run(
            "INSERT INTO files (path, language, size, mtime, inode, lines, problems, generated, note)"
            " VALUES (?,?,?,?,?,?,?,?,?)",
            (path, language, *stamp, lines, len(found.problems) if found else 0, generated, note),
        ).lastrowid
        if found:
            self._database.executemany(
                "INSERT INTO symbols VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                [(number, at, *symbol) for at, symbol in enumerate(found.symbols)],
            )
            self._database.executemany(
                "INSERT INTO refs VALUES (?,?,?,?,?,?)",
                [(number, at, *reference) for at, reference in enumerate(found.references)],
            )

    def _in_transaction(self, work: Callable[[], object]) -> None:
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            work()


_Condition = tuple[str, Sequence[str | int]]
"""A clause, and the values of its question marks."""
_SYMBOLS = "SELECT files.path, symbols.* FROM symbols JOIN files ON files.id = symbols.file"
_REFERENCES = """
SELECT files.path, refs.*, symbols.* FROM refs JOIN files ON files.id = refs.file
LEFT JOIN symbols ON symbols.file = refs.file AND symbols.number = refs.symbol
"""
_Entry = tuple[str, Stamp, str, int, bool, str, Outline | None]
_GENERATED = re.compile(
    rb"(?im)@generated\b|\bdo not (?:edit|modify)\b|^\W{0,6}(?:th(?:is|e) (?:file|code|class) (?:is|was|has been) )?"
    rb"(?:code |auto-?|automatically )?generated (?:by|from|with)\b"
)


def _entry(file: SourceFile) -> _Entry:
    """The index's data about a file, or why it couldn't be parsed."""
    language = language_of(file.path)
    if file.stamp[0] > MAX_BYTES:
        return file.path, file.stamp, language, 0, False, f"over {MAX_BYTES // 10**6} MB, not parsed", None
    try:
        source = file.read()
    except OSError as error:
        return file.path, file.stamp, language, 0, False, f"not read: {error.strerror}", None
    if source is None:
        return file.path, file.stamp, "", 0, False, "binary", None
    language = language_of(file.path, source)
    if not language:
        return file.path, file.stamp, "", 0, False, "", None
    lines = source.count(b"\n") + (not source.endswith(b"\n") and bool(source))
    generated = bool(_GENERATED.search(source, 0, HEAD_BYTES))
    try:
        return file.path, file.stamp, language, lines, generated, "", outline(source, language)
    except Unparsable as error:
        return file.path, file.stamp, language, lines, generated, str(error), None


def _below(below: str) -> list[_Condition]:
    """For that file, or the files in that folder."""
    below = "" if below == "." else below.rstrip("/")
    inside = f"{below}/", f"{below}0"  # 0 follows / in the order of characters
    return [("(files.path = ? OR files.path > ? AND files.path < ?)", (below, *inside))] if below else []


def _one_of(column: str, values: Iterable[str]) -> list[_Condition]:
    wanted = sorted(values)
    return [(f"{column} IN ({', '.join('?' * len(wanted))})", wanted)] if wanted else []
