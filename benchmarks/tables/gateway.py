"""The gateway: what it needs while it waits, and for a message; what comes in at random, and in many chats."""

import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.contenders import Broken, Entry, keep_on_core, scratch
from benchmarks.gateway import serving
from benchmarks.hall import Figures, Hall, Plan, hall, samples
from benchmarks.report import Goal, Samples, Table
from benchmarks.roster import DENIZEN, KEPT, NANOBOT, VISITORS

NOTE = """\
`denizen gateway` as its users have it, a process on a core of its own, reached over HTTP by people on the other core.
The model answers at once and repeats the ticket of the message, so every reply is checked. {talk} people talk at once,
{count} messages each, the next when the reply has come: turns per second, and CPU ms per turn of the whole process.
*Until the model* is the time from just before a message is posted to the arrival of its first request at the model, at
so many messages a second at random times. *Idle* is the resident memory once it listens. *Synced to disk* is the
gateway as it comes; *on tmpfs* its home is in memory, where syncing costs nothing. nanobot is its loop on its own
message bus, with {few} people in the same process, {few_count} messages each; nothing is synced there. Ratios are over
Denizen, synced to disk; medians (least–most) of {rounds}, taken in turn."""
COLUMNS = (
    *("gateway", "home", "idle MB", "turns/s", "CPU ms per turn", "× CPU"),
    *("messages/s", "until the model, ms: half", "99 of 100"),
)
MANY_NOTE = """\
Messages in new chats, in random order of arrival, but in each chat in order, posted as fast as they are taken; Denizen
syncs all that it accepts. *In order* counts the chats in which each message was answered once, in order. The second row
of each engine is the same process after the first. Memory is resident: what it grows by is what chats that nobody uses
any more cost. nanobot gives a message that comes while its chat is busy to the turn that runs."""
MANY = (
    "gateway",
    "chats",
    "messages each",
    "replies",
    "in order",
    "turns/s",
    "CPU ms per turn",
    "MB before",
    "MB after",
)
TALK, TALK_COUNT, FEW, FEW_COUNT = 64, 5, 8, 3
ASKED, RATE, FEW_ASKED, SLOW = 400, 40.0, 30, 2.0
WORKERS_NOTE = """\
`denizen gateway` and `denizen worker` on one PostgreSQL, {slots} turns at once in each process, against a model that
takes {waits:g} s. {chats} people for each process talk at once, {count} messages each. *At most* is what the model's
time alone would allow. All of them share one machine with PostgreSQL, the model and the people: where its cores are all
busy, with whatever else runs there, it saturates. The gateway is the first of the processes."""
WORKERS = ("processes", "turns at once", "at most turns/s", "turns/s", "of that", "× one", "cores busy", "of")
PROCESSES, SLOTS, WAITS, WORKER_COUNT = (1, 2, 4), 8, 0.2, 5
NANOBOT_SHARE = 50  # how many times fewer chats it gets
QUIET = 1.0  # seconds until a gateway that listens is idle

Ask = Callable[..., Figures]


