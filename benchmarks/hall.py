"""Where contenders meet: their processes around one loopback server, measured in turn: a slow minute hits all."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from benchmarks.contenders import Broken, Entry, Process, Server, loopback, scratch
from benchmarks.report import Samples, Table, placeless

Figures = Mapping[str, Any]
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Plan:
    """How thorough a run is."""

    repeats: int  # of everything that is interleaved
    slice_ms: float  # CPU that one measurement of turns should take
    growth: int  # turns of a peer's one session
    history: Sequence[int]  # turns behind the measured ones
    streams: int  # replies per measurement of chunks
    starts: int  # processes started for each figure of a start
    sessions: int  # at once
    messages: int  # of the session that is loaded
    files: Sequence[int]  # of the projects that are checkpointed
    chats: int  # of a gateway, whose messages arrive in random order
    touched: int  # chats of a gateway in all
    worker_chats: int  # for each process that takes turns
    commands: int  # in a text world
    suites: int  # of AgentDojo


FULL = Plan(5, 300, 200, (10, 200, 2000), 10, 5, 200, 10_000, (5_000, 50_000), 1_000, 10_000, 40, 1_000, 4)
QUICK = Plan(2, 20, 20, (10, 100), 3, 1, 10, 1_000, (500, 5_000), 50, 250, 16, 40, 1)


@dataclass(slots=True)
class Hall:
    """The processes of one table; whoever failed is in `failed` with the reason, and takes no further part."""

    server: Server
    processes: dict[str, Process] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def ask(self, name: str, do: str, **arguments: object) -> Figures:
        """Have a contender carry out one command; raises `Broken`."""
        if name not in self.processes:
            raise Broken(self.failed[name])
        return self.processes[name].ask(do, **arguments)

    def interleave(self, lanes: Mapping[K, Callable[[], Figures]], repeats: int) -> dict[K, list[Figures]]:
        """Every lane once, then every lane again, `repeats` times; a lane that fails ends without figures."""
        taken: dict[K, list[Figures]] = {key: [] for key in lanes}
        for _ in range(repeats):
            for key in [key for key in lanes if key in taken]:
                try:
                    taken[key].append(lanes[key]())
                except Broken as error:
                    self.failed[str(key)] = str(error)
                    del taken[key]
        return taken

    def report(self, table: Table) -> None:
        """A row for everyone who failed."""
        for who, why in self.failed.items():
            table.add(who, f"failed: {placeless(why)}")


@contextmanager
def hall(entries: Sequence[Entry], how: str = "scene") -> Generator[Hall]:
    """The contenders' processes, built and waiting; `how` says what the server does."""
    with loopback() as server, scratch() as home, ExitStack() as stack:
        meeting = Hall(server)
        begun = {entry.name: Process(entry, server.url(how), home) for entry in entries}
        for name, process in begun.items():
            stack.callback(process.close)
            _enter(meeting, name, process)
        yield meeting


def _enter(meeting: Hall, name: str, process: Process) -> None:
    try:
        process.wait_until_built()
        meeting.processes[name] = process
    except Broken as error:
        meeting.failed[name] = str(error)


def samples(figures: Sequence[Figures], name: str) -> Samples:
    """One named figure out of several measurements."""
    return Samples([figure[name] for figure in figures])
