"""`task`: the plan that the model keeps of its work (decisions, "A task is a task"), written and shown as lines.

What is shown can be written again: `parse_plan(format_plan(plan))` is the same plan.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from denizen.config.pattern import pattern
from denizen.errors import ToolRefused
from denizen.messages import Text, ToolResult
from denizen.ports import ToolContext, Traits
from denizen.ports.tasks import MAX_TASKS, Plan, State, Task, current_plan, plan_of
from denizen.tools.function import tool

MAX_NAMED = 6  # ready tasks that are named

_BY_ACTION: dict[str, State] = {"start": "doing", "done": "done", "drop": "dropped"}
_MARKS: dict[State, str] = {"todo": " ", "doing": ">", "done": "x", "dropped": "-"}
_STATES: dict[str, State] = {mark: state for state, mark in _MARKS.items()} | {"X": "done", "✓": "done", "~": "doing"}
_HEAD = pattern(r"Plan: \d+ of \d+ done.*|There is no plan\.")
_LINE = pattern(
    r"""(?:[-*+•]\s+(?=\S))?
        (?:(?P<number>\d+(?:\.\d+)*)[.):]\s+ | (?P<id>[\w.-]+)\s+(?=\[.\]\s))?
        (?:\[(?P<mark>.)\]\s+)?
        (?P<goal>.*?)
        (?:\s*\((?:after|depends\ on)\s(?P<after>[^()]+)\))?""",
    re.VERBOSE | re.IGNORECASE,
)


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
            plan: a goal a line, subtasks indented, `(after 1, 2)` at the end of one that waits
        under: add: id of the task it is part of
        after: add, edit: ids it waits for (none: for nothing)
        tasks: plan, in place of text: objects of goal, after, subtasks
    """
    was = current_plan(turn.entries)
    waits_for = None if after is None else _ids(",".join(after))
    match action:
        case "list":
            return _answer(was, was, format_plan(was))
        case "plan":
            try:
                given = msgspec.convert(tasks, list[Task], strict=False) if tasks else parse_plan(text)
            except (msgspec.ValidationError, RecursionError) as error:
                raise ToolRefused(f"task: `tasks` must hold objects of goal, after and subtasks: {error}") from None
            plan = plan_of(given)
            return _answer(was, plan, format_plan(plan))
        case "add":
            new = [*parse_plan(text)]
            if not new:
                raise ToolRefused("task add: what is to be done? Give a goal")
            new[0] = replace(new[0], after=(*new[0].after, *(waits_for or ())))
            if under:
                return _changes(was, was.change(under, lambda task: replace(task, subtasks=(*task.subtasks, *new))))
            return _changes(was, plan_of((*was.tasks, *new)))
        case "edit":
            task_id, _, goal = text.strip().partition(" ")
            if not goal and waits_for is None:
                raise ToolRefused("task edit: give the id and the new goal, or `after`")
            changed: dict[str, Any] = {} if waits_for is None else {"after": waits_for}
            if goal:
                changed["goal"] = _parse_line(goal).goal
            return _changes(was, was.change(task_id, lambda task: replace(task, **changed)))
        case "start" | "done" | "drop":
            return _mark(was, _ids(text), _BY_ACTION[action])


def format_plan(plan: Plan) -> str:
    """The plan in lines, with what is done and what can begin above it."""
    if not plan.tasks:
        return "There is no plan."
    steps, ready = plan.steps, plan.ready
    head = [f"Plan: {sum(task.state == 'done' for task in steps)} of {len(steps)} done"]
    if dropped := sum(task.state == "dropped" for task in steps):
        head.append(f"{dropped} dropped")
    if ready:
        head.append("ready: " + ", ".join([task.id for task in ready[:MAX_NAMED]]) + ", …" * (len(ready) > MAX_NAMED))
    return "\n".join(["; ".join(head), *_lines(plan.tasks, "")])


