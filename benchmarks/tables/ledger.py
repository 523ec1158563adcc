"""What a turn costs the database that a gateway shares with its workers."""

import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.contenders import Broken, Entry, scratch
from benchmarks.gateway import serving
from benchmarks.hall import Figures, Hall, Plan, hall, samples
from benchmarks.report import Goal, Table
from benchmarks.roster import VISITORS
from benchmarks.tables.gateway import SLOTS, WAITS, visit

if TYPE_CHECKING:
    from tests.postgres import OwnServer

NOTE = """\
A PostgreSQL server of its own, the gateway and its workers with {slots} turns at once in each process, and a model that
takes {waits:g} s; {chats} people for each process, {count} messages each. Statements (those that clients send, by
pg_stat_statements) and write-ahead log are of the whole database. *Lock wait* is sampled every {every:g} ms in
pg_stat_activity. CPU is of PostgreSQL, the gateway and the workers together. *Idle* is what each process then sends,
and its connections, over {idle:g} s without messages. The gateway is the first of the processes."""
COLUMNS = (
    *("processes", "turns/s", "statements per turn", "log, kB per turn", "lock wait, ms per turn"),
    *("CPU ms per turn", "× one", "idle statements/s", "idle connections"),
)
PROCESSES, COUNT, EVERY, IDLE = (1, 2, 4, 8), 20, 0.005, 20.0
_OPTIONS = "-c shared_preload_libraries=pg_stat_statements -c max_connections=200"
_RESET = "SELECT count(pg_stat_statements_reset())"
_STATEMENTS = """
SELECT coalesce(sum(calls), 0) FROM pg_stat_statements
WHERE toplevel AND query NOT LIKE '%pg_stat_statements%' AND query NOT LIKE '%pg_stat_activity%'
"""
_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
_CONNECTED = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
_LOG = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"


def table(plan: Plan, peers: Sequence[Entry]) -> Table:
    """Statements, log, waiting and CPU a turn, with one to eight processes."""
    note = NOTE.format(slots=SLOTS, waits=WAITS, chats=plan.worker_chats, count=COUNT, every=EVERY * 1e3, idle=IDLE)
    result = Table("What a turn costs the database", note, COLUMNS)
    with hall([VISITORS], "slow") as meeting:
        taken = meeting.interleave({each: partial(_measured, meeting, each, plan) for each in PROCESSES}, 1)
        one = samples(taken[1], "cpu_ms") if 1 in taken else None
        for processes, figures in taken.items():
            names = ("turns_per_second", "statements", "log_kb", "lock_ms", "cpu_ms", "idle_statements", "connections")
            pace, statements, log, wait, cpu, idle, connections = (samples(figures, name) for name in names)
            ratio = cpu.over(one) if one else ""
            result.add(processes, pace, statements, log, wait, cpu, ratio, idle, connections)
            if processes == PROCESSES[-1]:
                result.goals += [
                    Goal("waiting for locks, a turn with eight processes", 2, wait.median, "ms"),
                    Goal("statements a turn with eight processes", 16, statements.median, "statements"),
                    Goal("write-ahead log a turn with eight processes", 6, log.median, "kB"),
                    Goal("statements a second of an idle process", 1, idle.median, "statements"),
                    Goal("connections of an idle process", 4, connections.median, "connections"),
                ]
                if one:
                    goal = "CPU of a turn with eight processes, over that with one"
                    result.goals.append(Goal(goal, 1.15, cpu.median / one.median))
        meeting.report(result)
    return result


def _measured(meeting: Hall, processes: int, plan: Plan) -> Figures:
    import psycopg

    with scratch() as home, watched_server() as server:
        url = f"{server.url}/den"
        # one workspace for all, as several machines should have
        settings = f'turns = {SLOTS}\ndatabase = "{url}"\n[agent]\nworkspace_dir = "{home}/workspace"\n'
        with (
            serving(meeting.server.url("slow"), home, settings, processes - 1) as place,
            psycopg.connect(f"{server.url}/postgres", autocommit=True) as db,
        ):

            def ask(query: str) -> float:
                return float((db.execute(query.encode()).fetchone() or (0,))[0])

            visit(meeting, place, "pace", chats=processes * SLOTS, count=1)
            programs = [_server_process(server), *_children_of(os.getpid(), "denizen")]
            ask(_RESET)
            log, cpu = ask(_LOG), _cpu(programs)
            with _waiting(server) as waited:
                figures = visit(meeting, place, "pace", chats=plan.worker_chats * processes, count=COUNT)
            turns = plan.worker_chats * processes * COUNT
            result = {
                **figures,
                "statements": ask(_STATEMENTS) / turns,
                "log_kb": (ask(_LOG) - log) / 1e3 / turns,
                "lock_ms": waited() * 1e3 / turns,
                "cpu_ms": (_cpu(programs) - cpu) * 1e3 / turns,
            }
            time.sleep(2 * IDLE)  # until connections that nothing needs are closed
            ask(_RESET)
            time.sleep(IDLE)
            idle = ask(_STATEMENTS) / IDLE / processes
            return {**result, "idle_statements": idle, "connections": ask(_CONNECTED) / processes}


@contextmanager
def watched_server() -> "Generator[OwnServer]":
    """A server that counts statements, with a database `den`."""
    import psycopg
    from tests import postgres  # what it needs is installed for development alone

    if not (programs := postgres.binaries()):
        raise Broken("PostgreSQL isn't installed here")
    server = postgres.OwnServer.create(programs, _OPTIONS)
    try:
        with psycopg.connect(f"{server.url}/postgres", autocommit=True) as db:
            db.execute("CREATE DATABASE den")
            db.execute("CREATE EXTENSION pg_stat_statements")
            db.execute("CHECKPOINT")
        yield server
    finally:
        server.remove()


@contextmanager
def _waiting(server: "OwnServer") -> Generator[Callable[[], float]]:
    """Seconds that connections have waited for locks while the block ran, by samples."""
    import psycopg

    over, seconds = threading.Event(), 0.0

    def sample() -> None:
        nonlocal seconds
        with psycopg.connect(f"{server.url}/postgres", autocommit=True) as db:
            before = time.perf_counter()
            while not over.wait(EVERY):
                row = db.execute(_WAITING).fetchone()
                now = time.perf_counter()
                seconds += (row[0] if row else 0) * (now - before)
                before = now

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield lambda: seconds
    finally:
        over.set()
        thread.join()


def _server_process(server: "OwnServer") -> int:
    return int((server.folder / "data" / "postmaster.pid").read_text().split()[0])


def _children_of(parent: int, name: str) -> list[int]:
    """The processes that this one has started whose command's name is that."""
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:  # it has ended
            continue
        command, _, fields = text.partition("(")[2].rpartition(")")
        if command.startswith(name) and int(fields.split()[1]) == parent:
            found.append(int(stat.parent.name))
    return found


def _cpu(programs: Sequence[int]) -> float:
    """Seconds of CPU of these processes, and of those that they have started."""
    family, ticks = {*programs}, 0
    stats: list[tuple[int, int, Sequence[str]]] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        stats.append((int(stat.parent.name), int(fields[1]), fields))
    for pid, parent, fields in sorted(stats):
        if pid in family or parent in family:
            family.add(pid)
            ticks += sum(map(int, fields[11:15]))  # those of children that have ended, too
    return ticks / os.sysconf("SC_CLK_TCK")
