"""The code that an analysis looks at, and what it finds."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from denizen.errors import ToolRefused
from denizen.structure import Index, IndexedFile, Unparsable, parsed
from denizen.tools.files.workspace import Workspace
from denizen.tools.symbols.project_index import utf8

T = TypeVar("T")

Facts = dict[str, Any]
"""A finding as a filter gets it."""

MOST_BYTES = 1_000_000
"""Of a file that is looked into; a larger one was made by a program, or is data."""

BATCH = 100
"""Files whose measures are kept together."""
VENDORED = frozenset({"vendor", "vendored", "_vendor", "third_party", "third-party", "thirdparty", "bower_components"})
"""Folders with other people's code."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The indexed code `below` a file or folder, until `stop` is set.

    `passed` takes the files that an analysis couldn't look into, each with the reason; `foreign` those left out, as
    others or programs wrote them.
    """

    workspace: Workspace
    index: Index
    below: str
    stop: threading.Event
    passed: list[str] = field(default_factory=list)
    foreign: set[str] = field(default_factory=set)

    def files(self) -> Iterator[IndexedFile]:
        """The files in a language that is known, without what others or programs wrote unless it is asked for."""
        for file in self.index.files(below=self.below):
            if self.stop.is_set():
                return
            if file.path != self.below and (file.generated or self._is_vendored(file.path)):
                self.foreign.add(file.path)
            else:
                yield file

    def _is_vendored(self, path: str) -> bool:
        return not VENDORED.isdisjoint(path.removeprefix(self.below).split("/")[:-1])

    def measured(
        self, what: str, measure: Callable[[bytes, str], list[T]], kind: type[T]
    ) -> Iterator[tuple[IndexedFile, list[T]]]:
        """What `measure` gives for each file that can be parsed; kept as `what` until the file changes."""
        kept = self.index.measures(what, below=self.below)
        new: dict[str, bytes] = {}
        for file in self.files():
            if file.path not in kept and not file.note and (source := self.source(file.path)):
                new[file.path] = kept[file.path] = self._measure(measure, source, file)
            if len(new) == BATCH:
                self.index.keep_measures(what, new)
                new = {}
            if file.path in kept:
                found = msgspec.msgpack.decode(kept[file.path], type=list[kind] | str)
                if isinstance(found, str):
                    self.passed.append(f"{file.path} ({found})")
                else:
                    yield file, found
        self.index.keep_measures(what, new)

    @staticmethod
    def _measure(measure: Callable[[bytes, str], list[T]], source: bytes, file: IndexedFile) -> bytes:
        try:
            return msgspec.msgpack.encode(parsed(measure, source, file.language))
        except Unparsable as error:
            return msgspec.msgpack.encode(str(error))

    def source(self, path: str) -> bytes:
        """The text of a file in UTF-8; empty where there is none."""
        try:
            with self.workspace.at(path) as place, place.open() as file:
                return utf8(file.read(MOST_BYTES + 1)) or b""
        except ToolRefused as refused:  # gone, or exchanged, since it was indexed
            self.passed.append(str(refused))
            return b""


@dataclass(slots=True)
class Findings:
    """What an analysis found, what is worth most first: rows for the model, and the same as `facts`.

    `heading` says what the rows are, `remarks` what they don't tell.
    """

    heading: str
    rows: list[str] = field(default_factory=list)
    facts: list[Facts] = field(default_factory=list)
    remarks: Sequence[str] = ()

    def add(self, row: str, **facts: Any) -> None:
        """Take in one."""
        self.rows.append(row)
        self.facts.append(facts)
