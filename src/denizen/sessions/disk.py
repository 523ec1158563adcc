"""Files on a disk that may refuse: what is said then, and whether a file is still the same, or as it was."""

import contextlib
import errno
import os
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from denizen.errors import SessionError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class State(NamedTuple):
    """What changes whenever a file does: which one it is, its size, and when it, or the right to read it, changed.

    Many kernels' clocks for that stand still for some milliseconds; `mark` tells apart what writers do meanwhile: that
    of the last one's lock.
    """

    inode: int
    device: int
    size: int
    changed: int  # nanoseconds
    mark: bytes


def explain(doing: str, path: Path, error: OSError) -> str:
    """What the disk refused, and what to do, in a sentence or two."""
    text = f"Can't {doing} {path}: {error.strerror or error}."
    if error.errno in _FULL:
        return f"{text} Free some space, or raise the quota, and try again; what was written before is safe."
    if error.errno in _FORBIDDEN:
        return f"{text} Make it yours to read and write, or move the home with $DENIZEN_HOME."
    return text


@contextlib.contextmanager
def told(doing: str, path: Path) -> Generator[None]:
    """Turns the disk's refusal into a SessionError that says what was being done to `path`."""
    try:
        yield
    except OSError as error:
        raise SessionError(explain(doing, path, error)) from error


def identity(stat: os.stat_result) -> tuple[int, int]:
    """What makes a file the same file, whatever its name."""
    return stat.st_ino, stat.st_dev


def state_of(fd: int, mark: bytes) -> State:
    """How an open file is now, after a writer whose lock had this mark."""
    stat = os.fstat(fd)
    return State(*identity(stat), stat.st_size, stat.st_ctime_ns, mark)


def is_at(path: str, file: tuple[int, int]) -> bool:
    """Whether `path` still leads to that file. A string, as every message pays for this, and a Path costs thrice."""
    try:
        return identity(os.stat(path)) == file  # noqa: PTH116
    except OSError:
        return False
