"""A session that is open for writing: its entries in memory, each of them in the file before it is there."""

from collections.abc import Sequence

from msgspec.structs import replace

from denizen.cache import BoundedCache
from denizen.clock import Clock
from denizen.config.redact import Redactor
from denizen.entries import AnswerEntry, AnyEntry, HeadEntry, ParkedEntry, SessionEntry, StartedEntry, UserEntry
from denizen.errors import SessionError
from denizen.sessions.file import TranscriptFile
from denizen.sessions.flush import Flusher
from denizen.sessions.kept import Closed
from denizen.sessions.line import encode
from denizen.sessions.transcript import Transcript

_SYNCED = frozenset({UserEntry, StartedEntry, ParkedEntry, AnswerEntry})


class JsonlSession:
    """A session of a `JsonlStore`. An append costs the same however long the session is."""

    def __init__(
        self,
        key: str,
        file: TranscriptFile,
        transcript: Transcript,
        *,
        clock: Clock,
        redactor: Redactor,
        flusher: Flusher | None,
        kept: BoundedCache[Closed],
    ) -> None:
        self.key = key
        self.head = transcript.head
        self.entries: Sequence[AnyEntry] = transcript.branch
        self.warnings: Sequence[str] = transcript.warnings
        self._file = file
        self._transcript = transcript
        self._clock = clock
        self._redactor = redactor
        self._flusher = flusher
        self._kept = kept

    @property
    def moved(self) -> bool:
        """Whether the head was moved here, or the session forked, and nothing was written since."""
        return self._transcript.moved

    def begin(self, workspace: str, profile: str) -> None:
        """Write the header of a new session."""
        self._write(SessionEntry(key=self.key, workspace=workspace, profile=profile))

    async def append(self, entry: AnyEntry, *, expect_head: str | None = None) -> str:
        """Write the entry behind the head and return its id; `SessionStore` says what that promises."""
        if expect_head is not None and expect_head != self.head:
            raise SessionError(
                f"Session {self.key} stands at entry {self.head!r}, not at {expect_head!r}: it has gone on. Look again."
            )
        self._check(entry)
        if type(entry) not in _SYNCED:
            return self._write(entry)
        self._file.check()  # for each line it would cost more than the line
        written = self._write(entry)
        await self.sync()
        return written

    async def move_head(self, to: str) -> None:
        """Continue from entry `to`; nothing is deleted."""
        await self.append(HeadEntry(to=to))

    async def sync(self) -> None:
        """All that was written survives the machine's death."""
        if self._flusher:
            await self._file.sync(self._flusher)

    async def close(self) -> None:
        """Give the lock back, and keep in memory what may be asked for again."""
        if self._file.sound and not self.warnings:
            state = self._file.state()
            self._kept.put(self.key, Closed(self._transcript, state, self._file.named), state.size)
        self._file.close()

    def _check(self, entry: AnyEntry) -> None:
        if type(entry) is SessionEntry:
            raise SessionError(f"Session {self.key} has its header; there can't be a second one.")
        if type(entry) is HeadEntry and entry.to not in self._transcript:
            raise SessionError(f"Session {self.key} has no entry {entry.to!r} to continue from.")

    def _write(self, entry: AnyEntry) -> str:
        transcript = self._transcript
        entry = replace(entry, id=transcript.next_id(), parent=self.head, at=self._clock.now())
        line, entry = encode(entry, self._redactor)
        self._file.append(line)
        transcript.add(entry)
        self.head, self.entries = transcript.head, transcript.branch
        return entry.id
