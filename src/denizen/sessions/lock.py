"""One writer per session: a lock that the kernel gives back when its process dies."""

import contextlib
import fcntl
import os
from datetime import datetime
from pathlib import Path
from typing import Self

from denizen.errors import SessionError
from denizen.sessions.disk import identity, is_at, told


class Lock:
    """The right to write the session at `path`: a file beside it that this process holds with flock(2).

    The file names its holder for the message that others get; only the kernel's lock counts, so that a file left
    behind is no obstacle. Whoever deletes or replaces it takes the right away: `held` tells.
    Raises SessionError when another has it, in this process or elsewhere.
    """

    def __init__(self, path: Path, now: datetime, session: str) -> None:
        self._path = path.with_name(f"{path.name}.lock")
        with told("lock", self._path):
            self._fd = _locked(self._path, session)
        self._name, self._is = str(self._path), identity(os.fstat(self._fd))
        with contextlib.suppress(OSError):  # a full disk: the lock is as good without its text
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"process {os.getpid()} since {now:%Y-%m-%d %H:%M:%S} UTC".encode(), 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def held(self) -> bool:
        """Whether the file is still the one that was locked."""
        return is_at(self._name, self._is)

    def release(self) -> None:
        """Let others write."""
        with contextlib.suppress(OSError):  # a file that can't be deleted does no harm
            if self.held():
                self._path.unlink()
        os.close(self._fd)


def _locked(path: Path, session: str) -> int:
    """The locked file at `path`; one that its last holder has just deleted is made anew."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_at(str(path), identity(os.fstat(fd))):
                return fd
        except BlockingIOError:
            holder = os.pread(fd, 200, 0).decode(errors="replace")
            os.close(fd)
            raise SessionError(_busy(session, holder)) from None
        except OSError:
            os.close(fd)
            raise
        os.close(fd)


def _busy(session: str, holder: str) -> str:
    if holder.startswith(f"process {os.getpid()} "):
        return f"Session {session} is already open in this process. Close it there first, or use another session."
    holder = holder or "another process"
    return f"Session {session} is held by {holder}. Wait until it is done, end it, or use another session."
