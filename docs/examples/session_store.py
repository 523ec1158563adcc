"""A session store: conversations in memory, gone when the process is."""

from collections.abc import Sequence

import msgspec

from denizen import Agent, run_agent_sync
from denizen.clock import Clock, SystemClock
from denizen.config.redact import Redactor
from denizen.entries import AnyEntry, EndEntry, HeadEntry, SessionEntry, UserEntry
from denizen.errors import SessionError
from denizen.ports import Session, SessionInfo
from denizen.sessions import EntryTree, encode, session_key
from denizen.testing import ScriptedModel


class SharedTree(EntryTree):
    """A session's tree of entries, and who writes it."""

    writer: Session | None = None


class MemorySession:
    """A session that is open for writing."""

    warnings: Sequence[str] = ()

    def __init__(self, key: str, tree: SharedTree, clock: Clock) -> None:
        self.key = key
        self.head = tree.head
        self.entries: Sequence[AnyEntry] = tree.branch
        self._tree = tree
        self._clock = clock

    @property
    def moved(self) -> bool:
        """Whether the head was moved here and nothing was written since."""
        return self._tree.moved

    async def append(self, entry: AnyEntry, *, expect_head: str | None = None) -> str:
        """Keep the entry after the head; returns its id."""
        if self._tree.writer is not self or expect_head not in (None, self.head):
            raise SessionError(f"{self.key} is closed, or has gone on")
        if isinstance(entry, SessionEntry) and self.head:
            raise SessionError(f"{self.key} has its header")
        if isinstance(entry, HeadEntry) and entry.to not in self._tree:
            raise SessionError(f"{self.key} has no entry {entry.to!r}")
        name = self._tree.next_id()
        entry = msgspec.structs.replace(entry, id=name, parent=self.head, at=self._clock.now())
        _, entry = encode(entry, Redactor())  # what a file would hold
        self._tree.add(entry)
        self.head, self.entries = self._tree.head, self._tree.branch
        return name

    async def move_head(self, to: str) -> None:
        """Continue from entry `to`."""
        await self.append(HeadEntry(to=to))

    async def sync(self) -> None:
        """Nothing survives the machine's death here."""

    async def close(self) -> None:
        """Let others write."""
        if self._tree.writer is self:
            self._tree.writer = None


class MemoryStore:
    """Sessions in a dictionary, which several stores may share."""

    def __init__(self, sessions: dict[str, SharedTree] | None = None, clock: Clock | None = None) -> None:
        self._sessions = {} if sessions is None else sessions
        self._clock = clock or SystemClock()

    async def open(self, key: str, *, workspace: str = "", profile: str = "") -> Session:
        """The session, made if new, for one writer at a time."""
        key = session_key(key)
        tree = self._sessions.setdefault(key, SharedTree())
        if tree.writer:
            raise SessionError(f"{key} is open already")
        tree.writer = session = MemorySession(key, tree, self._clock)
        if not session.head:
            await session.append(SessionEntry(key=key, workspace=workspace, profile=profile))
        return session

    async def read(self, key: str) -> Sequence[AnyEntry]:
        """The entries up to the head."""
        return self._find(key).branch

    async def fork(self, key: str, to: str, *, at: str = "") -> None:
        """A new session with what led to entry `at`."""
        source, to, fork = self._find(key), session_key(to), SharedTree()
        if to in self._sessions or (at and at not in source):
            raise SessionError(f"{to} exists, or {key} has no entry {at!r}")
        header = SessionEntry(key=to, forked_from=session_key(key), at=self._clock.now())
        for entry in source.fork(at or source.head, header):
            fork.add(entry)
        self._sessions[to] = fork

    async def list(self) -> Sequence[SessionInfo]:
        """All of them, the latest first."""
        return sorted(map(_info, self._sessions.values()), key=lambda info: info.updated, reverse=True)

    async def remove(self, key: str) -> None:
        """Forget one."""
        if self._find(key).writer:
            raise SessionError(f"{key} is open")
        del self._sessions[session_key(key)]

    def _find(self, key: str) -> SharedTree:
        if session_key(key) not in self._sessions:
            raise SessionError(f"there is no session {key}")
        return self._sessions[session_key(key)]


def _info(tree: SharedTree) -> SessionInfo:
    entries = tree.branch
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
