"""Four processes that make the same new files of a folder, each at the same moment as the others.

`first_writers.py KIND FOLDER`: exits with 1 where one of them failed.
"""

import multiprocessing
import sys
from multiprocessing.synchronize import Barrier
from pathlib import Path

from denizen.memory.sqlite import FactFile
from denizen.memory.store import FactStore
from denizen.runtime.clock import SystemClock
from denizen.sessions.spend_file import SpendFile

PROCESSES, FILES = 4, 20


def write(kind: str, path: Path, number: int) -> None:
    if kind == "memory":
        FactStore(FactFile(path), "p", SystemClock()).add(f"fact {number}")
    else:
        spend = SpendFile(path)
        spend.add({"day": 1.0})
        spend.close()


def work(kind: str, folder: Path, number: int, start: Barrier) -> None:
    try:
        for file in range(FILES):
            start.wait()
            write(kind, folder / f"{file}.db", number)
    except BaseException:
        start.abort()
        raise


if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    start = fork.Barrier(PROCESSES)
    workers = [fork.Process(target=work, args=(sys.argv[1], Path(sys.argv[2]), n, start)) for n in range(PROCESSES)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    sys.exit(any(worker.exitcode for worker in workers))
