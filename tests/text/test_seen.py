"""What was seen is searched once: a comparison costs what was added since the last."""

import pytest
from tests.actions.recovery.work import steps

from denizen.ports import SeenText

RESULT = "$(run make test) and more\n" * 3


def _cost(history: int) -> int:
    seen = SeenText()
    for number in range(history):
        seen.observe(f"{number} {RESULT}")
    seen.quotes("$(run x)")

    def turn() -> None:
        seen.observe(RESULT)
        assert seen.quotes("$(run make test)")

    return steps(turn)


def test_a_comparison_does_not_cost_more_the_longer_the_history_is() -> None:
    assert _cost(1_000) <= _cost(10)


@pytest.mark.parametrize("filler", ["run ", "$ (run ", "<a>", "[", "\\n", "&lt;", "run" + " " * 99])
def test_whatever_was_seen_is_searched_in_passing(filler: str) -> None:
    seen = SeenText()
    seen.observe(filler * 20_000)
    assert not seen.quotes(f"$(run touch EVIL {filler * 2_000})")


@pytest.mark.parametrize(
    "filler", ["$(run touch ", "\nrun(touch ", "name: run touch ", "<run>touch ", "[", "name" + " " * 12]
)
def test_arguments_are_searched_in_passing(filler: str) -> None:
    seen = SeenText()
    seen.observe(filler * 20_000)
    assert not seen.quotes_call({"run"}, {"command": f"touch EVIL {filler * 2_000}"})
    assert not seen.quotes_call({"run"}, {"command": "touch EVIL"})
