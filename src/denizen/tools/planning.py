"""A plan as lines: as the model writes it, and as it and the person see it.

What is shown can be written again: `read_lines(shown(plan))` is the same plan.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from denizen.errors import ToolRefused
from denizen.tasks import MOST_TASKS, Plan, State, Task

MOST_NAMED = 6
"""Ready tasks that are named."""

_MARKS: dict[State, str] = {"todo": " ", "doing": ">", "done": "x", "dropped": "-"}
_STATES: dict[str, State] = {mark: state for state, mark in _MARKS.items()} | {"X": "done", "✓": "done", "~": "doing"}
_HEAD = re.compile(r"Plan: \d+ of \d+ done.*|There is no plan\.")
_LINE = re.compile(
    r"""(?:[-*+•]\s+(?=\S))?
        (?:(?P<number>\d+(?:\.\d+)*)[.):]\s+ | (?P<id>[\w.-]+)\s+(?=\[.\]\s))?
        (?:\[(?P<mark>.)\]\s+)?
        (?P<goal>.*?)
        (?:\s*\((?:after|depends\ on)\s(?P<after>[^()]+)\))?""",
    re.VERBOSE | re.IGNORECASE,
)


def shown(plan: Plan) -> str:
    """The plan in lines, with what is done and what can be begun above it."""
    if not plan.tasks:
        return "There is no plan."
    steps, ready = plan.steps, plan.ready
    head = [f"Plan: {sum(task.state == 'done' for task in steps)} of {len(steps)} done"]
    if dropped := sum(task.state == "dropped" for task in steps):
        head.append(f"{dropped} dropped")
    if ready:
        head.append("ready: " + ", ".join([task.id for task in ready[:MOST_NAMED]]) + ", …" * (len(ready) > MOST_NAMED))
    return "\n".join(["; ".join(head), *_lines(plan.tasks, "")])


def _lines(tasks: Sequence[Task], indent: str) -> Iterator[str]:
    for task in tasks:
        waits = f" (after {', '.join(task.after)})" if task.after else ""
        yield f"{indent}{task.id} [{_MARKS[task.state]}] {task.goal}{waits}"
        yield from _lines(task.subtasks, f"{indent}  ")


def read_lines(text: str) -> tuple[Task, ...]:
    """The tasks of several lines, subtasks indented. Raises ToolRefused for a line that is none, and for too many."""
    lines = [line.expandtabs(4) for line in text.splitlines() if line.strip()]
    if lines and _HEAD.fullmatch(lines[0].strip()):
        del lines[0]
    if len(lines) > MOST_TASKS:
        raise ToolRefused(f"a plan holds {MOST_TASKS} tasks, not {len(lines)}; make several small steps one")
    return tuple(_tasks(lines, nested=False))


def read_line(line: str, *, nested: bool = False) -> Task:
    """The task that one line means. The bare number of a `nested` one is its place there, not an id."""
    match = _LINE.fullmatch(" ".join(line.split()))
    if match is None or not match["goal"]:
        raise ToolRefused(f"{line.strip()[:60]!r} is no task: a line says its goal")
    if (mark := match["mark"] or " ") not in _STATES:
        raise ToolRefused(f"[{mark}] is no state; there are {', '.join(f'[{m}] {s}' for s, m in _MARKS.items())}")
    own = match["id"] or match["number"] or ""
    return Task(match["goal"], "" if nested and own.isdigit() else own, _STATES[mark], ids(match["after"] or ""))


def ids(text: str) -> tuple[str, ...]:
    """The ids in `1, 2`, `1 2` or `1 and 2`."""
    return tuple(dict.fromkeys(name for name in re.split(r"[\s,;]+", text) if name not in {"", "and"}))


def _tasks(lines: Sequence[str], *, nested: bool) -> Iterator[Task]:
    """The tasks of a block: each line as little indented as the first begins one, what is deeper belongs to it."""
    starts = [number for number, line in enumerate(lines) if _indent(line) <= _indent(lines[0])]
    for start, end in pairwise([*starts, len(lines)]):
        within = tuple(_tasks(lines[start + 1 : end], nested=True))
        yield msgspec.structs.replace(read_line(lines[start], nested=nested), subtasks=within)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
