"""The file of a session that is open for writing: one writer appends whole lines. Explains errors of the disk."""

import asyncio
import contextlib
import errno
import fcntl
import os
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Self

from denizen.errors import SessionError, SessionHeld, SessionUnavailable
from denizen.sessions.codec import extent

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NOT_PERMITTED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_LOCK_TEXT_BYTES = 80
"""Bytes of the lock file: the text of a new holder hides the last one's."""


class FileState(NamedTuple):
    """Identifies one state of a file: which file, its size, and when its content or permissions changed.

    Times of change have a resolution of some milliseconds; `mark`, from the last writer's lock, distinguishes writes
    within that.
    """

    inode: int
    device: int
    size: int
    changed: int  # nanoseconds
    mark: bytes


def explain(doing: str, path: Path, error: OSError) -> str:
    """The disk's error in a sentence or two, with what to do about it."""
    text = f"Can't {doing} {path}: {error.strerror or error}."
    if error.errno in _DISK_FULL:
        return f"{text} Free some space, or raise the quota, and try again; what was written before is safe."
    if error.errno in _NOT_PERMITTED:
        return f"{text} Make it yours to read and write, or move the home with $DENIZEN_HOME."
    return text


@contextlib.contextmanager
def explained(doing: str, path: Path) -> Generator[None]:
    """Turns an OSError into a SessionUnavailable that names the operation and `path`."""
    try:
        yield
    except OSError as error:
        raise SessionUnavailable(explain(doing, path, error)) from error


