"""What a turn costs when there is a history behind it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from benchmarks.contenders import Entry, Process
from benchmarks.driver import WARM_UP
from benchmarks.hall import Figures, Hall, Plan, hall
from benchmarks.report import Goal, Samples, Table
from benchmarks.roster import DENIZEN, FLOOR, KEPT

OURS_NOTE = """\
Denizen's turn (one tool call, transcript written) in one open session with so many turns behind it. {rounds} rounds,
everyone in turn in each; of a round the median of {at_once} turns, after {warm_up} of another session, which warm the
processor up. CPU ms per turn, median (least–most) of the rounds; a ratio is that of each round, and the median of
these. *Scripted*: the model is in the process, so this is the engine alone; `× first` is over the shortest history.
*Over HTTP* is over the two columns after it: *same bytes*, the very bodies that Denizen sent, posted by hand with the
reply decoded and the tool run, as warm; *encoded by hand*, the bare loop at the same history, which encodes its
messages anew for every request."""
OURS = (
    *("turns behind", "scripted", "× first", "over HTTP", "same bytes", "× same bytes"),
    *("encoded by hand", "× encoded by hand", "bytes of the last request pair"),
)
GROWTH_NOTE = """\
One session of {turns} turns, each with one tool call, kept where the engine can keep it longest, its whole history
sent each time. CPU ms per turn, median of ten turns; growth is the last ten over the first ten. What grows in the
floor is the encoding of ever longer requests."""
AT_ONCE = 5  # turns per measurement: few, since each makes the history longer
ROUNDS = 5  # for each of the plan's: what is compared here is close


def table(plan: Plan, peers: Sequence[Entry]) -> Table:
    """Denizen's own turns at several lengths of history."""
    rounds = ROUNDS * plan.repeats
    note = OURS_NOTE.format(rounds=rounds, at_once=AT_ONCE, warm_up=WARM_UP)
    result = Table("A turn with a history behind it", note, OURS)
    with hall([FLOOR, DENIZEN]) as meeting:
        lanes = {Lane(turns, way): _play(meeting, turns, way) for turns in plan.history for way in WAYS}
        taken = meeting.interleave(lanes, rounds) if DENIZEN.name in meeting.processes else {}
        if not meeting.failed:
            _fill(result, plan, taken)
        meeting.report(result)
    return result


@dataclass(frozen=True, slots=True)
class Lane:
    """A way to play a turn, at a length of history."""

    turns: int
    way: str


WAYS = {  # the replay comes right after Denizen's own turns, whose bodies the server then still has
    "scripted": (DENIZEN.name, "scripted"),
    "encoded": (FLOOR.name, "memory"),
    "ours": (DENIZEN.name, "open"),
    "replayed": (FLOOR.name, ""),
}


def _play(meeting: Hall, turns: int, way: str) -> Callable[[], Figures]:
    name, store = WAYS[way]
    if way == "replayed":
        return partial(meeting.ask, name, "replay", count=AT_ONCE)
    return partial(meeting.ask, name, "history", turns=turns, count=AT_ONCE, store=store)


def _fill(result: Table, plan: Plan, taken: Mapping[Lane, Sequence[Figures]]) -> None:
    first: Samples | None = None
    for turns in plan.history:
        scripted, encoded, ours, replayed = (_rounds(taken[Lane(turns, way)]) for way in WAYS)
        first = first or scripted
        flat, over_http, over_encoded = scripted.beside(first), ours.beside(replayed), ours.beside(encoded)
        sent = ours, replayed, f"{over_http:.2f} ×", encoded, f"{over_encoded:.2f} ×"
        result.add(turns, scripted, f"{flat:.2f} ×", *sent, taken[Lane(turns, "replayed")][-1]["bytes"])
        result.goals.append(Goal(f"a turn after {turns} turns, scripted, over the shortest history", 1.2, flat))
        result.goals.append(Goal(f"a turn after {turns} turns, over HTTP, over sending the same bytes", 1.5, over_http))


def _rounds(figures: Sequence[Figures]) -> Samples:
    return Samples([median(figure["cpu_ms"]) for figure in figures])


def growth(plan: Plan, peers: Sequence[Entry]) -> Table:
    """How the cost of a turn grows over one session, for everyone."""
    columns = ("engine", "session", "first ten", "last ten", "growth")
    result = Table("Growth over one session", GROWTH_NOTE.format(turns=plan.growth), columns)
    with hall([FLOOR, DENIZEN, *peers]) as meeting:
        lanes = {name: _one_session(process, plan) for name, process in meeting.processes.items()}
        for name, figures in meeting.interleave(lanes, 1).items():
            costs = figures[0]["cpu_ms"]
            first, last = Samples(costs[:10]), Samples(costs[-10:])
            result.add(name, KEPT[meeting.processes[name].best_store], first, last, last.over(first))
        meeting.report(result)
    return result


def _one_session(process: Process, plan: Plan) -> Callable[[], Figures]:
    def play() -> Figures:
        process.ask("turns", count=5, store=process.best_store)
        return process.ask("session", count=plan.growth, store=process.best_store)

    return play
