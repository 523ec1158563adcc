"""What one chunk of a streamed reply costs."""

from collections.abc import Sequence
from functools import partial

from benchmarks.contenders import Entry
from benchmarks.hall import Plan, hall, samples
from benchmarks.report import Goal, Table
from benchmarks.roster import DENIZEN, FLOOR
from benchmarks.scene import CHUNKS, GEMINI_PATH

NOTE = """\
CPU microseconds per chunk of a reply of {chunks} text deltas, each an event and an HTTP chunk of its own, sent at once.
*By hand*: the same bytes over aiohttp, split into lines, each event decoded by msgspec into a struct, its text handed
on. *Client*: Denizen's `Model.stream`, every event taken. *Turn*: the same through `run_agent` with `on_event`, a
session's second turn, its transcript kept. Ratios are over *by hand*; medians (least–most) of {repeats}, taken in
turn."""
COLUMNS = ("wire format", "by hand", "client", "× by hand", "turn", "× by hand")
FORMATS = {
    "Anthropic Messages": "/messages",
    "OpenAI Chat Completions": "/chat/completions",
    "OpenAI Responses": "/responses",
    "Gemini": GEMINI_PATH,
}


def table(plan: Plan, peers: Sequence[Entry]) -> Table:
    result = Table("A chunk of a stream", NOTE.format(chunks=CHUNKS, repeats=plan.repeats), COLUMNS)
    with hall([FLOOR, DENIZEN]) as meeting:
        for name, path in FORMATS.items() if DENIZEN.name in meeting.processes else ():
            lanes = {
                "by hand": partial(meeting.ask, FLOOR.name, "words", path=path, count=plan.streams),
                "client": partial(meeting.ask, DENIZEN.name, "words", path=path, count=plan.streams),
                "turn": partial(meeting.ask, DENIZEN.name, "turn_of_words", path=path, count=plan.streams),
            }
            meeting.interleave(lanes, 1)
            taken = meeting.interleave(lanes, plan.repeats)
            if meeting.failed:
                break
            hand, client, turn = (samples(taken[lane], "cpu_us") for lane in lanes)
            result.add(name, hand, client, client.over(hand), turn, turn.over(hand))
            result.goals.append(Goal(f"a chunk, {name}, client, over by hand", 1.5, client.median / hand.median))
            result.goals.append(Goal(f"a chunk, {name}, whole turn, over by hand", 1.5, turn.median / hand.median))
        meeting.report(result)
    return result