class Lock:
    """The right to write the session at `path`: a file next to it that this process holds with flock(2).

    The file names its holder for the message that others get; only the kernel's lock counts, and the kernel gives it
    back when the process dies. The file stays when the lock is given back: making it each time would cost more than all
    the rest of opening a session. Whoever deletes or replaces it takes the right away, which `held` notices. `mark` is
    what the file says from now on, and never said before; `found` is what it said until now: whoever finds their own
    mark knows that nobody has held the lock since. Raises SessionError when another has it, in this process or
    elsewhere.
    """

    def __init__(self, path: Path, now: datetime, session: str) -> None:
        self._path = f"{path}.lock"
        with explained("lock", Path(self._path)):
            self._fd, self._identity = _locked(self._path, session)
        text = f"process {os.getpid()} since {now:%Y-%m-%d %H:%M:%S} UTC\n{os.urandom(8).hex()}"
        self.found, self.mark = b"", text.ljust(_LOCK_TEXT_BYTES).encode()
        with contextlib.suppress(OSError):  # a full disk: the lock is as good without its text
            self.found = os.pread(self._fd, _LOCK_TEXT_BYTES, 0)
            os.pwrite(self._fd, self.mark, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def held(self) -> bool:
        """Whether the file that was locked is still where others look for it."""
        return is_at(self._path, self._identity)

    def delete(self) -> None:
        """Remove the file, too, with what it locked."""
        Path(self._path).unlink(missing_ok=True)

    def release(self) -> None:
        """Let others write."""
        fcntl.flock(self._fd, fcntl.LOCK_UN)  # a program that is just being started may hold the file a moment longer
        os.close(self._fd)


class TranscriptFile:
    """A file that is locked, private to the user (0600), and only grows; made where it is missing.

    Every method raises SessionError when the disk refuses, the first also when another process has the session.
    """

    def __init__(self, path: Path, now: datetime, session: str) -> None:
        self._path = path
        self._session = session
        self._lost = ""  # why nothing more can be written
        self.name_is_synced = False  # its folders have its name on disk
        self._lock = Lock(path, now, session)
        try:
            with explained("open", path):
                self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except SessionError:
            self._lock.release()
            raise
        self.found = self._state(self._lock.found)
        """How the last writer left it."""
        self._size = self.found.size

    def state(self) -> FileState:
        """The file's state now, with the size written here: it differs if another program has added to the file."""
        return self._state(self._lock.mark)._replace(size=self._size)

    def read(self) -> bytes:
        """The whole content."""
        with explained("read", self._path), open(self._fd, "rb", closefd=False) as file:
            return file.read()

    def repair(self, data: bytes) -> None:
        """Prepare the file for appending: cut off a torn last line, or end an unfinished one."""
        reach = extent(data)
        with explained("repair", self._path):
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
        try:
            written = os.write(self._fd, line)
        except OSError as error:
            raise SessionUnavailable(explain("write to", self._path, error)) from error
        if written == len(line):
            self._size += written
            return
        try:
            os.ftruncate(self._fd, os.fstat(self._fd).st_size - written)
        except OSError as error:
            self._lost = explain("take half a line back from", self._path, error) + " Open the session again to go on."
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise SessionUnavailable(explain("write to", self._path, full)) from full

    async def sync(self, threads: ThreadPoolExecutor) -> None:
        """Return once everything written survives a crash of the machine."""
        self._refuse_if_lost()
        try:
            await _sync(threads, os.dup(self._fd), () if self.name_is_synced else self._path.parents[:2])
        except OSError as error:
            # The kernel may forget what it failed to write: a second try would succeed and mean nothing.
            self._lost = explain("sync", self._path, error)
            raise SessionUnavailable(self._lost) from error
        self.name_is_synced = True

    @property
    def is_sound(self) -> bool:
        """Whether it is open, and nothing has gone wrong with it."""
        return not self._lost

    def close(self) -> None:
        """Give the lock back; nothing can be written then. Closing twice is closing once."""
        if self._fd >= 0:
            self._lock.release()
            os.close(self._fd)
            self._fd = -1
            self._lost = f"Session {self._session} is closed. Open it again to go on."

    def _state(self, mark: bytes) -> FileState:
        stat = os.fstat(self._fd)
        return FileState(*identity(stat), stat.st_size, stat.st_ctime_ns, mark)

    def _refuse_if_lost(self) -> None:
        if self._lost:
            raise SessionError(self._lost)


async def create(path: Path, data: bytes, threads: ThreadPoolExecutor | None) -> None:
    """Write a new file whole or not at all, private to the user. The caller holds its lock. Raises SessionError."""
    temporary = path.with_name(f".{path.name}.new")
    with explained("write", path):
        try:
            fd = _written(temporary, data)
            await _sync(threads, fd) if threads else os.close(fd)
            temporary.rename(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if threads:
            await _sync(threads, os.open(path, os.O_RDONLY | os.O_CLOEXEC), path.parents[:2])


async def _sync(threads: ThreadPoolExecutor, fd: int, folders: Sequence[Path] = ()) -> None:
    """Return when the file and its names in `folders` survive the machine's death. Closes `fd`. Raises OSError."""

    def sync() -> None:
        with open(fd, "rb", buffering=0):
            if full := getattr(fcntl, "F_FULLFSYNC", None):  # macOS: fsync alone leaves it in the drive's cache
                fcntl.fcntl(fd, full)
            else:
                os.fsync(fd)
        for folder in folders:
            folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder_fd)
            finally:
                os.close(folder_fd)

    # shielded, as the thread must close `fd` even where the caller is cancelled
    await asyncio.shield(asyncio.get_running_loop().run_in_executor(threads, sync))


def _written(path: Path, data: bytes) -> int:
    """The descriptor of a new file that holds `data`."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
    except OSError:
        os.close(fd)
        raise
    return fd


def identity(stat: os.stat_result) -> tuple[int, int]:
    """Identifies a file, whatever its name."""
    return stat.st_ino, stat.st_dev


def is_at(path: str, file: tuple[int, int]) -> bool:
    """Whether `path` still leads to that file. A string, as every message pays for this, and a Path costs thrice."""
    try:
        return identity(os.stat(path)) == file  # noqa: PTH116
    except OSError:
        return False


def _locked(path: str, session: str) -> tuple[int, tuple[int, int]]:
    """The locked file at `path`, and its identity; one that has just been deleted is made again."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_at(path, file := identity(os.fstat(fd))):
                return fd, file
        except BlockingIOError:
            holder = os.pread(fd, _LOCK_TEXT_BYTES, 0).decode(errors="replace").partition("\n")[0].strip()
            os.close(fd)
            if holder.startswith(f"process {os.getpid()} "):
                busy = "is already open in this process. Close it there first, or use another session."
            else:
                busy = (
                    f"is held by {holder or 'another process'}. Wait until it is done, end it, or use another session."
                )
            raise SessionHeld(f"Session {session} {busy}") from None
        except OSError:
            os.close(fd)
            raise
        os.close(fd)
