"""A driver whose turn is watched for loops, and whose failures are told as such."""

from denizen.engine.loops import Loops
from denizen.errors import DenizenError
from denizen.ports import Action, Driver, Iteration, View


class Watched:
    """What is to be done about a loop goes before what the driver wants.

    It is also the boundary to drivers that others wrote: whatever they raise ends the turn as a DenizenError, with the
    transcript whole.
    """

    def __init__(self, driver: Driver, loops: Loops) -> None:
        self._driver = driver
        self._loops = loops
        self._failure: Exception | None = None

    @property
    def name(self) -> str:
        """What the driver is called."""
        return type(self._driver).__qualname__

    @property
    def stuck(self) -> bool:
        """Whether the last iteration closed a loop."""
        return self._loops.stuck

    def decide(self, view: View) -> Action:
        """The step against a loop, else the driver's. Raises DenizenError."""
        if self._loops.action:
            return self._loops.action
        if self._failure:
            raise self._failed("observe", self._failure)
        try:
            action = self._driver.decide(view)
        except Exception as failure:  # the boundary to others' drivers: whatever they raise, the user must act
            raise self._failed("decide", failure) from failure
        if not isinstance(action, Action):
            raise self._failed("decide", TypeError(f"{action!r} is no Proceed, Backtrack, Escalate or GiveUp"))
        return action

    def observe(self, iteration: Iteration) -> None:
        """Show it to both."""
        self._loops.observe(iteration)
        try:
            self._driver.observe(iteration)
        except Exception as failure:  # noqa: BLE001 (as above; told by decide(), as entries must be taken in whole)
            self._failure = failure

    def _failed(self, where: str, failure: Exception) -> DenizenError:
        where = f"{where}() of {type(self._driver).__module__}"
        return DenizenError(f"The driver {self.name} failed in {where}: {type(failure).__name__}: {failure}")
