"""Keeps sessions in a PostgreSQL database shared by several machines: one row per entry, with its line of JSON."""

import asyncio
import logging
import math
import os
import secrets
import socket
from collections.abc import Mapping, Sequence, Set
from typing import LiteralString

import msgspec
from msgspec.structs import replace

from denizen.config.redact import Redactor
from denizen.entries import AnyEntry, SessionEntry
from denizen.errors import SessionError, SessionHeld, SessionUnknown
from denizen.ports import Session, SessionInfo
from denizen.runtime.cache import BoundedCache
from denizen.runtime.cancellation import run_to_completion
from denizen.runtime.clock import Clock
from denizen.sessions.codec import ENTRY, encode, load
from denizen.sessions.index import with_entry
from denizen.sessions.jsonl import MAX_CLOSED_BYTES, MAX_CLOSED_SESSIONS, SYNCED
from denizen.sessions.key import bounded, session_key
from denizen.sessions.retry import retry_unavailable
from denizen.sessions.tables import SharedTables
from denizen.sessions.tree import EntryTree, TreeSession

# `used` has an index, which makes each change of it dear: it is exact to ten seconds.
_OPEN = """
WITH opened AS (
    INSERT INTO sessions (key, holder, held_until, info, used)
    VALUES (%(key)s, %(holder)s, now() + %(lease)s * interval '1 second', %(info)s, %(now)s)
    ON CONFLICT (key) DO UPDATE
    SET fence = sessions.fence + 1, holder = excluded.holder, held_until = excluded.held_until,
        used = CASE WHEN sessions.used < excluded.used - 10 THEN excluded.used ELSE sessions.used END
    WHERE sessions.held_until IS NULL OR sessions.held_until < now() OR sessions.holder = excluded.holder
    RETURNING id, fence, entries, info::text
)
SELECT opened.*, ARRAY(SELECT line FROM entries WHERE session = id AND seq >= %(since)s ORDER BY seq) FROM opened
"""
_RENEW = """
UPDATE sessions SET held_until = now() + %(lease)s * interval '1 second'
WHERE key = ANY(%(keys)s) AND holder = %(holder)s AND held_until IS NOT NULL
RETURNING key
"""
_RELEASE = """
UPDATE sessions SET held_until = NULL, info = COALESCE(%(info)s, info),
    used = CASE WHEN used < %(now)s - 10 THEN %(now)s ELSE used END
WHERE key = %(key)s AND holder = %(holder)s
"""
# One statement, so that nobody takes the session over between the look at its fence and the entry. It may be repeated:
# an entry of that number is the one of an earlier try, whose answer was lost, or the statement gives no row.
_APPEND = """
WITH held AS (
    UPDATE sessions SET entries = %(seq)s, info = COALESCE(%(info)s, info)
    WHERE id = %(id)s AND fence = %(fence)s AND entries IN (%(seq)s - 1, %(seq)s)
    RETURNING id, set_config('synchronous_commit', %(commit)s, true)
)
INSERT INTO entries SELECT id, %(seq)s, %(line)b FROM held
ON CONFLICT (session, seq) DO UPDATE SET line = excluded.line WHERE entries.line = excluded.line
RETURNING 1
"""
_SYNC = """
UPDATE sessions SET entries = entries WHERE id = %(id)s AND fence = %(fence)s AND entries = %(seq)s
RETURNING set_config('synchronous_commit', 'on', true)
"""
_LINES = "SELECT line FROM entries JOIN sessions ON session = id WHERE key = %(key)s ORDER BY seq"
_FORK = """
WITH made AS (
    INSERT INTO sessions (key, holder, entries, info, used) VALUES (%(key)s, '', %(count)s, %(info)s, %(now)s)
    ON CONFLICT DO NOTHING RETURNING id, set_config('synchronous_commit', 'on', true)
)
INSERT INTO entries SELECT id, seq, line FROM made, unnest(%(lines)b::bytea[]) WITH ORDINALITY AS one (line, seq)
RETURNING 1
"""
_PAGE = """
SELECT info::text, used FROM sessions WHERE entries > 0 AND used < %(before)s
ORDER BY used DESC FETCH FIRST (%(limit)s) ROWS WITH TIES
"""
_HOLDER = "SELECT holder FROM sessions WHERE key = %(key)s"
_REMOVE = """
DELETE FROM sessions WHERE key = %(key)s AND (held_until IS NULL OR held_until < now() OR holder = %(holder)s)
AND (info->>'updated')::double precision < %(since)s
RETURNING 1
"""
_log = logging.getLogger(__name__)


