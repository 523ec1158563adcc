"""The `planning` driver: a plan first, revised on the way (seed 001, "Planning vs Reactive": plan loosely)."""

from denizen.ports import Action, Iteration, Proceed, View
from denizen.tasks import Plan, current_plan, plan_in

STALE = 5
"""Iterations without a call of `task`, after which the plan is brought to mind."""

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


class Planning:
    """Asks for a plan with the tool `task`, reminds of it when it lies untouched, and says when all of it is done."""

    def __init__(self) -> None:
        self._iterations = 0
        self._plan: Plan | None = None  # None: not touched in this turn
        self._untouched = 0
        self._just_done = False

    def decide(self, view: View) -> Action:
        """Tell the model what it needs to know of the plan."""
        if self._iterations == 0:
            return Proceed(_GO_ON if _open(current_plan(view.session.entries)) else _BEGIN)
        if self._just_done:
            return Proceed(_ALL_DONE)
        if self._untouched and self._untouched % STALE == 0:
            return self._remind(self._plan or current_plan(view.session.entries))
        return Proceed()

    def observe(self, iteration: Iteration) -> None:
        """See what became of the plan."""
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
