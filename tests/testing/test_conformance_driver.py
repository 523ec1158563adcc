"""The suite for drivers fails for one whose state isn't that of the iterations."""

from collections.abc import Callable

import pytest

from denizen.ports import Action, Driver, Iteration, Proceed, View
from denizen.testing import DriverConformance


class Impulsive:
    """Counts how often it was asked."""

    def __init__(self) -> None:
        self._asked = 0

    def decide(self, view: View) -> Action:
        """Say it."""
        self._asked += 1
        return Proceed(f"asked {self._asked} times")

    def observe(self, iteration: Iteration) -> None:
        """Look away."""


class TestImpulsive(DriverConformance):
    @pytest.fixture
    def new_driver(self) -> Callable[[], Driver]:
        return Impulsive

    def test_deciding_twice_is_deciding_once(self, new_driver: Callable[[], Driver], view: View) -> None:
        with pytest.raises(AssertionError, match="asked 2 times"):
            super().test_deciding_twice_is_deciding_once(new_driver, view)

    def test_it_comes_to_the_same_state_again(self, new_driver: Callable[[], Driver], view: View) -> None:
        with pytest.raises(AssertionError, match="after iteration 1"):
            super().test_it_comes_to_the_same_state_again(new_driver, view)
