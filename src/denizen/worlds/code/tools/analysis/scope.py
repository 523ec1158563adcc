"""The code that an analysis reads, and its findings."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from denizen.errors import ToolRefused
from denizen.structure import Index, IndexedFile, Unparsable, parsed
from denizen.tools.files.workspace import Workspace
from denizen.worlds.code.tools.symbols.project_index import utf8

T = TypeVar("T")

Facts = dict[str, Any]  # a finding as data for a filter

MAX_FILE_BYTES = 1_000_000  # of a file that is read; a larger one was made by a program, or is data

BATCH_FILES = 100  # files whose measures are stored together
VENDORED_FOLDERS = frozenset(
    {"vendor", "vendored", "_vendor", "third_party", "third-party", "thirdparty", "bower_components"}
)
"""Folders with other people's code."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The indexed code `below` a file or folder, until `stop` is set.

    An analysis adds the files that it couldn't read to `unread`, each with the reason, and those that are vendored or
    generated to `left_out`.
    """

    workspace: Workspace
    index: Index
    below: str
    stop: threading.Event
    unread: list[str] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)

    def files(self) -> Iterator[IndexedFile]:
        """The files in a known language, without vendored and generated ones unless they are asked for."""
        for file in self.index.files(below=self.below):
            if self.stop.is_set():
                return
            is_vendored = not VENDORED_FOLDERS.isdisjoint(file.path.removeprefix(self.below).split("/")[:-1])
            if file.path != self.below and (file.generated or is_vendored):
                self.left_out.add(file.path)
            else:
                yield file

    def measured(
        self, what: str, measure: Callable[[bytes, str], list[T]], kind: type[T]
    ) -> Iterator[tuple[IndexedFile, list[T]]]:
        """The result of `measure` for each file that can be parsed; kept as `what` until the file changes."""
        kept = self.index.measures(what, below=self.below)
        new: dict[str, bytes] = {}
        for file in self.files():
            if file.path not in kept and not file.note and (source := self.source(file.path)):
                try:
                    measures: list[T] | str = parsed(measure, source, file.language)
                except Unparsable as error:
                    measures = str(error)
                new[file.path] = kept[file.path] = msgspec.msgpack.encode(measures)
            if len(new) == BATCH_FILES:
                self.index.keep_measures(what, new)
                new = {}
            if file.path in kept:
                found = msgspec.msgpack.decode(kept[file.path], type=list[kind] | str)
                if isinstance(found, str):
                    self.unread.append(f"{file.path} ({found})")
                else:
                    yield file, found
        self.index.keep_measures(what, new)

    def source(self, path: str) -> bytes:
        """The text of a file in UTF-8; empty if it has none."""
        try:
            with self.workspace.at(path) as place, place.open() as file:
                return utf8(file.read(MAX_FILE_BYTES + 1)) or b""
        except ToolRefused as refused:  # removed or replaced since it was indexed
            self.unread.append(str(refused))
            return b""


@dataclass(slots=True)
class Findings:
    """The results of an analysis, the most important first: rows for the model, and the same as `facts`.

    `heading` says what the rows are, `remarks` what they leave out.
    """

    heading: str
    rows: list[str] = field(default_factory=list)
    facts: list[Facts] = field(default_factory=list)
    remarks: Sequence[str] = ()

    def add(self, row: str, **facts: Any) -> None:
        """Add one."""
        self.rows.append(row)
        self.facts.append(facts)
