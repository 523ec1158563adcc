"""Keeps sessions as JSON lines: one file per session, one entry per line, and nothing is ever changed in it."""

import asyncio
import logging
import math
import sys
from collections.abc import Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from denizen.config.home import private_folder
from denizen.config.redact import Redactor
from denizen.entries import AnswerEntry, AnyEntry, ParkedEntry, SessionEntry, StartedEntry, UserEntry
from denizen.errors import ConfigError, SessionError, SessionHeld, SessionUnavailable, SessionUnknown
from denizen.ports import Session, SessionInfo
from denizen.runtime.cache import BoundedCache
from denizen.runtime.clock import Clock
from denizen.sessions.codec import encode, load
from denizen.sessions.file import FileState, Lock, TranscriptFile, create, explain, explained
from denizen.sessions.file_order import FileOrder
from denizen.sessions.index import summarise
from denizen.sessions.key import key_of, session_key, transcript_path
from denizen.sessions.retry import retry_unavailable
from denizen.sessions.tree import EntryTree, TreeSession

MAX_CLOSED_BYTES = 16 * 1024 * 1024
"""Bytes of closed sessions' files that stay in memory; they take about four times as much there."""
MAX_CLOSED_SESSIONS = 512
"""Closed sessions that stay in memory: reopening one costs nothing while its file is unchanged."""

_SYNC_THREADS = 4  # the file system joins what is synced at the same time; more threads gain nothing
SYNCED = frozenset({UserEntry, StartedEntry, ParkedEntry, AnswerEntry})
"""Entries that must survive the machine's death when they were appended."""
ACKNOWLEDGED_ELSEWHERE = SYNCED - {UserEntry}
"""The same for hosts whose messages are durable before they become entries, and that `sync` before a turn is over."""
_log = logging.getLogger(__name__)


class _Closed(NamedTuple):
    """A closed session. `name_is_synced`: the folders' entries for its file are on disk."""

    tree: EntryTree
    state: FileState
    name_is_synced: bool


class JsonlStore:
    """Sessions in folders per agent under `root`, private to the user.

    Keys may be short names; they are normalised. No secret that `redactor` knows reaches a file. Entries of the types
    `synced` are synced when they are appended. With `sync=False` nothing is, ever: entries survive the death of the
    process, but not the machine's. With `retry_s` an entry that the disk refuses is tried again every so many seconds.
    """

    def __init__(
        self,
        root: Path,
        *,
        clock: Clock,
        redactor: Redactor | None = None,
        sync: bool = True,
        synced: Set[type[AnyEntry]] = SYNCED,
        retry_s: float = 0.0,
    ) -> None:
        self._root = root
        self._order = FileOrder(root, _last_used)
        self.retry_s = retry_s
        self._closed = BoundedCache[_Closed](MAX_CLOSED_SESSIONS, MAX_CLOSED_BYTES)
        self.clock = clock
        self.redactor = redactor or Redactor()
        self.synced = synced
        self.sync_threads = ThreadPoolExecutor(_SYNC_THREADS, "denizen-sync") if sync else None

    def path(self, key: str) -> Path:
        """The file of a session, whether it exists or not."""
        return transcript_path(self._root, key)

    async def open(self, key: str, *, workspace: str = "", profile: str = "") -> Session:
        """The session, open for writing; made if new. Raises SessionError when it is open already."""
        key = session_key(key)
        file = TranscriptFile(self._prepared_path(key), self.clock.now(), key)
        try:
            closed = self._closed.take(key)
            if closed and closed.state == file.found:
                tree, file.name_is_synced = closed.tree, closed.name_is_synced
            else:
                data = file.read()
                tree = load(data, key)
                file.repair(data)
            session = JsonlSession(key, self, file, tree)
            if not session.head:
                session.begin(workspace, profile)
            self.use(key)
        except BaseException:
            file.close()
            raise
        return session

    def keep_closed(self, key: str, file: TranscriptFile, tree: EntryTree) -> None:
        """Keep in memory what may be opened again."""
        state = file.state()
        self._closed.put(key, _Closed(tree, state, file.name_is_synced), state.size)

    async def read(self, key: str) -> Sequence[AnyEntry]:
        """The entries from the first to the head, without a lock. Raises SessionError for an unknown key."""
        return self._load(session_key(key)).branch

    async def fork(self, key: str, to: str, *, at: str = "") -> None:
        """A new session `to` that begins with all of `key` up to entry `at` (default: its head); `key` stays as it is.

        Raises SessionError if there is no such entry, and when `to` exists.
        """
        key, to = session_key(key), session_key(to)
        source, path = self._load(key), self._prepared_path(to)
        entries = source.fork(key, to, at, self.clock.now())
        lines = [encode(entry, self.redactor)[0] for entry in entries]
        with Lock(path, self.clock.now(), to) as lock:
            if path.exists():
                raise SessionError(f"Session {to} exists already. Give the fork another name, or remove that one.")
            try:
                await create(path, b"".join(lines), self.sync_threads)
            except BaseException:
                lock.delete()
                raise

    def info(self, key: str) -> SessionInfo | None:
        """The line of the index for one session; None if there is none of that key."""
        return _summary(self.path(key))

    async def list(self) -> Sequence[SessionInfo]:
        """All sessions, the latest first."""
        found = [replace(info, used=0.0) for info in await self.page(sys.maxsize)]
        return sorted(found, key=lambda info: info.updated, reverse=True)

    async def page(self, limit: int, before: float = math.inf) -> Sequence[SessionInfo]:
        """The `limit` sessions that were last used before that time, the latest first; all of the last moment."""

        def read() -> Sequence[SessionInfo]:
            found, until = list[SessionInfo](), before
            while len(found) < limit and (files := self._order.page(limit - len(found), until)):
                found += [replace(info, used=used) for file, used in files if (info := _summary(file))]
                until = files[-1][1]
            return found

        return await asyncio.to_thread(read)

    def use(self, key: str) -> None:
        """Note that a session is written now: listings begin with it."""
        self._order.use(self.path(key), self.clock.now().timestamp())

    async def remove(self, key: str, *, unused_since: float = math.inf) -> None:
        """Delete a session for good. Raises SessionError while it is open, or was written, and for an unknown key."""
        path = self.path(key)
        if not path.exists():
            raise self._unknown(session_key(key))
        with Lock(path, self.clock.now(), session_key(key)) as lock, explained("delete", path):
            if _last_used(path) >= unused_since:
                raise SessionHeld(f"Session {session_key(key)} was used meanwhile.")
            path.unlink()
            lock.delete()

    def _prepared_path(self, key: str) -> Path:
        path = self.path(key)
        try:
            private_folder(path.parent)
        except ConfigError as error:
            raise SessionUnavailable(str(error)) from error
        return path

    def _load(self, key: str) -> EntryTree:
        path = self.path(key)
        if not path.exists():
            raise self._unknown(key)
        with explained("read", path):
            tree = load(path.read_bytes(), key)
        if tree.warnings:
            _log.warning("Session %s: %s", key, "; ".join(tree.warnings[:5]))
        return tree

    def _unknown(self, key: str) -> SessionUnknown:
        names = {known.rpartition(":")[2]: known for known in map(key_of, self._root.glob("*/*.jsonl"))}
        near = get_close_matches(key.rpartition(":")[2], names, 1)
        hint = f"Did you mean {names[near[0]]}?" if near else "`denizen sessions list` shows all sessions."
        return SessionUnknown(f"There is no session {key}. {hint}")


