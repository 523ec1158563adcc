"""A plan: what to do, and what has to wait for what.

Tasks may have subtasks, which makes the list a tree (decisions, "A task is a task").
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import count, groupby
from typing import Literal

import msgspec

from denizen.config.pattern import pattern
from denizen.entries import AnyEntry, ToolEntry
from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.text.plural import first_of

State = Literal["todo", "doing", "done", "dropped"]

MAX_TASKS = 100
MAX_TASK_DEPTH = 4
"""Levels of subtasks, the tasks themselves among them."""
MAX_GOAL_CHARS = 300
"""Characters."""

_ID = pattern(r"[\w.-]{1,24}")


class Task(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something to do. `after` holds the ids of tasks to wait for; with `subtasks`, `state` follows from theirs."""

    goal: str
    id: str = ""
    state: State = "todo"
    after: tuple[str, ...] = ()
    subtasks: tuple["Task", ...] = ()

    @property
    def closed(self) -> bool:
        """Whether nothing is left to do: it is done, or dropped."""
        return self.state in {"done", "dropped"}


class Plan(msgspec.Struct, frozen=True):
    """Tasks that fit together: make one with `plan_of`. Iterated, each task comes before its subtasks."""

    tasks: tuple[Task, ...] = ()

    def __iter__(self) -> Iterator[Task]:
        return _walk(self.tasks)

    @property
    def steps(self) -> Sequence[Task]:
        """The tasks without subtasks: what is really done."""
        return [task for task in self if not task.subtasks]

    @property
    def ready(self) -> Sequence[Task]:
        """The steps that can begin: nothing is open that they, or the tasks they are part of, wait for."""
        return [*_ready(self.tasks, {task.id for task in self if task.closed})]

    def find(self, task_id: str) -> Task:
        """The task of that id. Raises ToolRefused that names those there are."""
        for task in self:
            if task.id == task_id:
                return task
        raise ToolRefused(f"there is no task {task_id!r}; {_ids_there(self)}")

    def change(self, task_id: str, change: Callable[[Task], Task]) -> "Plan":
        """The plan with that task changed. Raises ToolRefused for one that isn't there, and like `plan_of`."""
        self.find(task_id)
        return plan_of(_changed(self.tasks, task_id, change))


def plan_of(tasks: Iterable[Task]) -> Plan:
    """The tasks as a plan: those without an id get one by their position (`2.1`), those with subtasks their state.

    Raises ToolRefused, in words for the model, for more than a plan holds, ids that are taken or invalid, and tasks
    that wait for themselves, for what isn't there, or in a circle.
    """
    tasks = tuple(tasks)
    level, number = [*tasks], 0
    for _ in range(MAX_TASK_DEPTH):
        number += len(level)
        level = [subtask for task in level for subtask in task.subtasks]
    if level:
        raise ToolRefused(f"a plan has {MAX_TASK_DEPTH} levels at most; make the subtasks of the deepest one a list")
    if number > MAX_TASKS:
        raise ToolRefused(f"a plan holds {MAX_TASKS} tasks, not {number}; combine small steps")
    plan = Plan(tuple(_completed(tasks, "", {task.id for task in _walk(tasks)})))
    seen: set[str] = set()
    for task in plan:
        if not 1 <= len(task.goal) <= MAX_GOAL_CHARS:
            raise ToolRefused(f"task {task.id}: a goal is a line of 1 to {MAX_GOAL_CHARS} characters")
        if not _ID.fullmatch(task.id):
            raise ToolRefused(f"{task.id!r} can't be an id: letters, digits, dots and dashes, 24 at most")
        if task.id in seen:
            raise ToolRefused(f"two tasks have the id {task.id!r}; give each its own, or none")
        seen.add(task.id)
    _check_order(plan)
    return plan


def current_plan(entries: Sequence[AnyEntry]) -> Plan:
    """The plan of a session: what its last `task` call left; empty if there was none."""
    for entry in reversed(entries):
        if isinstance(entry, ToolEntry) and (plan := plan_in(entry.message)):
            return plan
    return Plan()


def plan_in(result: ToolResult) -> Plan | None:
    """The plan that a result of `task` holds; None for any other result."""
    if result.name != "task" or result.is_error or not isinstance(result.details, dict):
        return None
    try:
        return Plan(msgspec.convert(result.details.get("tasks"), tuple[Task, ...]))
    except msgspec.ValidationError:  # of another tool that has the name
        return None


def _walk(tasks: Iterable[Task]) -> Iterator[Task]:
    for task in tasks:
        yield task
        yield from _walk(task.subtasks)


def _ready(tasks: Iterable[Task], closed: set[str]) -> Iterator[Task]:
    for task in tasks:
        if closed.issuperset(task.after):
            if task.subtasks:
                yield from _ready(task.subtasks, closed)
            elif task.state == "todo":
                yield task


def _changed(tasks: Iterable[Task], task_id: str, change: Callable[[Task], Task]) -> tuple[Task, ...]:
    return tuple(
        change(task)
        if task.id == task_id
        else msgspec.structs.replace(task, subtasks=_changed(task.subtasks, task_id, change))
        for task in tasks
    )


def _completed(tasks: Iterable[Task], prefix: str, taken: set[str]) -> Iterator[Task]:
    for position, task in enumerate(tasks, 1):
        own = task.id or next(name for n in count(position) if (name := f"{prefix}{n}") not in taken)
        taken.add(own)
        subtasks = tuple(_completed(task.subtasks, f"{own}.", taken))
        goal, state = " ".join(task.goal.split()), task.state
        if states := {subtask.state for subtask in subtasks}:
            if states <= {"done", "dropped"}:
                state = "done" if "done" in states else "dropped"
            else:
                state = "doing" if states & {"doing", "done"} or task.state == "doing" else "todo"
        yield msgspec.structs.replace(task, goal=goal, id=own, subtasks=subtasks, state=state)


def _check_order(plan: Plan) -> None:
    ids = {task.id for task in plan}
    graph = TopologicalSorter[tuple[str, str]]()
    for task in plan:
        for other in task.after:
            if other == task.id:
                raise ToolRefused(f"task {other} can't wait for itself")
            if other not in ids:
                raise ToolRefused(f"task {task.id} can't wait for {other!r}, which isn't there; {_ids_there(plan)}")
        graph.add(("end", task.id), ("begin", task.id), *[("end", subtask.id) for subtask in task.subtasks])
        graph.add(("begin", task.id), *[("end", other) for other in task.after])
        for subtask in task.subtasks:
            graph.add(("begin", subtask.id), ("begin", task.id))
    try:
        graph.prepare()
    except CycleError as error:
        names = [name for name, _ in groupby(name for _, name in reversed(error.args[1]))]
        raise ToolRefused(
            f"these tasks would wait for each other in a circle: {' → '.join(names)}. A task is over when its subtasks "
            "are, and they can't begin before it can; leave out one `after`"
        ) from None


def _ids_there(plan: Plan) -> str:
    ids = [task.id for task in plan]
    return f"available: {first_of(ids, 20)}" if ids else "the plan is empty"
