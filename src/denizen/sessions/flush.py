"""Brings files to the disk, many at once: the sessions that wait share their way there."""

import asyncio
import fcntl
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_THREADS = 4  # the file system joins what is synced at the same time; more threads gain nothing
_Job = tuple[int, Sequence[Path]]


class Flusher:
    """Syncs files in threads. What is asked for while it is busy is done together in the next round."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "denizen-sync")
        self._waiting: list[tuple[_Job, asyncio.Future[None]]] = []
        self._rounds: asyncio.Task[None] | None = None

    async def sync(self, fd: int, folders: Sequence[Path] = ()) -> None:
        """Return when all that was written to the file, and its names in `folders`, survive the machine's death.

        Closes `fd`, so give it a duplicate. Raises OSError when the disk fails.
        """
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(((fd, folders), done))
        if self._rounds is None or self._rounds.done():
            self._rounds = asyncio.create_task(self._work())
        await done

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch = self._waiting.copy()
            self._waiting.clear()
            shares = [batch[start::_THREADS] for start in range(min(_THREADS, len(batch)))]
            flushed = [loop.run_in_executor(self._threads, _flush, [job for job, _ in share]) for share in shares]
            for share, errors in zip(shares, await asyncio.gather(*flushed), strict=True):
                for (_, done), error in zip(share, errors, strict=True):
                    _settle(done, error)


def _settle(done: asyncio.Future[None], error: OSError | None) -> None:
    if done.done():
        return  # whoever waited was cancelled
    if error:
        done.set_exception(error)
    else:
        done.set_result(None)


def _flush(jobs: Sequence[_Job]) -> list[OSError | None]:
    return [_flush_one(fd, folders) for fd, folders in jobs]


def _flush_one(fd: int, folders: Sequence[Path]) -> OSError | None:
    try:
        with open(fd, "rb", buffering=0):
            _to_disk(fd)
        for folder in folders:
            _flush_folder(folder)
    except OSError as error:
        return error
    return None


def _flush_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _to_disk(fd: int) -> None:
    if full := getattr(fcntl, "F_FULLFSYNC", None):  # macOS: fsync alone leaves it in the drive's cache
        fcntl.fcntl(fd, full)
    else:
        os.fsync(fd)
