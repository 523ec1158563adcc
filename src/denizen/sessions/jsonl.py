"""Keeps sessions as JSON lines: one file per session, one entry per line, and nothing is ever changed in it."""

import asyncio
import logging
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from denizen.cache import BoundedCache
from denizen.clock import Clock
from denizen.config.home import private_folder
from denizen.config.redact import Redactor
from denizen.entries import AnyEntry, SessionEntry
from denizen.errors import ConfigError, SessionError
from denizen.ports import Session, SessionInfo
from denizen.sessions.disk import explain, told
from denizen.sessions.file import TranscriptFile
from denizen.sessions.flush import Flusher
from denizen.sessions.fork import create, forked
from denizen.sessions.kept import MOST, MOST_BYTES, Closed
from denizen.sessions.key import key_of, session_key, transcript_path
from denizen.sessions.line import encode
from denizen.sessions.load import VERSION, load
from denizen.sessions.lock import Lock
from denizen.sessions.session import JsonlSession
from denizen.sessions.summary import summarise
from denizen.sessions.transcript import Transcript

_log = logging.getLogger(__name__)


class JsonlStore:
    """Sessions in folders per agent under `root`, private to the user.

    Keys may be short names; they are normalised. No secret that `redactor` knows reaches a file. With `sync=False`
    nothing is synced: entries survive the death of the process, but not the machine's.
    """

    def __init__(self, root: Path, *, clock: Clock, redactor: Redactor | None = None, sync: bool = True) -> None:
        self._root = root
        self._clock = clock
        self._redactor = redactor or Redactor()
        self._flusher = Flusher() if sync else None
        self._kept = BoundedCache[Closed](MOST, MOST_BYTES)

    def path(self, key: str) -> Path:
        """The file of a session, whether it exists or not."""
        return transcript_path(self._root, key)

    async def open(self, key: str, *, workspace: str = "", profile: str = "") -> Session:
        """The session, open for writing; made if new. Raises SessionError when it is open already."""
        key = session_key(key)
        file = TranscriptFile(self._place(key), self._clock.now(), key)
        try:
            transcript = self._left(file, key) or _loaded(file, key)
            session = JsonlSession(
                key,
                file,
                transcript,
                clock=self._clock,
                redactor=self._redactor,
                flusher=self._flusher,
                kept=self._kept,
            )
            if not session.head:
                session.begin(workspace, profile)
        except BaseException:
            file.close()
            raise
        return session

    async def read(self, key: str) -> Sequence[AnyEntry]:
        """The entries from the first to the head, without a lock. Raises SessionError for an unknown key."""
        transcript = self._load(session_key(key))
        return transcript.path(transcript.head)

    async def fork(self, key: str, to: str, *, at: str = "") -> None:
        """A new session `to` that begins with all of `key` up to entry `at` (default: its head); `key` stays as it is.

        Raises SessionError where there is no such entry, and when `to` exists.
        """
        key, to = session_key(key), session_key(to)
        source, path = self._load(key), self._place(to)
        if at and at not in source:
            raise SessionError(f"Session {key} has no entry {at!r} to fork from.")
        header = SessionEntry(version=VERSION, key=to, forked_from=key, at=self._clock.now())
        lines = [encode(entry, self._redactor)[0] for entry in forked(source, at or source.head, header)]
        with Lock(path, self._clock.now(), to) as lock:
            if path.exists():
                raise SessionError(f"Session {to} exists already. Give the fork another name, or remove that one.")
            try:
                await create(path, b"".join(lines), self._flusher)
            except BaseException:
                lock.delete()
                raise

    def info(self, key: str) -> SessionInfo | None:
        """The line of the index for one session; None where there is none of that key."""
        return _summary(self.path(key))

    async def list(self) -> Sequence[SessionInfo]:
        """All sessions, the latest first."""
        return await asyncio.to_thread(self._list)

    async def remove(self, key: str) -> None:
        """Delete a session for good. Raises SessionError while it is open, and for an unknown key."""
        path = self.path(key)
        if not path.exists():
            raise self._unknown(session_key(key))
        with Lock(path, self._clock.now(), session_key(key)) as lock, told("delete", path):
            path.unlink()
            lock.delete()

    def _left(self, file: TranscriptFile, key: str) -> Transcript | None:
        """The transcript in memory, where the file is as it was left."""
        closed = self._kept.take(key)
        if closed is None or closed.state != file.found:
            return None
        file.named = closed.named
        return closed.transcript

    def _place(self, key: str) -> Path:
        path = self.path(key)
        try:
            private_folder(path.parent)
        except ConfigError as error:
            raise SessionError(str(error)) from error
        return path

    def _load(self, key: str) -> Transcript:
        path = self.path(key)
        if not path.exists():
            raise self._unknown(key)
        with told("read", path):
            transcript = load(path.read_bytes(), key)
        if transcript.warnings:
            _log.warning("Session %s: %s", key, "; ".join(transcript.warnings[:5]))
        return transcript

    def _unknown(self, key: str) -> SessionError:
        names = {known.rpartition(":")[2]: known for known in map(key_of, self._root.glob("*/*.jsonl"))}
        near = get_close_matches(key.rpartition(":")[2], names, 1)
        hint = f"Did you mean {names[near[0]]}?" if near else "`denizen sessions list` shows those that there are."
        return SessionError(f"There is no session {key}. {hint}")

    def _list(self) -> Sequence[SessionInfo]:
        files = sorted(self._root.glob("*/*.jsonl"), key=_modified, reverse=True)
        found = [info for file in files if (info := _summary(file))]
        return sorted(found, key=lambda info: info.updated, reverse=True)


def _loaded(file: TranscriptFile, key: str) -> Transcript:
    data = file.read()
    transcript = load(data, key)
    file.repair(data)
    return transcript


def _summary(path: Path) -> SessionInfo | None:
    try:
        return summarise(path)
    except FileNotFoundError:
        return None  # removed meanwhile
    except OSError as error:
        _log.warning("%s", explain("read", path, error))
        return SessionInfo(key=key_of(path) or path.stem)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
