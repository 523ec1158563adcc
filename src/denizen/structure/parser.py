"""Parses code in a separate process: a text can keep a parser busy forever, fill the memory, or crash the library."""

import atexit
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from typing import TypeVar

T = TypeVar("T")

MIN_TIMEOUT_S = 2.0
TIMEOUT_S_PER_MB = 10.0
"""CPU time that a text may take; usual code needs a tenth of it."""
MAX_MEMORY_BYTES = 2_000_000_000
"""Bytes, per process."""
MAX_IDLE = 2
"""Processes kept for the next text."""


class Unparsable(Exception):
    """The file is too large to be parsed, or takes too long."""


@dataclass(frozen=True, slots=True)
class _Parser:
    """A process that parses, and the id of the process that started it."""

    process: "subprocess.Popen[bytes]"
    connection: Connection
    owner: int

    @classmethod
    def start(cls) -> "_Parser":
        ours, theirs = Pipe()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", f"from {__name__} import serve; serve({theirs.fileno()})"],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        atexit.register(_end_idle)
        return cls(process, ours, os.getpid())

    def end(self) -> int:
        """End the process. Returns the signal that ended it if it was dead already."""
        self.connection.close()
        self.process.kill()
        return -self.process.wait()


_idle: list[_Parser] = []


def parsed(work: Callable[[bytes, str], T], source: bytes, language: str) -> T:
    """The result of `work`, a module's function, for a text; its exceptions are raised here.

    Blocks. Raises Unparsable if it takes too long or too much memory.
    """
    parser = None
    while _idle and parser is None:
        with suppress(IndexError):  # another thread was faster
            parser = _idle.pop()
            if parser.owner != os.getpid() or parser.process.poll() is not None:
                parser = None
    parser = parser or _Parser.start()
    try:
        parser.connection.send((work, source, language))
        result, error = parser.connection.recv()
    except (EOFError, OSError) as gone:
        ended = parser.end()
        why = "too long to parse" if ended == signal.SIGPROF else f"not parsable: its parser crashed ({ended})"
        raise Unparsable(why) from gone
    if len(_idle) < MAX_IDLE:
        _idle.append(parser)
    else:
        parser.end()
    if error:
        raise error
    return result


def _end_idle() -> None:
    while _idle:
        _idle.pop().end()


def serve(descriptor: int) -> None:
    """Do the work that comes through the pipe until it is closed. Work that takes too long ends the process."""
    connection = Connection(descriptor)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(ValueError):  # the limit is lower already
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    with suppress(EOFError, ConnectionError):
        while True:
            work, source, language = connection.recv()
            signal.setitimer(signal.ITIMER_PROF, MIN_TIMEOUT_S + TIMEOUT_S_PER_MB * len(source) / 1_000_000)
            try:
                answer = work(source, language), None
            except Exception as error:  # noqa: BLE001 (it is raised in the process that asked)
                answer = None, error
            signal.setitimer(signal.ITIMER_PROF, 0)
            connection.send(answer)