class JsonlSession(TreeSession):
    """A session of a `JsonlStore` that is open for writing: an entry is in the file before it is in `entries`.

    An append costs the same however long the session is.
    """

    def __init__(self, key: str, store: JsonlStore, file: TranscriptFile, tree: EntryTree) -> None:
        super().__init__(key, tree)
        self._store = store
        self._file = file
        self._has_written = False

    def begin(self, workspace: str, profile: str) -> None:
        """Write the header of a new session."""
        self._write(SessionEntry(key=self.key, workspace=workspace, profile=profile))

    async def append(self, entry: AnyEntry, *, expect_head: str | None = None) -> str:
        """Write the entry after the head and return its id; `SessionStore` says what that promises."""

        async def write() -> str:
            self.tree.check(entry, self.key, expect_head)
            if type(entry) in SYNCED:
                self._file.check()  # for each line it would cost more than the line
            return self._write(entry)

        written = await retry_unavailable(write, self._store.clock, self._store.retry_s)
        if type(entry) in self._store.synced:
            await self.sync()
        return written

    async def sync(self) -> None:
        """All that was written survives the machine's death."""
        if self._store.sync_threads:
            await self._file.sync(self._store.sync_threads)

    async def close(self) -> None:
        """Give the lock back."""
        if self._file.is_sound and not self.warnings:
            self._store.keep_closed(self.key, self._file, self.tree)
        if self._has_written:
            self._store.use(self.key)
            self._has_written = False
        self._file.close()

    def _write(self, entry: AnyEntry) -> str:
        entry = self.placed(entry, self._store.clock.now())
        line, entry = encode(entry, self._store.redactor)
        self._file.append(line)
        self._has_written = True
        self.add(entry)
        return entry.id


def _summary(path: Path) -> SessionInfo | None:
    try:
        return summarise(path)
    except FileNotFoundError:
        return None  # removed meanwhile
    except OSError as error:
        _log.warning("%s", explain("read", path, error))
        return SessionInfo(key=key_of(path) or path.stem)


def _last_used(path: Path) -> float:
    info = _summary(path)
    return info.updated if info else 0.0
