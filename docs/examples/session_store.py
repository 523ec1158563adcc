"""A session store: conversations in memory, gone when the process is."""

from collections.abc import Sequence

import msgspec

from denizen import Agent, run_agent_sync
from denizen.clock import Clock, SystemClock
from denizen.config.redact import Redactor
from denizen.entries import AnyEntry, EndEntry, HeadEntry, SessionEntry, UserEntry
from denizen.errors import SessionError
from denizen.ports import Session, SessionInfo
from denizen.sessions import session_key
from denizen.sessions.line import encode
from denizen.sessions.transcript import Transcript
from denizen.testing import ScriptedModel


class Kept(Transcript):
    """A session's tree of entries, and who writes it."""

    writer: Session | None = None


class MemorySession:
    """A session that is open for writing."""

    warnings: Sequence[str] = ()

    def __init__(self, key: str, kept: Kept, clock: Clock) -> None:
        self.key = key
        self.head = kept.head
        self.entries: Sequence[AnyEntry] = ()
        self._kept = kept
        self._clock = clock
        self._follow_head()

    @property
    def moved(self) -> bool:
        """Whether the head was moved here and nothing was written since."""
        return self._kept.moved

    async def append(self, entry: AnyEntry, *, expect_head: str | None = None) -> str:
        """Keep the entry behind the head; returns its id."""
        if self._kept.writer is not self or expect_head not in (None, self.head):
            raise SessionError(f"{self.key} is closed, or has gone on")
        if isinstance(entry, SessionEntry) and self.head:
            raise SessionError(f"{self.key} has its header")
        if isinstance(entry, HeadEntry) and entry.to not in self._kept:
            raise SessionError(f"{self.key} has no entry {entry.to!r}")
        name = self._kept.next_id()
        entry = msgspec.structs.replace(entry, id=name, parent=self.head, at=self._clock.now())
        _, entry = encode(entry, Redactor())  # what a file would hold
        self._kept.add(entry)
        self.head = self._kept.head
        if isinstance(entry, HeadEntry):
            self._follow_head()
        else:
            self._path.append(entry)
        return name

    async def move_head(self, to: str) -> None:
        """Continue from entry `to`."""
        await self.append(HeadEntry(to=to))

    async def sync(self) -> None:
        """Nothing survives the machine's death here."""

    async def close(self) -> None:
        """Let others write."""
        if self._kept.writer is self:
            self._kept.writer = None

    def _follow_head(self) -> None:
        self.entries = self._path = self._kept.path(self.head)  # another list: whoever reads along begins anew


class MemoryStore:
    """Sessions in a dictionary, which several stores may share."""

    def __init__(self, sessions: dict[str, Kept] | None = None, clock: Clock | None = None) -> None:
        self._sessions = {} if sessions is None else sessions
        self._clock = clock or SystemClock()

    async def open(self, key: str, *, workspace: str = "", profile: str = "") -> Session:
        """The session, made if new, for one writer at a time."""
        key = session_key(key)
        kept = self._sessions.setdefault(key, Kept())
        if kept.writer:
            raise SessionError(f"{key} is open already")
        kept.writer = session = MemorySession(key, kept, self._clock)
        if not session.head:
            await session.append(SessionEntry(key=key, workspace=workspace, profile=profile))
        return session

    async def read(self, key: str) -> Sequence[AnyEntry]:
        """The entries up to the head."""
        kept = self._find(key)
        return kept.path(kept.head)

    async def fork(self, key: str, to: str, *, at: str = "") -> None:
        """A new session with what led to entry `at`."""
        source, to, fork = self._find(key), session_key(to), Kept()
        if to in self._sessions or (at and at not in source):
            raise SessionError(f"{to} exists, or {key} has no entry {at!r}")
        for entry in source.path(at or source.head):
            if isinstance(entry, SessionEntry):
                entry = msgspec.structs.replace(entry, key=to, forked_from=session_key(key), at=self._clock.now())
            fork.add(msgspec.structs.replace(entry, parent=fork.head))
        self._sessions[to] = fork

    async def list(self) -> Sequence[SessionInfo]:
        """All of them, the latest first."""
        return sorted(map(_info, self._sessions.values()), key=lambda info: info.updated, reverse=True)

    async def remove(self, key: str) -> None:
        """Forget one."""
        if self._find(key).writer:
            raise SessionError(f"{key} is open")
        del self._sessions[session_key(key)]

    def _find(self, key: str) -> Kept:
        if session_key(key) not in self._sessions:
            raise SessionError(f"there is no session {key}")
        return self._sessions[session_key(key)]


def _info(kept: Kept) -> SessionInfo:
    entries = kept.path(kept.head)
    header = next(entry for entry in entries if isinstance(entry, SessionEntry))
    said = next((entry.message.text for entry in entries if isinstance(entry, UserEntry)), "")
    end = next((entry for entry in reversed(entries) if isinstance(entry, EndEntry)), None)
    info = SessionInfo(header.key, " ".join(said.split()), header.workspace, bytes=len(str(entries)))
    info = msgspec.structs.replace(info, updated=entries[-1].at.timestamp() if entries[-1].at else 0.0)
    if end is None:
        return info
    usage = end.last_call_usage
    return msgspec.structs.replace(
        info,
        model=end.model,
        tokens=usage.context,
        stop_reason=end.stop_reason,
        cost_usd=end.usage.cost_usd or 0.0,
    )


if __name__ == "__main__":
    store = MemoryStore()
    agent = Agent(store=store, tools=[], model=ScriptedModel(["Hello, Ann."]))
    print(run_agent_sync("I'm Ann.", agent=agent).reply)
