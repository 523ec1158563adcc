"""The `reflective` driver: the model looks up from its work now and then (seed 001, "Periodically assess progress")."""

from denizen.ports import Action, Iteration, Proceed, View

EVERY = 5
"""Iterations between two assessments."""
FAILED = 2
"""Iterations in a row in which every call failed: the turn is stuck."""

_ASSESS = (
    "say in two sentences what was asked and what you know of it by now. What is missing still, and does this way lead "
    "there? If so, go on; if not, change the way; if nothing is missing, answer."
)


class Reflective:
    """Asks for an assessment every few iterations, and when nothing works."""

    def __init__(self) -> None:
        self._since = 0  # iterations since the last assessment was asked for
        self._failed = 0
        self._ask = ""

    def decide(self, view: View) -> Action:
        """Let it assess, or go on."""
        return Proceed(self._ask)

    def observe(self, iteration: Iteration) -> None:
        """Count."""
        self._since += 1
        failed = bool(iteration.results) and all(result.is_error for result in iteration.results)
        self._failed = self._failed + 1 if failed else 0
        self._ask = self._occasion()
        if self._ask:
            self._since = self._failed = 0

    def _occasion(self) -> str:
        if self._failed == FAILED:
            return f"All calls of the last {FAILED} iterations failed. Before the next one, {_ASSESS}"
        return f"After {EVERY} iterations, look up from the work: {_ASSESS}" if self._since == EVERY else ""
