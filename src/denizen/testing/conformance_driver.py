"""The conformance suite of drivers: tests to subclass."""
# ruff: noqa: S101 - tests assert

from collections.abc import Callable, Sequence

import pytest

from denizen.messages import Text, ToolCall, ToolResult
from denizen.ports import Action, Driver, Iteration, View
from denizen.testing.silent_session import silent_view


def _step(number: int, name: str, text: str, *, is_error: bool = False) -> Iteration:
    call = ToolCall(f"c{number}", name, {"at": number})
    return Iteration("", [call], [ToolResult(call.id, name, [Text(text)], is_error=is_error)])


STORY: Sequence[Iteration] = (
    _step(1, "look", "this is 1"),
    Iteration("Let me think.", [], []),
    *(_step(number, "look", f"this is {number}") for number in range(2, 8)),
    *(_step(number, "change", "that can't be done", is_error=True) for number in range(8, 14)),
    Iteration("", [ToolCall("a", "look", {}), ToolCall("b", "nothing", {})], [ToolResult("a", "look", [])]),
    *(_step(14, "look", "this is 14") for _ in range(4)),
    Iteration("", [], []),
)
"""A turn with looks, thoughts, failures, a result that is missing, and the same over and over."""


class DriverConformance:
    """Subclass it in a test module as `TestMyDriver`, with a fixture `new_driver` that makes one as a turn does."""

    @pytest.fixture
    def new_driver(self) -> Callable[[], Driver]:
        """The factory of a turn's driver: its class, mostly."""
        raise NotImplementedError("give the suite a fixture `new_driver`")

    @pytest.fixture
    def view(self) -> View:
        """The view of a session in which nothing was said."""
        return silent_view()

    def test_it_says_what_to_do_at_every_step(self, new_driver: Callable[[], Driver], view: View) -> None:
        driver = new_driver()
        assert isinstance(driver.decide(view), Action)
        for iteration in STORY:
            driver.observe(iteration)
            assert isinstance(driver.decide(view), Action)

    def test_deciding_twice_is_deciding_once(self, new_driver: Callable[[], Driver], view: View) -> None:
        """A crash may come between its decision and the model's next answer: it is then asked again."""
        driver = new_driver()
        for iteration in STORY:
            assert driver.decide(view) == driver.decide(view)
            driver.observe(iteration)

    def test_it_comes_to_the_same_state_again(self, new_driver: Callable[[], Driver], view: View) -> None:
        """After a crash another one is shown the iterations, and hasn't been asked in between."""
        driver = new_driver()
        for number, iteration in enumerate(STORY, 1):
            driver.decide(view)
            driver.observe(iteration)
            again = new_driver()
            for earlier in STORY[:number]:
                again.observe(earlier)
            assert again.decide(view) == driver.decide(view), f"after iteration {number}"

    def test_turns_know_nothing_of_each_other(self, new_driver: Callable[[], Driver], view: View) -> None:
        first = new_driver().decide(view)
        driver = new_driver()
        for iteration in STORY:
            driver.observe(iteration)
            driver.decide(view)
        assert new_driver().decide(view) == first
