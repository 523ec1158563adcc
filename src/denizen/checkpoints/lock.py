"""One at a time: whoever takes or restores a checkpoint holds the shadow repository."""

import contextlib
import fcntl
import os
from collections.abc import AsyncGenerator
from pathlib import Path

from denizen.clock import Clock
from denizen.errors import DenizenError

_PATIENCE = 60.0
"""Seconds that another may take."""
_PAUSE = 0.02
_LEFT_BEHIND = ("*.lock", "refs/heads/*.lock", "refs/checkpoints/*.lock")


@contextlib.asynccontextmanager
async def locked(folder: Path, clock: Clock) -> AsyncGenerator[int]:
    """Hold the repository in `folder`, waiting for others; gives the descriptor that holds it.

    Lock files that git left behind when it was killed are taken away: git itself holds our lock while it lives.
    Raises DenizenError when another doesn't let go for a minute.
    """
    fd = os.open(folder / "held", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        await _wait(fd, folder, clock)
        for pattern in _LEFT_BEHIND:
            for left in folder.glob(pattern):
                left.unlink(missing_ok=True)
        yield fd
    finally:
        os.close(fd)


async def _wait(fd: int, folder: Path, clock: Clock) -> None:
    until = clock.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if clock.monotonic() >= until:
                raise DenizenError(
                    f"Another process has held the checkpoints in {folder} for {_PATIENCE:g} s. "
                    "Wait until it is done, or end it."
                ) from None
            await clock.sleep(_PAUSE)
        else:
            return
