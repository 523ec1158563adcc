"""Drivers: how a turn is steered (decisions, "Drivers")."""

from denizen.engine.loops import Loops
from denizen.errors import DenizenError
from denizen.ports import Action, Driver, Iteration, Proceed, View
from denizen.ports.tasks import Plan, current_plan, plan_in


class SimpleDriver:
    """The model decides by itself."""

    def decide(self, view: View) -> Action:
        return Proceed()

    def observe(self, iteration: Iteration) -> None:
        """Nothing is needed."""


REMIND_AFTER_ITERATIONS = 5
"""Iterations without a call of `task` before the model is reminded of the plan."""

_BEGIN = (
    "Begin with a plan: set it with the tool `task` (action `plan`), three to eight steps, with what waits for what. "
    "Mark each step when it is done, and revise the plan when it turns out wrong. What needs no steps, answer at once."
)
_GO_ON = (
    "There is a plan from before. Go on with it where it still serves what is asked now; else set a new one (`task`, "
    "action `plan`) before you begin."
)
_ALL_DONE = (
    "Every task of the plan is done. Check the result against what was asked; then answer, or add what is missing."
)


class PlanningDriver:
    """Asks for a plan with the tool `task`, reminds the model of an untouched plan, and says when all is done."""

    def __init__(self) -> None:
        self._iterations = 0
        self._plan: Plan | None = None  # None: not touched in this turn
        self._untouched = 0
        self._just_done = False

    def decide(self, view: View) -> Action:
        if self._iterations == 0:
            return Proceed(_GO_ON if _open(current_plan(view.session.entries)) else _BEGIN)
        if self._just_done:
            return Proceed(_ALL_DONE)
        if self._untouched and self._untouched % REMIND_AFTER_ITERATIONS == 0:
            return self._remind(self._plan or current_plan(view.session.entries))
        return Proceed()

    def observe(self, iteration: Iteration) -> None:
        self._iterations += 1
        plans = [plan for result in iteration.results if (plan := plan_in(result))]
        was = self._plan
        self._plan = plans[-1] if plans else was
        self._untouched = 0 if plans else self._untouched + 1
        self._just_done = _all_done(self._plan) and not _all_done(was)

    def _remind(self, plan: Plan) -> Action:
        if not plan.tasks:
            return Proceed(f"There is no plan after {self._untouched} iterations. {_BEGIN}")
        if not _open(plan):
            return Proceed()
        names = ", ".join(
            f"{step.id} {step.goal}" for step in plan.steps if step.state == "doing" or step in plan.ready
        )
        return Proceed(
            f"The plan lies untouched since {self._untouched} iterations. To do next, as it says: {names}. Mark what "
            "is done (`task`, action `done`), and revise what has turned out otherwise."
        )


def _open(plan: Plan) -> bool:
    return any(not each.closed for each in plan.tasks)


def _all_done(plan: Plan | None) -> bool:
    return plan is not None and bool(plan.tasks) and not _open(plan)


ASSESS_EVERY_ITERATIONS = 5
"""Iterations between two assessments."""
STUCK_AFTER_FAILURES = 2
"""Iterations in a row in which every call failed: the turn is stuck."""

_ASSESS = (
    "say in two sentences what was asked and what you know of it by now. What is missing still, and does this way lead "
    "there? If so, go on; if not, change the way; if nothing is missing, answer."
)


class ReflectiveDriver:
    """Asks for an assessment every few iterations, and when nothing works."""

    def __init__(self) -> None:
        self._since = 0  # iterations since the last assessment was asked for
        self._failed = 0
        self._ask = ""

    def decide(self, view: View) -> Action:
        return Proceed(self._ask)

    def observe(self, iteration: Iteration) -> None:
        self._since += 1
        failed = bool(iteration.results) and all(result.is_error for result in iteration.results)
        self._failed = self._failed + 1 if failed else 0
        if self._failed == STUCK_AFTER_FAILURES:
            self._ask = f"All calls of the last {self._failed} iterations failed. Before the next one, {_ASSESS}"
        elif self._since == ASSESS_EVERY_ITERATIONS:
            self._ask = f"After {self._since} iterations, look up from the work: {_ASSESS}"
        else:
            self._ask = ""
            return
        self._since = self._failed = 0


class LoopGuardedDriver:
    """A driver whose wishes give way to the next step against a loop.

    It is also the boundary to third-party drivers: an exception ends the turn as a DenizenError, with the transcript
    intact.
    """

    def __init__(self, driver: Driver, loops: Loops) -> None:
        self._driver = driver
        self._loops = loops
        self._failure: Exception | None = None

    @property
    def name(self) -> str:
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
            raise self._failed("decide", TypeError(f"{action!r} isn't a Proceed, Backtrack, Escalate or GiveUp"))
        return action

    def observe(self, iteration: Iteration) -> None:
        self._loops.observe(iteration)
        try:
            self._driver.observe(iteration)
        except Exception as failure:  # noqa: BLE001 (as above; decide\(\) raises it, as an entry must be observed whole)
            self._failure = failure

    def _failed(self, where: str, failure: Exception) -> DenizenError:
        where = f"{where}() of {type(self._driver).__module__}"
        return DenizenError(f"The driver {self.name} failed in {where}: {type(failure).__name__}: {failure}")