class _Lease:
    """The right to write a session, for as long as it is renewed; `until` is in the event loop's time."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.is_begun = False  # the session is open
        self.lost = asyncio.Event()


class PostgresStore:
    """Sessions in a database. An open session is held by a lease, and lost when the lease isn't renewed in time.

    Keys may be short names; they are normalised. No secret that `redactor` knows reaches the database. A lease is for
    `lease` seconds of the database's clock. `clock` dates the entries. Those of the types `synced` survive the server's
    machine when they are appended, the others with `sync` or the next of these. With `retry_s` an entry that the
    database refuses is tried again every so many seconds.
    """

    def __init__(
        self,
        tables: SharedTables,
        *,
        clock: Clock,
        redactor: Redactor | None = None,
        lease: float = 15.0,
        synced: Set[type[AnyEntry]] = SYNCED,
        retry_s: float = 0.0,
    ) -> None:
        self.tables = tables
        self.retry_s = retry_s
        self.synced = synced
        self.clock = clock
        self.redactor = redactor or Redactor()
        self._lease = lease
        self._holder = f"process {os.getpid()} on {socket.gethostname()} ({secrets.token_hex(4)})"
        self._open: dict[str, _Lease] = {}
        self._renewal: asyncio.Task[None] | None = None
        self._closed = BoundedCache[PostgresSession](MAX_CLOSED_SESSIONS, MAX_CLOSED_BYTES)

    async def open(self, key: str, *, workspace: str = "", profile: str = "") -> Session:
        """The session, open for writing; made if new. Raises SessionError when it is open already."""
        key = session_key(key)
        if key in self._open:
            raise SessionHeld(
                f"Session {key} is already open in this process. Close it there first, or use another session."
            )
        lease = self._open[key] = _Lease(self._lease_end())
        self._begin_renewing()
        try:
            return await self._opened(key, workspace, profile, lease)
        except BaseException:
            await run_to_completion(self.release(key))
            raise

    async def read(self, key: str) -> Sequence[AnyEntry]:
        """The entries from the first to the head, without a lock. Raises SessionError for an unknown key."""
        return (await self._load(session_key(key))).branch

    async def fork(self, key: str, to: str, *, at: str = "") -> None:
        """A new session `to` that begins with all of `key` up to entry `at` (default: its head); `key` stays as it is.

        Raises SessionError if there is no such entry, and when `to` exists.
        """
        key, to = session_key(key), session_key(to)
        source = await self._load(key)
        info, lines = SessionInfo(to), list[bytes]()
        for entry in source.fork(key, to, at, self.clock.now()):
            line, entry = encode(entry, self.redactor)
            info = with_entry(info, entry, len(line))
            lines.append(line)
        row = {"key": bounded(to), "count": len(lines), "info": _text(info), "now": self._now()}
        if not await self.tables.fetch(_FORK, lines=lines, **row):
            raise SessionError(f"Session {to} exists already. Give the fork another name, or remove that one.")

    async def list(self) -> Sequence[SessionInfo]:
        """All sessions, the latest first."""
        return sorted(await self.page(2**31), key=lambda info: info.updated, reverse=True)

    async def page(self, limit: int, before: float = math.inf) -> Sequence[SessionInfo]:
        """The `limit` sessions that were last used before that time, the latest first; all of the last moment."""
        rows = await self.tables.fetch(_PAGE, limit=limit, before=before)
        return [replace(msgspec.json.decode(info, type=SessionInfo), used=used) for info, used in rows]

    async def remove(self, key: str, *, unused_since: float = math.inf) -> None:
        """Delete a session for good. Raises SessionError while it is open, or was written, and for an unknown key."""
        key = session_key(key)
        if key in self._open:
            raise SessionHeld(f"Session {key} is open in this process. Close it first.")
        values = {"key": bounded(key), "holder": self._holder, "since": unused_since}
        if not await self.tables.fetch(_REMOVE, **values):
            raise await self._refusal(key)

    async def release(self, key: str, info: str | None = None) -> None:
        """Let others open the session, with this line of the index unless it is there."""
        try:
            await self.tables.fetch(_RELEASE, key=bounded(key), holder=self._holder, info=info, now=self._now())
        except SessionError as error:
            _log.warning("Session %s is held for up to %g s longer: %s", key, self._lease, error)
        self._open.pop(key, None)
        if self._renewal and not self._open:
            self._renewal.cancel()
            self._renewal = None  # it isn't done yet: who opens a session now begins another

    def keep_closed(self, session: "PostgresSession", size: int) -> None:
        """Keep in memory what may be opened again."""
        self._closed.put(session.key, session, size)

    async def _opened(self, key: str, workspace: str, profile: str, held: _Lease) -> "PostgresSession":
        closed = self._closed.take(key)
        since = closed.count if closed else 0
        lease = {"holder": self._holder, "lease": self._lease, "now": self._now()}
        rows = await self.tables.fetch(_OPEN, key=bounded(key), info=_text(SessionInfo(key)), since=since, **lease)
        if not rows:
            raise await self._refusal(key)
        [(number, fence, count, info, lines)] = rows
        if closed and closed.is_followed_by(number, count, lines):
            tree = closed.tree
            for line_number, line in enumerate(lines[1:], since + 1):
                tree.restore(line_number, ENTRY.decode(line))
        else:
            lines = lines if not since and len(lines) == count else await self._lines(key)
            tree = load(b"".join(lines), key)
        info = msgspec.json.decode(info, type=SessionInfo)
        session = PostgresSession(self, info, tree, held, number=number, fence=fence, count=count)
        session.last_line = lines[-1] if lines else b""
        if not session.head:
            await session.write(SessionEntry(key=key, workspace=workspace, profile=profile))
        return session

    def _now(self) -> float:
        return self.clock.now().timestamp()

    async def _load(self, key: str) -> EntryTree:
        if not (lines := await self._lines(key)):
            raise self._unknown(key)
        return load(b"".join(lines), key)

    async def _lines(self, key: str) -> Sequence[bytes]:
        return [line for (line,) in await self.tables.fetch(_LINES, key=bounded(key))]

    async def _refusal(self, key: str) -> SessionError:
        """Why a session can't be opened or removed."""
        for (holder,) in await self.tables.fetch(_HOLDER, key=bounded(key)):
            return SessionHeld(
                f"Session {key} is held by {holder}. Wait until it is done, end it, or use another session."
            )
        return self._unknown(key)

    def _unknown(self, key: str) -> SessionUnknown:
        return SessionUnknown(f"There is no session {key}. `denizen sessions list` shows all sessions.")

    def _begin_renewing(self) -> None:
        running = asyncio.get_running_loop()
        if not self._renewal or self._renewal.done() or self._renewal.get_loop() is not running:
            self._renewal = running.create_task(self._renew())

    async def _renew(self) -> None:
        pause_s = self._lease / 3  # a lease is of real time, whatever clock dates the entries
        while True:
            await asyncio.sleep(pause_s)
            open_now = {key: lease for key, lease in self._open.items() if lease.is_begun}
            until = self._lease_end()
            try:
                async with asyncio.timeout(self._lease / 3):
                    rows = await self.tables.fetch(
                        _RENEW, keys=[*map(bounded, open_now)], holder=self._holder, lease=self._lease
                    )
            except (SessionError, TimeoutError) as error:
                _log.warning("Open sessions can't be renewed, and others may take them over: %s", error)
                pause_s = self._lease / 15
                has_refused = getattr(error.__cause__, "sqlstate", None)  # the database itself: others, too
                if not has_refused:
                    self._give_up_expired(open_now)
                continue
            pause_s = self._lease / 3
            renewed = {key for (key,) in rows}
            for key, lease in open_now.items():
                if bounded(key) in renewed:
                    lease.until = until
                elif self._open.get(key) is lease:
                    lease.lost.set()

    def _give_up_expired(self, leases: Mapping[str, _Lease]) -> None:
        """Count sessions as lost whose lease is over: somebody who reaches the database may have them."""
        now = asyncio.get_running_loop().time()
        for lease in leases.values():
            if lease.until < now:
                lease.lost.set()

    def _lease_end(self) -> float:
        """When a lease ends that is renewed now."""
        return asyncio.get_running_loop().time() + self._lease


