"""A session's entries in memory: a tree, and the head, where the conversation continues."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from denizen.entries import AnyEntry, HeadEntry, SessionEntry
from denizen.errors import SessionError

_MAX_WARNINGS = 100
_E = TypeVar("_E", bound=AnyEntry)


class EntryTree:
    """The tree of a session's entries, and its head; `moved`: nothing was written since it was moved there.

    `add` takes entries as they are written, `restore` those that were read: it repairs ids and parents that make no
    tree, so that every parent is an entry that came before ("" for the first), and notes that in `warnings`.
    """

    def __init__(self) -> None:
        self.head = ""
        self.moved = False
        self.warnings: list[str] = []
        self._branch: list[AnyEntry] | None = None
        self._entries: dict[str, AnyEntry] = {}
        self._replaced: dict[str, str] = {}  # the id of a line that isn't an entry, and the entry that takes its place
        self._renamed: dict[str, str] = {}  # an entry's id, and the one it had in the file
        self._line = 0
        self._damaged = False

    def __contains__(self, entry_id: str) -> bool:
        return entry_id in self._entries

    def next_id(self) -> str:
        """An id that no entry has: the number of the next line in hexadecimal, or of one further on."""
        self._line += 1
        while (name := f"{self._line:x}") in self._entries:
            self._line += 1
        return name

    @property
    def branch(self) -> list[AnyEntry]:
        """The entries from the first to the head: a list that grows with it, and another one once the head is moved."""
        if self._branch is None:
            self._branch = self.path(self.head)
        return self._branch

    def path(self, to: str) -> list[AnyEntry]:
        """The entries from the first to `to`, oldest first."""
        found: list[AnyEntry] = []
        while to:
            entry = self._entries[to]
            found.append(entry)
            to = entry.parent
        return found[::-1]

    def fork(self, key: str, to: str, at: str, now: datetime) -> list[AnyEntry]:
        """The entries of a new session `to`, made of this one, `key`: a header, and what led to `at` (empty: the head).

        Raises SessionError if there is no such entry.
        """
        if at and at not in self:
            raise SessionError(f"Session {key} has no entry {at!r} to fork from.")
        at = at or self.head
        header = SessionEntry(key=to, forked_from=key, at=now)
        path = self.path(at)
        if path and isinstance(old := path[0], SessionEntry):
            path = path[1:]
            header = msgspec.structs.replace(header, id=old.id, workspace=old.workspace, profile=old.profile)
        else:
            header = msgspec.structs.replace(header, id=self.next_id())
        entries: list[AnyEntry] = [header]
        for entry in (*path, HeadEntry(id=self.next_id(), to=at if path else header.id)):
            entries.append(msgspec.structs.replace(entry, parent=entries[-1].id))
        return entries

    def check(self, entry: AnyEntry, key: str, expect_head: str | None) -> None:
        """Raise SessionError for an entry that mustn't follow the head in session `key`, or not the head there is."""
        if expect_head is not None and expect_head != self.head:
            raise SessionError(
                f"Session {key} is at entry {self.head!r}, not at {expect_head!r}: more was written. Read on."
            )
        if type(entry) is SessionEntry:
            raise SessionError(f"Session {key} has its header; there can't be a second one.")
        if type(entry) is HeadEntry and entry.to not in self:
            raise SessionError(f"Session {key} has no entry {entry.to!r} to continue from.")

    def add(self, entry: AnyEntry) -> None:
        """Add an entry that follows the head: it becomes the head, or moves it."""
        if type(entry) is HeadEntry:
            self.moved = True
            self._go_to(entry.to)
            return
        self.moved = False
        self._entries[entry.id] = entry
        self.head = entry.id
        if self._branch is not None:
            self._branch.append(entry)

    def restore(self, line: int, entry: AnyEntry) -> None:
        """Add the entry that was read from this line."""
        self._line = line
        if type(entry) is HeadEntry:
            if to := self._resolve(entry.to):
                self._go_to(to)
                self.moved = True
            else:
                self._warn(f"it moves the head to {entry.to!r:.80}, which isn't there; the head stays where it was")
            self._replaced[entry.id] = self.head
        elif entry.parent == self.head and entry.id and entry.id not in self._entries:
            self.add(entry)
        elif self._entries.get(entry.id) == entry or (type(entry) is SessionEntry and self._entries):
            self._warn("it repeats what came before, and is left out")
        else:
            parent, name = self._parent_for(entry.parent), entry.id or f"{line:x}"
            while name in self._entries:
                name += f".{line:x}"
            if name != entry.id:
                self._warn(f"its id {entry.id!r:.80} is taken or missing; it is {name:.80} now")
                self._renamed[name] = entry.id
            self.add(msgspec.structs.replace(entry, id=name, parent=parent))

    def skip(self, line: int, why: str, entry_id: str = "", parent: str = "") -> None:
        """Leave out a line that can't be read; what follows it is attached to its parent, or to the last good entry."""
        self._line = line
        self._warn(why)
        if entry_id:
            self._go_to(self._parent_for(parent))
            self._replaced[entry_id] = self.head
        else:
            self._damaged = True

    def _warn(self, what: str) -> None:
        """Note what was wrong with the line that was read last."""
        if len(self.warnings) < _MAX_WARNINGS:
            self.warnings.append(f"line {self._line}: {what}")
        elif len(self.warnings) == _MAX_WARNINGS:
            self.warnings.append("there is more of this")

    def _go_to(self, entry_id: str) -> None:
        self.head, self._branch = entry_id, None

    def _parent_for(self, parent: str) -> str:
        """The entry to attach to: the one that `parent` means, else the last good one before this line."""
        if parent == self._renamed.get(self.head):
            return self.head
        if found := self._resolve(parent):
            return found
        if self._entries and not self._damaged:  # after a damaged line it is no news
            self._warn(f"it follows {parent!r:.80}, which isn't there; it is attached to what came before")
        return self.head

    def _resolve(self, entry_id: str) -> str:
        return entry_id if entry_id in self._entries else self._replaced.get(entry_id, "")


class TreeSession(ABC):
    """The base of sessions that are open for writing; `tree` holds their entries."""

    def __init__(self, key: str, tree: EntryTree) -> None:
        self.key = key
        self.tree = tree
        self.head = tree.head
        self.entries: Sequence[AnyEntry] = tree.branch
        self.warnings: Sequence[str] = tree.warnings

    @property
    def moved(self) -> bool:
        """Whether the head was moved here, or the session forked, and nothing was written since."""
        return self.tree.moved

    @abstractmethod
    async def append(self, entry: AnyEntry, *, expect_head: str | None = None) -> str:
        """Write the entry after the head and return its id; `SessionStore` says what that promises."""

    async def move_head(self, to: str) -> None:
        """Continue from entry `to`; nothing is deleted."""
        await self.append(HeadEntry(to=to))

    async def lost(self) -> None:
        """Wait for ever: no other process can take the session."""
        await asyncio.get_running_loop().create_future()

    def placed(self, entry: _E, now: datetime) -> _E:
        """The entry with an id, after the head."""
        return msgspec.structs.replace(entry, id=self.tree.next_id(), parent=self.tree.head, at=now)

    def add(self, entry: AnyEntry) -> None:
        """Take in an entry that is written."""
        self.tree.add(entry)
        self.head, self.entries = self.tree.head, self.tree.branch