def parse_plan(text: str) -> tuple[Task, ...]:
    """The tasks of several lines, subtasks indented. Raises ToolRefused for a line that isn't one, and for too many."""
    lines = [line.expandtabs(4) for line in text.splitlines() if line.strip()]
    if lines and _HEAD.fullmatch(lines[0].strip()):
        del lines[0]
    if len(lines) > MAX_TASKS:
        raise ToolRefused(f"a plan holds {MAX_TASKS} tasks, not {len(lines)}; combine small steps")
    return tuple(_parse_block(lines, nested=False))


def _lines(tasks: Sequence[Task], indent: str) -> Iterator[str]:
    for task in tasks:
        waits = f" (after {', '.join(task.after)})" if task.after else ""
        yield f"{indent}{task.id} [{_MARKS[task.state]}] {task.goal}{waits}"
        yield from _lines(task.subtasks, f"{indent}  ")


def _parse_block(lines: Sequence[str], *, nested: bool) -> Iterator[Task]:
    """The tasks of a block: each line as little indented as the first begins one, what is deeper belongs to it."""
    indents = [len(line) - len(line.lstrip()) for line in lines]
    starts = [number for number, indent in enumerate(indents) if indent <= indents[0]]
    for start, end in pairwise([*starts, len(lines)]):
        subtasks = tuple(_parse_block(lines[start + 1 : end], nested=True))
        yield replace(_parse_line(lines[start], nested=nested), subtasks=subtasks)


def _parse_line(line: str, *, nested: bool = False) -> Task:
    """The task that one line means. The bare number of a `nested` one is its position there, not an id."""
    match = _LINE.fullmatch(" ".join(line.split()))
    if match is None or not match["goal"]:
        raise ToolRefused(f"{line.strip()[:60]!r} isn't a task: a line says its goal")
    if (mark := match["mark"] or " ") not in _STATES:
        raise ToolRefused(f"[{mark}] isn't a state; available: {', '.join(f'[{m}] {s}' for s, m in _MARKS.items())}")
    own = match["id"] or match["number"] or ""
    return Task(match["goal"], "" if nested and own.isdigit() else own, _STATES[mark], _ids(match["after"] or ""))


def _ids(text: str) -> tuple[str, ...]:
    """The ids in `1, 2`, `1 2` or `1 and 2`; nothing for `none`."""
    found = tuple(dict.fromkeys(name for name in re.split(r"[\s,;]+", text) if name not in {"", "and"}))
    return () if found == ("none",) else found


def _mark(was: Plan, task_ids: Sequence[str], state: State) -> ToolResult:
    if not task_ids:
        raise ToolRefused("task: which one? Give its id")
    plan = was
    for task_id in task_ids:
        plan = plan.change(task_id, lambda task: _with_state(task, state))
    early = [step.id for step in was.steps if step.id in task_ids and step.state == "todo" and step not in was.ready]
    if not early or state == "dropped":  # an order that doesn't hold is the plan's mistake, so this is only a question
        return _changes(was, plan)
    return _changes(was, plan, f"\n({', '.join(early)} should have waited for what is still open: is that right?)")


def _with_state(task: Task, state: State) -> Task:
    """The task in that state; once closed, so is all that was open in it."""
    subtasks = task.subtasks
    if state != "doing":
        subtasks = tuple(subtask if subtask.closed else _with_state(subtask, state) for subtask in subtasks)
    return replace(task, state=state, subtasks=subtasks)


def _changes(was: Plan, plan: Plan, remark: str = "") -> ToolResult:
    """The answer to a change: the plan's head and the lines that changed. The model has the rest."""
    before = {*format_plan(was).splitlines()}
    head, *lines = format_plan(plan).splitlines()
    return _answer(was, plan, "\n".join([head, *(line for line in lines if line not in before)]) + remark)


def _answer(was: Plan, plan: Plan, text: str) -> ToolResult:
    lines = format_plan(plan)
    details = {"tasks": msgspec.json.decode(msgspec.json.encode(plan.tasks)), "plan": lines}
    return ToolResult("", "", [Text(text)], for_user=None if plan == was else lines, details=details)
