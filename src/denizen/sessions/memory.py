"""Keeps sessions in memory, until the process ends: for calls that bring their whole conversation, and for tests."""

import math
from collections.abc import Sequence

from msgspec.structs import replace

from denizen.config.redact import Redactor
from denizen.entries import AnyEntry, SessionEntry
from denizen.errors import SessionError, SessionHeld, SessionUnknown
from denizen.ports import Session, SessionInfo
from denizen.runtime.clock import Clock
from denizen.sessions.codec import ENCODER, encode
from denizen.sessions.index import page_of, with_entry
from denizen.sessions.key import session_key
from denizen.sessions.tree import EntryTree, TreeSession


class MemoryStore:
    """Sessions in a dictionary; no secret that `redactor` knows is kept in them."""

    def __init__(self, *, clock: Clock, redactor: Redactor | None = None) -> None:
        self.clock = clock
        self.redactor = redactor or Redactor()
        self.writers: dict[str, MemorySession] = {}
        self._trees: dict[str, EntryTree] = {}

    async def open(self, key: str, *, workspace: str = "", profile: str = "") -> Session:
        """The session, open for writing; made if new. Raises SessionError when it is open already."""
        key = session_key(key)
        if key in self.writers:
            raise SessionHeld(f"Session {key} is already open. Close it there first, or use another session.")
        tree = self._trees.setdefault(key, EntryTree())
        self.writers[key] = session = MemorySession(key, self, tree)
        if not session.head:
            session.write(SessionEntry(key=key, workspace=workspace, profile=profile))
        return session

    async def read(self, key: str) -> Sequence[AnyEntry]:
        """The entries from the first to the head. Raises SessionError for an unknown key."""
        return self._find(key).branch

    async def fork(self, key: str, to: str, *, at: str = "") -> None:
        """A new session `to` that begins with all of `key` up to entry `at` (default: its head).

        Raises SessionError if there is no such entry, and when `to` exists.
        """
        source, to, fork = self._find(key), session_key(to), EntryTree()
        entries = source.fork(session_key(key), to, at, self.clock.now())
        if to in self._trees:
            raise SessionError(f"Session {to} exists already. Give the fork another name, or remove that one.")
        for entry in entries:
            fork.add(entry)
        self._trees[to] = fork

    async def list(self) -> Sequence[SessionInfo]:
        """All sessions, the latest first."""
        found = [_summary(key, tree.branch) for key, tree in self._trees.items()]
        return sorted(found, key=lambda info: info.updated, reverse=True)

    async def page(self, limit: int, before: float = math.inf) -> Sequence[SessionInfo]:
        """The `limit` sessions that were last used before that time, the latest first; all of the last moment."""
        found = await self.list()
        return page_of((replace(info, used=info.updated) for info in found if info.updated < before), limit)

    async def remove(self, key: str, *, unused_since: float = math.inf) -> None:
        """Forget a session. Raises SessionError while it is open, or was written, and for an unknown key."""
        tree = self._find(key)
        if (key := session_key(key)) in self.writers:
            raise SessionHeld(f"Session {key} is open. Close it first.")
        if _summary(key, tree.branch).updated >= unused_since:
            raise SessionHeld(f"Session {key} was used meanwhile.")
        del self._trees[key]

    def _find(self, key: str) -> EntryTree:
        if (tree := self._trees.get(session_key(key))) is None:
            raise SessionUnknown(f"There is no session {session_key(key)}.")
        return tree


class MemorySession(TreeSession):
    """A session of a `MemoryStore` that is open for writing."""

    def __init__(self, key: str, store: MemoryStore, tree: EntryTree) -> None:
        super().__init__(key, tree)
        self._store = store

    async def append(self, entry: AnyEntry, *, expect_head: str | None = None) -> str:
        """Keep the entry after the head and return its id. Raises SessionError as `SessionStore` says."""
        if self._store.writers.get(self.key) is not self:
            raise SessionError(f"Session {self.key} is closed. Open it again to go on.")
        self.tree.check(entry, self.key, expect_head)
        return self.write(entry)

    def write(self, entry: AnyEntry) -> str:
        """Keep the entry, as a file would give it back, whatever it is."""
        entry = self.placed(entry, self._store.clock.now())
        _, entry = encode(entry, self._store.redactor)
        self.add(entry)
        return entry.id

    async def sync(self) -> None:
        """Nothing here survives the process."""

    async def close(self) -> None:
        """Let others write."""
        if self._store.writers.get(self.key) is self:
            del self._store.writers[self.key]


def _summary(key: str, entries: Sequence[AnyEntry]) -> SessionInfo:
    info = SessionInfo(key)
    for entry in entries:
        info = with_entry(info, entry, len(ENCODER.encode(entry)))
    return info
