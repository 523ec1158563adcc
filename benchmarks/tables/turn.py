"""One turn with one tool call: what an engine adds to the two requests themselves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.contenders import Broken, Entry, Process
from benchmarks.hall import Figures, Hall, Plan, hall, samples
from benchmarks.report import Goal, Samples, Table
from benchmarks.roster import DENIZEN, FLOOR, KEPT

NOTE = """\
A question, a call of one tool, a final answer: two requests, buffered, to a server that answers at once. It is a
session's second turn; what the first costs, which is where an engine writes a prompt or makes a file, stands beside
it. CPU is that of the whole process; the figures are medians (least–most) of {repeats} measurements, taken in turn.
`× floor` is CPU over that of the bare loop, which writes nothing; `× same kept` is CPU over the bare loop that keeps
its messages the same way and syncs as often. Bytes are those of the bodies of the second turn's requests."""
WARM_UP = 3  # sessions; also the fewest that are measured at once
COLUMNS = ("engine", "session", "CPU ms", "× floor", "× same kept", "wall ms", "first turn CPU ms", "bytes sent")


@dataclass(frozen=True, slots=True)
class Lane:
    """An engine that keeps its session in one way."""

    name: str
    store: str

    def __str__(self) -> str:
        return f"{self.name}, {self.kept}"

    @property
    def kept(self) -> str:
        return KEPT[self.store.partition(":")[0]]


def table(plan: Plan, peers: Sequence[Entry]) -> Table:
    result = Table("A turn with one tool call", NOTE.format(repeats=plan.repeats), COLUMNS)
    with hall([FLOOR, DENIZEN, *peers]) as meeting:
        lanes = _lanes(meeting)
        sent = {lane: sent for lane in lanes if (sent := _warm_up(meeting, lane))}
        figures = meeting.interleave({lane: _measure(meeting, lane, plan) for lane in sent}, plan.repeats)
    _fill(result, figures, sent)
    meeting.report(result)
    return result


def _lanes(meeting: Hall) -> list[Lane]:
    lanes = [Lane(name, store) for name, process in meeting.processes.items() for store in process.stores]
    counted = meeting.interleave({DENIZEN.name: partial(meeting.ask, DENIZEN.name, "syncs")}, 1)
    return lanes + [Lane(FLOOR.name, f"synced:{syncs['syncs']}") for syncs in counted.get(DENIZEN.name, ())]


def _warm_up(meeting: Hall, lane: Lane) -> int | None:
    """Play until everything lazy has happened; the bytes that one turn sends, or None for a lane that failed."""
    process = meeting.processes[lane.name]
    try:
        process.ask("turns", count=WARM_UP, store=lane.store)
        meeting.server.stats()
        process.ask("session", count=1, store=lane.store)
        first = meeting.server.stats()["bytes"]
        process.ask("session", count=2, store=lane.store)
        return meeting.server.stats()["bytes"] - first
    except Broken as error:
        meeting.failed[str(lane)] = str(error)
        return None


def _measure(meeting: Hall, lane: Lane, plan: Plan) -> Callable[[], Figures]:
    process = meeting.processes[lane.name]
    count = _count(process, lane, plan)
    return lambda: process.ask("turns", count=count, store=lane.store)


def _count(process: Process, lane: Lane, plan: Plan) -> int:
    """As many sessions as the plan's slice of CPU has room for."""
    cost = process.ask("turns", count=WARM_UP, store=lane.store)["cpu_ms"]
    return max(WARM_UP, min(400, round(plan.slice_ms / cost)))


def _fill(result: Table, figures: Mapping[Lane, Sequence[Figures]], sent: Mapping[Lane, int]) -> None:
    cpu = {lane: samples(taken, "cpu_ms") for lane, taken in figures.items()}
    floors = {lane.kept: cost for lane, cost in cpu.items() if lane.name == FLOOR.name}
    floors[KEPT["open"]] = floors[KEPT["disk"]]
    bare = floors[KEPT["memory"]]
    for lane in sorted(cpu, key=lambda lane: (lane.name not in (FLOOR.name, DENIZEN.name), cpu[lane].median)):
        wall, first = samples(figures[lane], "wall_ms"), samples(figures[lane], "first_ms")
        same = _same_kept(lane, cpu[lane], floors)
        result.add(lane.name, lane.kept, cpu[lane], cpu[lane].over(bare), same, wall, first, sent[lane])
    for store, how, most in ("open", "session held open", 2.5), ("disk", "by run_agent", 3.5):
        if ours := cpu.get(Lane(DENIZEN.name, store)):
            goal = f"a turn with one tool call, written, {how}, over the bare loop"
            result.goals.append(Goal(goal, most, ours.median / bare.median))


def _same_kept(lane: Lane, cost: Samples, floors: Mapping[str, Samples]) -> str:
    return cost.over(floors[lane.kept]) if lane.kept in floors else ""
