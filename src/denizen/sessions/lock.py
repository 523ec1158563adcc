"""One writer per session: a lock that the kernel gives back when its process dies."""

import contextlib
import fcntl
import os
from datetime import datetime
from pathlib import Path
from typing import Self

from denizen.errors import SessionError
from denizen.sessions.disk import explain, identity, is_at

_WIDTH = 80
"""Bytes of the lock file: the text of a new holder hides the last one's."""


class Lock:
    """The right to write the session at `path`: a file beside it that this process holds with flock(2).

    The file names its holder for the message that others get; only the kernel's lock counts. The file stays when the
    lock is given back: to make it each time would cost more than all the rest of opening a session. Whoever deletes or
    replaces it takes the right away: `held` tells. `mark` is what it says from now on, and never said before; `found`
    what it said until now: whoever finds the mark that they left knows that nobody has held it since.
    Raises SessionError when another has it, in this process or elsewhere.
    """

    def __init__(self, path: Path, now: datetime, session: str) -> None:
        self._path = f"{path}.lock"
        try:
            self._fd, self._is = _locked(self._path, session)
        except OSError as error:
            raise SessionError(explain("lock", Path(self._path), error)) from error
        text = f"process {os.getpid()} since {now:%Y-%m-%d %H:%M:%S} UTC\n{os.urandom(8).hex()}"
        self.found, self.mark = b"", text.ljust(_WIDTH).encode()
        with contextlib.suppress(OSError):  # a full disk: the lock is as good without its text
            self.found = os.pread(self._fd, _WIDTH, 0)
            os.pwrite(self._fd, self.mark, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def held(self) -> bool:
        """Whether the file that was locked is still where others look for it."""
        return is_at(self._path, self._is)

    def delete(self) -> None:
        """Remove the file, too, with what it locked."""
        Path(self._path).unlink(missing_ok=True)

    def release(self) -> None:
        """Let others write."""
        fcntl.flock(self._fd, fcntl.LOCK_UN)  # a program that is just being started may hold the file a moment longer
        os.close(self._fd)


def _locked(path: str, session: str) -> tuple[int, tuple[int, int]]:
    """The locked file at `path`, and its identity; one that has just been deleted is made anew."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_at(path, file := identity(os.fstat(fd))):
                return fd, file
        except BlockingIOError:
            holder = os.pread(fd, _WIDTH, 0).decode(errors="replace").partition("\n")[0].strip()
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
