"""The code that an analysis looks at, and what it finds."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from denizen.errors import ToolRefused
from denizen.structure import Index, IndexedFile, Unparsable, parsed
from denizen.tools.files.workspace import Workspace
from denizen.tools.symbols.project_index import utf8

T = TypeVar("T")

Facts = dict[str, Any]
"""A finding as a filter gets it."""

MOST_BYTES = 1_000_000
"""Of a file that is looked into; a larger one was made by a program, or is data."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The indexed code `below` a file or folder, until `stop` is set.

    `passed` takes the files that an analysis couldn't look into, each with the reason.
    """

    workspace: Workspace
    index: Index
    below: str
    stop: threading.Event
    passed: list[str] = field(default_factory=list)

    def files(self) -> Iterator[IndexedFile]:
        """The files in which a language was recognised."""
        for file in self.index.files(below=self.below):
            if self.stop.is_set():
                return
            yield file

    def sources(self) -> Iterator[tuple[IndexedFile, bytes]]:
        """The same, each with its text in UTF-8; what is too large, or can't be read, is passed over."""
        for file in self.files():
            if file.bytes > MOST_BYTES:
                self.passed.append(f"{file.path} (over {MOST_BYTES // 1_000_000} MB)")
            elif source := self.source(file.path):
                yield file, source

    def parsed(self, work: Callable[[bytes, str], Sequence[T]], file: IndexedFile, source: bytes) -> Sequence[T]:
        """What `work` gives for a text; nothing where that takes too long."""
        try:
            return () if file.note else parsed(work, source, file.language)
        except Unparsable as error:
            self.passed.append(f"{file.path} ({error})")
            return ()

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
