"""Files that say which process has something for itself; the kernel takes the lock back when the process dies."""

import fcntl
import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from denizen.errors import ConfigError

_MAX_TRIES, _RETRY_INTERVAL_S = 10, 0.05
"""Attempts to take a lock, which `holder_of` may hold for a moment, and the seconds between them."""
_POLL_INTERVAL_S = 0.02
"""Seconds between two looks at a lock."""
_PID_CHARS = 20


def lock(path: Path, busy: str) -> int:
    """A descriptor that holds the lock file, which names this process.

    Raises ConfigError if another one does: the words of `busy`, with its number in place of `{holder}`.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for _ in range(_MAX_TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.pwrite(descriptor, str(os.getpid()).ljust(_PID_CHARS).encode(), 0)
            return descriptor
        time.sleep(_RETRY_INTERVAL_S)
    holder = os.pread(descriptor, _PID_CHARS, 0).decode(errors="replace").strip()
    os.close(descriptor)
    raise ConfigError(busy.replace("{holder}", holder))


def holder_of(path: Path) -> int:
    """The id of the process that holds the lock file; 0 if none does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(os.pread(descriptor, _PID_CHARS, 0).strip() or 0)
    finally:
        os.close(descriptor)
    return 0


@contextmanager
def locked(path: Path, stop: threading.Event | None = None) -> Generator[None]:
    """Hold the lock file `path`; wait until no other process or thread does, or until `stop` is set."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not stop:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        while stop and not stop.is_set():
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                stop.wait(_POLL_INTERVAL_S)
        yield
    finally:
        os.close(descriptor)