def table(plan: Plan, peers: Sequence[Entry]) -> Table:
    """Idle memory, pace and latency."""
    rounds = max(1, plan.repeats // 2)
    note = NOTE.format(talk=TALK, count=TALK_COUNT, few=FEW, few_count=FEW_COUNT, rounds=rounds)
    result = Table("A gateway", note, COLUMNS)
    with _gateways(peers, ("synced", "tmpfs")) as (meeting, asks):
        lanes = {key: partial(_measured, meeting, ask, is_slow=key[0] != DENIZEN.name) for key, ask in asks.items()}
        idle = {key: samples([ask("idle")], "mb") for key, ask in asks.items()}
        meeting.interleave(lanes, 1)
        taken = meeting.interleave(lanes, rounds)
        cpu = {key: samples(figures, "cpu_ms") for key, figures in taken.items()}
        for (name, store), figures in taken.items():
            pace, half, most = (samples(figures, key) for key in ("turns_per_second", "half", "most"))
            ratio = cpu[name, store].over(cpu.get((DENIZEN.name, "synced"), cpu[name, store]))
            rate = RATE if name == DENIZEN.name else SLOW
            result.add(
                *(name, KEPT[store], idle[name, store], pace, cpu[name, store], ratio),
                *(f"{rate:g}", half, most),
            )
            if store == "synced":
                result.goals += _goals(idle[name, store], pace, half, most)
        meeting.report(result)
    return result


def _goals(idle: Samples, pace: Samples, half: Samples, most: Samples) -> Sequence[Goal]:
    return (
        Goal("memory of an idle gateway", 60, idle.median, "MB"),
        Goal("a gateway's durable turn on one core, at 300 a second", 1e3 / 300, 1e3 / pace.median, "ms"),
        Goal("from a message to its first request, half of them", 5, half.median, "ms"),
        Goal("from a message to its first request, 99 of 100", 25, most.median, "ms"),
    )


def _measured(meeting: Hall, ask: Ask, *, is_slow: bool) -> Figures:
    pace = ask("pace", chats=FEW if is_slow else TALK, count=FEW_COUNT if is_slow else TALK_COUNT)
    meeting.server.arrivals()
    asked, rate = (FEW_ASKED, SLOW) if is_slow else (ASKED, RATE)
    sent = ask("latency", chats=asked // 10, count=asked, rate=rate)["sent"]
    arrived = meeting.server.arrivals()
    taken = sorted((arrived[ticket] - at) * 1e3 for ticket, at in sent.items())
    return {**pace, "half": taken[len(taken) // 2], "most": taken[len(taken) * 99 // 100]}


def many(plan: Plan, peers: Sequence[Entry]) -> Table:
    """Messages in random order, and many chats."""
    result = Table("Many chats of a gateway", MANY_NOTE, MANY)
    with _gateways(peers, ("synced",)) as (meeting, asks):
        for (name, _), ask in asks.items():
            share = 1 if name == DENIZEN.name else NANOBOT_SHARE
            for chats, count in ((plan.chats // share, 10), ((plan.touched - plan.chats) // share, 1)):
                figures = meeting.interleave({name: partial(ask, "arrivals", chats=chats, count=count)}, 1).get(name)
                if not figures:
                    break
                [taken] = figures
                pace, cpu, before, after = (
                    samples(figures, key) for key in ("turns_per_second", "cpu_ms", "mb_before", "mb_after")
                )
                replies = f"{taken['replies']} of {chats * count}"
                result.add(name, chats, count, replies, taken["in_order"], pace, cpu, before, after)
                if name == DENIZEN.name:
                    what = f"{chats:,} chats × {count}: those not answered once, in order"
                    result.goals.append(Goal(what, 0, chats - taken["in_order"], "chats"))
        meeting.report(result)
    return result


def workers(plan: Plan, peers: Sequence[Entry]) -> Table:
    """Turns per second with several processes that take turns, against a model that takes its time."""
    note = WORKERS_NOTE.format(slots=SLOTS, waits=WAITS, chats=plan.worker_chats, count=WORKER_COUNT)
    result = Table("A gateway with workers", note, WORKERS)
    with hall([VISITORS], "slow") as meeting:
        paces: dict[int, Samples] = {}
        for processes in PROCESSES:
            lane = {processes: partial(_with_workers, meeting, processes, plan)}
            for figures in meeting.interleave(lane, 1).values():
                paces[processes] = pace = samples(figures, "turns_per_second")
                most = processes * SLOTS / WAITS
                ratio = pace.over(paces[1]) if 1 in paces else ""
                reached, cores = f"{pace.median / most:.0%}", samples(figures, "cores")
                result.add(processes, processes * SLOTS, f"{most:g}", pace, reached, ratio, cores, os.cpu_count())
        if {1, 2} <= paces.keys():
            goal = "a turn with two processes over one with one, at 1.7 times the pace"
            result.goals.append(Goal(goal, 1 / 1.7, paces[1].median / paces[2].median))
        meeting.report(result)
    return result


def _with_workers(meeting: Hall, processes: int, plan: Plan) -> Figures:
    from tests import postgres  # what it needs is installed for development alone

    with scratch() as home, scratch() as shared:
        if not (server := postgres.running_server(shared)):
            raise Broken("PostgreSQL isn't installed here")
        url = postgres.new_database(server)
        try:
            settings = f'turns = {SLOTS}\ndatabase = "{url}"\n'
            with serving(meeting.server.url("slow"), home, settings, processes - 1) as place:
                visit(meeting, place, "pace", chats=processes * SLOTS, count=1)
                begun, worked = time.perf_counter(), _worked()
                figures = visit(meeting, place, "pace", chats=plan.worker_chats * processes, count=WORKER_COUNT)
                return {**figures, "cores": (_worked() - worked) / (time.perf_counter() - begun)}
        finally:
            postgres.drop_database(url)
            postgres.remove_begun(shared)


def _worked() -> float:
    """Seconds that the cores of this machine have worked."""
    user, nice, system, _, _, *interrupts = map(int, Path("/proc/stat").read_text().split(maxsplit=8)[1:8])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _gateways(peers: Sequence[Entry], stores: Sequence[str]) -> Generator[tuple[Hall, Mapping[tuple[str, str], Ask]]]:
    """A gateway for each of these homes, and nanobot's; each by what to ask of its visitors."""
    with hall([VISITORS, *(peer for peer in peers if peer == NANOBOT)], "echo") as meeting, ExitStack() as stack:
        asks: dict[tuple[str, str], Ask] = {}
        if VISITORS.name in meeting.processes:
            keep_on_core(meeting.processes[VISITORS.name].pid, 0)
            for store in stores:
                home = stack.enter_context(scratch() if store == "synced" else _in_memory())
                place = stack.enter_context(serving(meeting.server.url("echo"), home))
                asks[DENIZEN.name, store] = partial(visit, meeting, place)
            time.sleep(QUIET)
        if NANOBOT.name in meeting.processes:
            asks[NANOBOT.name, "disk"] = partial(meeting.ask, NANOBOT.name)
        yield meeting, asks


def visit(meeting: Hall, place: Mapping[str, Any], how: str, **arguments: Any) -> Figures:
    return meeting.ask(VISITORS.name, "visit", how=how, place=place, **arguments)


@contextmanager
def _in_memory() -> Generator[Path]:
    with TemporaryDirectory(dir="/dev/shm", ignore_cleanup_errors=True) as home:
        yield Path(home)
