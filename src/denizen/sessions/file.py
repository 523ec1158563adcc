"""The file of a session that is open for writing: whole lines, at its end, and by nobody else."""

import errno
import os
from datetime import datetime
from pathlib import Path

from denizen.errors import SessionError
from denizen.sessions.disk import State, explain, identity, is_at, state_of, told
from denizen.sessions.flush import Flusher
from denizen.sessions.load import extent
from denizen.sessions.lock import Lock


class TranscriptFile:
    """A file that is locked, private to the user (0600), and only grows; made where it is missing.

    Every method raises SessionError when the disk refuses, the first also when another process has the session.
    """

    def __init__(self, path: Path, now: datetime, session: str) -> None:
        self._path = path
        self._session = session
        self._lost = ""  # why nothing more can be written
        self.named = False  # its folders are known to have its name on disk
        self._lock = Lock(path, now, session)
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            self._lock.release()
            raise SessionError(explain("open", path, error)) from error
        self.found = state_of(self._fd, self._lock.found)  # how the last one left it
        self._size = self.found.size

    def state(self) -> State:
        """How it is now, with the size that was written here: it is another when somebody else has added to it."""
        return state_of(self._fd, self._lock.mark)._replace(size=self._size)

    def read(self) -> bytes:
        """All that it holds."""
        with told("read", self._path), open(self._fd, "rb", closefd=False) as file:
            return file.read()

    def repair(self, data: bytes) -> None:
        """Make it ready for more behind `data`: a torn last line is cut off, one that lacks its end gets it."""
        reach = extent(data)
        with told("repair", self._path):
            os.fchmod(self._fd, 0o600)
            if reach.size < len(data):
                os.ftruncate(self._fd, reach.size)
            if reach.unfinished:
                os.write(self._fd, b"\n")
        self._size = reach.size + reach.unfinished

    def check(self) -> None:
        """Raise SessionError unless it is still locked, and still where others look for it."""
        if not self._lost and not self._lock.held():
            self._lost = (
                f"The lock of session {self._session} was deleted or replaced, so another process may be writing it. "
                "Open the session again to go on."
            )
        elif not self._lost and not is_at(str(self._path), identity(os.fstat(self._fd))):
            self._lost = (
                f"The file of session {self._session}, {self._path}, was deleted or replaced while it was in use. "
                "Put it back, or open the session again to begin with what is there."
            )
        self._refuse_if_lost()

    def append(self, line: bytes) -> None:
        """Write the line whole, or nothing of it."""
        self._refuse_if_lost()
        written = 0
        try:
            written = os.write(self._fd, line)
            if written < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._size += written
        except OSError as error:
            self._take_back(written)
            raise SessionError(explain("write to", self._path, error)) from error

    async def sync(self, flusher: Flusher) -> None:
        """Return when all that was written survives the machine's death."""
        self._refuse_if_lost()
        try:
            await flusher.sync(os.dup(self._fd), () if self.named else self._path.parents[:2])
        except OSError as error:
            # The kernel may forget what it failed to write: a second try would succeed and mean nothing.
            self._lost = explain("sync", self._path, error)
            raise SessionError(self._lost) from error
        self.named = True

    @property
    def sound(self) -> bool:
        """Whether it is open, and nothing has gone wrong with it."""
        return not self._lost

    def close(self) -> None:
        """Give the lock back; nothing can be written then. Closing twice is closing once."""
        if self._fd >= 0:
            self._lock.release()
            os.close(self._fd)
            self._fd = -1
            self._lost = f"Session {self._session} is closed. Open it again to go on."

    def _refuse_if_lost(self) -> None:
        if self._lost:
            raise SessionError(self._lost)

    def _take_back(self, written: int) -> None:
        try:
            if written:
                os.ftruncate(self._fd, os.fstat(self._fd).st_size - written)
        except OSError as error:
            self._lost = explain("take half a line back from", self._path, error) + " Open the session again to go on."
