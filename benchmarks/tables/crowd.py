"""Many sessions in one process, and long ones read from disk."""

from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.contenders import Entry, Process
from benchmarks.hall import Figures, Plan, hall, samples
from benchmarks.report import Table
from benchmarks.roster import DENIZEN, FLOOR, KEPT
from benchmarks.scene import PER_TURN

CROWD_NOTE = """\
{sessions} sessions at once in one process, {turns} turns each with one tool call: turns per second by the clock, CPU ms
per turn, and what the process grew by for each open session. One run in a fresh process."""
CROWD = ("engine", "session", "turns/s", "CPU ms per turn", "× floor's CPU", "KB per session")
OPEN_NOTE = """\
Opening a session for writing, up to its first request's messages, its file in the disk's cache: CPU
ms, median (least–most) of {repeats}. *By hand* reads the same file and decodes each line with msgspec. *Again*: by the
process that closed it a moment ago. MB is what the session holds once it is open."""
OPEN = ("messages", "file KB", "CPU ms", "by hand", "× by hand", "again", "MB held")
TURNS = 2


def table(plan: Plan, peers: Sequence[Entry]) -> Table:
    note = CROWD_NOTE.format(sessions=plan.sessions, turns=TURNS)
    result = Table("Many sessions at once", note, CROWD)
    with hall([FLOOR, DENIZEN, *peers]) as meeting:
        lanes = {
            (name, store): _crowd(process, store, plan)
            for name, process in meeting.processes.items()
            for store in ([process.best_store, "synced"] if name == DENIZEN.name else [process.best_store])
        }
        taken = meeting.interleave(lanes, 1)
        floor = samples(taken[FLOOR.name, "disk"], "cpu_ms")
        for (name, store), figures in taken.items():
            pace, cpu, size = (samples(figures, key) for key in ("turns_per_second", "cpu_ms", "kb_per_session"))
            result.add(name, KEPT[store], pace, cpu, cpu.over(floor), size)
        meeting.report(result)
    return result


def _crowd(process: Process, store: str, plan: Plan) -> Callable[[], Figures]:
    def play() -> Figures:
        process.ask("turns", count=5, store=store)
        return process.ask("crowd", sessions=plan.sessions, count=TURNS, store=store)

    return play


def opening(plan: Plan, peers: Sequence[Entry]) -> Table:
    """Sessions of several lengths, opened again."""
    result = Table("Opening a session", OPEN_NOTE.format(repeats=plan.repeats), OPEN)
    with hall([DENIZEN]) as meeting:
        for messages in (*(turns * PER_TURN for turns in plan.history), plan.messages):
            lane = {DENIZEN.name: partial(meeting.ask, DENIZEN.name, "reopen", messages=messages)}
            figures = meeting.interleave(lane, plan.repeats).get(DENIZEN.name)
            if not figures:
                break
            names = ("cpu_ms", "by_hand_ms", "again_ms", "mb")
            cost, hand, again, held = (samples(figures, name) for name in names)
            result.add(messages, round(figures[0]["bytes"] / 1024), cost, hand, cost.over(hand), again, held)
        meeting.report(result)
    return result
