"""`task`: the plan that the model keeps of its work (seed 001, "Task = Task")."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from denizen.errors import ToolRefused
from denizen.messages import Text, ToolResult
from denizen.ports import ToolContext, Traits
from denizen.tasks import Plan, State, Task, current_plan, plan_of
from denizen.tools.function import tool
from denizen.tools.planning import ids, read_line, read_lines, shown

_STATES: dict[str, State] = {"start": "doing", "done": "done", "drop": "dropped"}


@tool(traits=Traits.REPEATABLE)  # the plan is in its results and nowhere else: a call without one has changed nothing
async def task(
    turn: ToolContext,
    action: Literal["list", "plan", "add", "start", "done", "drop", "edit"] = "list",
    text: str = "",
    *,
    under: str = "",
    after: list[str] | None = None,
    tasks: list[dict[str, Any]] | None = None,
) -> ToolResult:
    """Keep a plan of longer work: what is to be done, and what waits for what.

    Args:
        action: plan sets a whole new one
        text: add: the goal; start, done, drop: ids; edit: an id and its new goal;
            plan: a goal a line, subtasks indented, `(after 1, 2)` behind one that waits
        under: add: id of the task it is part of
        after: add, edit: ids it waits for (none: for nothing)
        tasks: plan, in place of text: objects of goal, after, subtasks
    """
    was = current_plan(turn.entries)
    match action:
        case "list":
            return _answer(was, was, shown(was))
        case "plan":
            plan = plan_of(_drafts(tasks) if tasks else read_lines(text))
            return _answer(was, plan, shown(plan))
        case "add":
            return _changed(was, _add(was, text, under, _ids(after or ())))
        case "edit":
            return _changed(was, _edit(was, text, None if after is None else _ids(after)))
        case "start" | "done" | "drop":
            return _changed(was, _mark(was, ids(text), _STATES[action]), _too_early(was, ids(text), action))


def _drafts(tasks: list[dict[str, Any]]) -> list[Task]:
    try:
        return msgspec.convert(tasks, list[Task], strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ToolRefused(f"task: `tasks` must hold objects of goal, after and subtasks: {error}") from None


def _ids(given: Iterable[str]) -> tuple[str, ...]:
    """The ids, however they were separated."""
    found = ids(",".join(given))
    return () if found == ("none",) else found


def _add(plan: Plan, text: str, under: str, after: Sequence[str]) -> Plan:
    new = [*read_lines(text)]
    if not new:
        raise ToolRefused("task add: what is to be done? Give a goal")
    new[0] = msgspec.structs.replace(new[0], after=(*new[0].after, *after))
    if not under:
        return plan_of((*plan.tasks, *new))
    return plan.change(under, lambda task: msgspec.structs.replace(task, subtasks=(*task.subtasks, *new)))


def _edit(plan: Plan, text: str, after: Sequence[str] | None) -> Plan:
    task_id, _, goal = text.strip().partition(" ")
    if not goal and after is None:
        raise ToolRefused("task edit: give the id and the new goal, or `after`")
    changed: dict[str, Any] = {} if after is None else {"after": tuple(after)}
    if goal:
        changed["goal"] = read_line(goal).goal
    return plan.change(task_id, lambda task: msgspec.structs.replace(task, **changed))


def _mark(plan: Plan, task_ids: Sequence[str], state: State) -> Plan:
    if not task_ids:
        raise ToolRefused("task: which one? Give its id")
    for task_id in task_ids:
        plan = plan.change(task_id, lambda task: _with_state(task, state))
    return plan


def _with_state(task: Task, state: State) -> Task:
    """The task in that state; what is over, is so with all that was open in it."""
    within = task.subtasks
    if state != "doing":
        within = tuple(subtask if subtask.closed else _with_state(subtask, state) for subtask in within)
    return msgspec.structs.replace(task, state=state, subtasks=within)


def _too_early(was: Plan, task_ids: Sequence[str], action: str) -> str:
    """What is said of steps that weren't ready: an order that doesn't hold is the plan's mistake, not a misuse."""
    held = [step.id for step in was.steps if step.id in task_ids and step.state == "todo" and step not in was.ready]
    if not held or action == "drop":
        return ""
    return f"\n({', '.join(held)} should have waited for what is still open: is that right?)"


def _changed(was: Plan, plan: Plan, remark: str = "") -> ToolResult:
    """The answer to a change: how the plan stands, and the lines that are others now. The rest the model has."""
    before = {*shown(was).splitlines()}
    head, *lines = shown(plan).splitlines()
    return _answer(was, plan, "\n".join([head, *(line for line in lines if line not in before)]) + remark)


def _answer(was: Plan, plan: Plan, text: str) -> ToolResult:
    lines = shown(plan)
    details = {"tasks": msgspec.json.decode(msgspec.json.encode(plan.tasks)), "plan": lines}
    return ToolResult("", "", [Text(text)], for_user=None if plan == was else lines, details=details)
