"""What a long investigation costs in tokens, by what the model sees and how it acts."""

from collections.abc import Sequence

from benchmarks.contenders import Entry, scratch
from benchmarks.hall import Plan
from benchmarks.investigation.play import REPLIES, WRITTEN_FOR, Context, Counts, play
from benchmarks.report import Goal, Table
from denizen.actions import Native, Shell
from denizen.context import Transcript, WorkingMemory
from denizen.ports import ActionFormat

NOTE = """\
One investigation of a real repository (aiohttp {version}) in {iterations} iterations, with a coder's tools, which
really run. The replies are written by hand and the same for all; with a working memory they keep and note as well. A
note, and the answer, may only quote what the model sees at that moment, and what the answer quotes is looked up in the
repository. Tokens are estimated from bytes, the same way for all: *cached* is what a request has in common with the
one before it, from its beginning on, as providers cache; *as paid* counts that at a tenth, which is what Anthropic and
OpenAI take for it. *Last call* is the context in which it answers. Ratios are over the transcript in the same action
format."""
COLUMNS = (
    "what it sees",
    "how it acts",
    "input",
    "× transcript",
    "cached",
    "not cached",
    "as paid",
    "× as paid",
    "output",
    "last call",
)
CACHED_COST = 0.1
FORMATS: dict[str, ActionFormat] = {"shell": Shell(), "native": Native()}
GOAL = 0.25


def table(plan: Plan, peers: Sequence[Entry]) -> Table:
    """Both contexts under both action formats."""
    result = Table("One long investigation", NOTE.format(version=WRITTEN_FOR, iterations=len(REPLIES) + 1), COLUMNS)
    for name, actions in FORMATS.items():
        whole, kept = _play(actions, Transcript), _play(actions, WorkingMemory)
        result.add("transcript", name, *_cells(whole, whole))
        result.add("working memory", name, *_cells(kept, whole))
        result.goals.append(
            Goal(f"input of a working memory over the transcript's, {name}", GOAL, kept.input / whole.input)
        )
    return result


def _play(actions: ActionFormat, context: Context) -> Counts:
    with scratch() as place:
        return play(actions, context, place)


def _cells(counts: Counts, base: Counts) -> Sequence[object]:
    return (
        *(f"{counts.input:,}", f"{counts.input / base.input:.2f} ×", f"{counts.cached:,}", f"{counts.fresh:,}"),
        *(f"{_paid(counts):,.0f}", f"{_paid(counts) / _paid(base):.2f} ×", f"{counts.output:,}", f"{counts.last:,}"),
    )


def _paid(counts: Counts) -> float:
    """Tokens of input at the price of such as aren't cached."""
    return counts.fresh + counts.cached * CACHED_COST
