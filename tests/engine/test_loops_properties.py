"""What holds of loop detection for any turn: who only repeats comes to an end, who finds news is left alone."""

from collections.abc import Sequence
from itertools import count, cycle, islice

from hypothesis import given
from hypothesis import strategies as st

from denizen.engine.loops import MAX_CYCLE_CALLS, MAX_REPEATS, MAX_STALE_ITERATIONS, Loops
from denizen.messages import Text, ToolCall, ToolResult
from denizen.ports import GiveUp, Iteration

TOOLS = st.sampled_from(["look", "change", "task"])
CALLS = st.tuples(TOOLS, st.integers(0, 5), st.booleans())
"""The tool, what about, and whether it fails."""


def iteration(calls: Sequence[tuple[str, int, bool]]) -> Iteration:
    """One in which these calls are made; what they give follows from them."""
    made = [ToolCall(f"c{number}", name, {"at": at}) for number, (name, at, _) in enumerate(calls)]
    results = [
        ToolResult(call.id, call.name, [Text(f"{call.name} {call.args}")], is_error=fails)
        for call, (_, _, fails) in zip(made, calls, strict=True)
    ]
    return Iteration("", made, results)


def watch() -> Loops:
    return Loops({"change"}, lambda call: call.name)


@given(st.lists(st.lists(CALLS, min_size=1, max_size=3), min_size=1, max_size=6))
def test_who_does_the_same_over_and_over_comes_to_an_end(rounds: list[list[tuple[str, int, bool]]]) -> None:
    loops = watch()
    most = len(rounds) + 4 * max(MAX_REPEATS * len(rounds), MAX_REPEATS * MAX_CYCLE_CALLS, MAX_STALE_ITERATIONS)
    for calls in islice(cycle(rounds), most):
        loops.observe(iteration(calls))
        if isinstance(loops.action, GiveUp):
            return
    raise AssertionError(f"still going on after {most} iterations")


@given(st.lists(st.sampled_from(["look", "change"]), max_size=60))
def test_who_finds_something_new_each_time_is_left_alone(names: list[str]) -> None:
    loops, numbers = watch(), count()
    for name in names:
        loops.observe(iteration([(name, next(numbers), False)]))
        assert loops.action is None


@given(st.lists(st.lists(CALLS, max_size=3), max_size=30))
def test_what_is_done_about_it_follows_from_the_iterations(turn: list[list[tuple[str, int, bool]]]) -> None:
    one, other = watch(), watch()
    actions = [(one.observe(iteration(calls)), one.action)[1] for calls in turn]
    for calls in turn:
        other.observe(iteration(calls))
    assert other.action == (actions[-1] if actions else None)