class PostgresSession(TreeSession):
    """A session of a `PostgresStore` that is open for writing: an entry is in the table before it is in `entries`.

    An append costs the same however long the session is.
    """

    def __init__(
        self,
        store: PostgresStore,
        info: SessionInfo,
        tree: EntryTree,
        lease: _Lease,
        *,
        number: int,
        fence: int,
        count: int,
    ) -> None:
        super().__init__(info.key, tree)
        self._store = store
        self._info = info
        self._is_info_written = True
        self.last_line = b""
        self._lease = lease
        lease.is_begun = True
        self._number, self._fence, self.count = number, fence, count
        self._unsynced = False
        self._is_open = True
        self._one_at_a_time = asyncio.Lock()

    def is_followed_by(self, number: int, count: int, lines: Sequence[bytes]) -> bool:
        """Whether a session with this number and count of entries begins with all of this, whose last line is first."""
        return (number, lines[:1], count) == (self._number, [self.last_line], self.count + len(lines) - 1)

    async def append(self, entry: AnyEntry, *, expect_head: str | None = None) -> str:
        """Write the entry after the head and return its id; `SessionStore` says what that promises."""
        async with self._one_at_a_time:
            self.tree.check(entry, self.key, expect_head)
            return await retry_unavailable(
                lambda: run_to_completion(self.write(entry)), self._store.clock, self._store.retry_s
            )

    async def sync(self) -> None:
        """All that was written survives the death of the server's machine."""
        async with self._one_at_a_time:
            if self._unsynced:
                await self._fetch(_SYNC, seq=self.count)
                self._unsynced = False

    async def lost(self) -> None:
        """Return once another worker has the session, or the lease is over and the database out of reach."""
        await self._lease.lost.wait()

    async def close(self) -> None:
        """Give the lease back."""
        async with self._one_at_a_time:
            if not self._is_open:
                return
            self._is_open = False
            if not self.warnings:
                self._store.keep_closed(self, self._info.bytes)
            info = None if self._is_info_written else _text(self._info)
            await run_to_completion(self._store.release(self.key, info))

    async def write(self, entry: AnyEntry) -> str:
        """Write the entry after the head, whatever it is."""
        synced = type(entry) in self._store.synced
        entry = self.placed(entry, self._store.clock.now())
        line, entry = encode(entry, self._store.redactor)
        info = with_entry(self._info, entry, len(line))
        # time and size alone can wait for the end: the text is most of what is logged of an entry
        is_changed = replace(info, updated=self._info.updated, bytes=self._info.bytes) != self._info
        text, commit = _text(info) if is_changed else None, "on" if synced else "off"
        await self._fetch(_APPEND, seq=self.count + 1, line=line, info=text, commit=commit)
        self.count, self._info, self._unsynced = self.count + 1, info, not synced
        self.last_line, self._is_info_written = line, is_changed
        self.add(entry)
        return entry.id

    async def _fetch(self, statement: LiteralString, **values: object) -> None:
        if not self._is_open:
            raise SessionError(f"Session {self.key} is closed. Open it again to go on.")
        ids = {"id": self._number, "fence": self._fence}
        if self._lease.lost.is_set() or not await self._store.tables.fetch(statement, **ids, **values):
            raise SessionError(
                f"Session {self.key} was taken over by another worker, or removed, or the database has lost its end; "
                "nothing more of this turn is recorded. Open the session again to go on."
            )


def _text(info: SessionInfo) -> str:
    return msgspec.json.encode(info).decode()
