"""Syncs files to the disk in threads, so that sessions share the disk's time and nobody waits for another's file."""

import asyncio
import fcntl
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_THREADS = 4  # the file system joins what is synced at the same time; more threads gain nothing


class Flusher:
    """Syncs files, up to four at once."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "denizen-sync")

    async def sync(self, fd: int, folders: Sequence[Path] = ()) -> None:
        """Return when all that was written to the file, and its names in `folders`, survive the machine's death.

        Closes `fd`, so give it a duplicate. Raises OSError when the disk fails.
        """
        # shielded, as the thread must close `fd` even where the caller is cancelled
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._threads, _flush, fd, folders))


def _flush(fd: int, folders: Sequence[Path]) -> None:
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
