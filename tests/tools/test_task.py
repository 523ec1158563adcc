"""`task` as the model sees it: a plan that follows from the session's entries alone."""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.entries import AnyEntry, ToolEntry
from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import Tool, ToolContext, Traits
from denizen.ports.tasks import Plan, Task, current_plan, plan_of
from denizen.testing import ToolConformance
from denizen.tools.task import format_plan, parse_plan, task

Use = Callable[..., Awaitable[ToolResult]]
After = Callable[..., Awaitable[str]]

PLAN = """\
Plan: 0 of 4 done; ready: 1
1 [ ] Read the spec
2 [ ] Implement it (after 1)
  2.1 [ ] Write the parser
  2.2 [ ] Write the printer (after 2.1)
3 [ ] Test it (after 2)"""


@pytest.fixture
def entries() -> list[AnyEntry]:
    return []


@pytest.fixture
def after(use: Use) -> After:
    """The whole plan after a call: `await after("add", "Read the spec")`."""

    async def run(*args: Any, **options: Any) -> str:
        return (await use(*args, **options)).details["plan"]

    return run


@pytest.fixture
def use(turn: ToolContext, entries: list[AnyEntry]) -> Use:
    """Call the tool in a session that keeps its results: `await use("add", "Read the spec")`."""

    async def run(action: str, text: str = "", **args: Any) -> ToolResult:
        given = {"action": action, **({"text": text} if text else {}), **args}
        result = await task.run(given, dataclasses.replace(turn, entries=entries))
        entries.append(ToolEntry(message=result))
        return result

    return run


class TestTask(ToolConformance):
    @pytest.fixture
    def tool(self) -> Tool:
        return task

    @pytest.fixture
    def args(self) -> dict[str, Any]:
        return {"action": "add", "text": "Read the spec"}


async def test_there_is_no_plan_at_first(use: Use) -> None:
    assert (await use("list")).text == "There is no plan."


async def test_a_plan_is_set_by_lines(use: Use) -> None:
    lines = """
        - Read the spec
        - Implement it (after 1)
            - Write the parser
            - Write the printer (after 2.1)
        - Test it (after 2)
    """
    assert (await use("plan", lines)).text == PLAN


async def test_a_plan_is_set_by_objects(use: Use) -> None:
    printer = {"goal": "Write the printer", "after": ["2.1"]}
    tasks = [
        {"goal": "Read the spec"},
        {"goal": "Implement it", "after": ["1"], "subtasks": [{"goal": "Write the parser"}, printer]},
        {"goal": "Test it", "after": ["2"]},
    ]
    assert (await use("plan", tasks=tasks)).text == PLAN


async def test_what_is_shown_can_be_changed_and_set_again(use: Use, after: After) -> None:
    await use("plan", PLAN)
    await use("done", "1")
    text = await after("start", "2.1")
    changed = text.replace("3 [ ] Test it (after 2)", "4 [ ] Document it\n3 [ ] Test it (after 2, 4)")
    assert (await use("plan", changed)).text == changed.replace("1 of 4", "1 of 5").replace("done", "done; ready: 4", 1)


@pytest.mark.parametrize("line", ["1. Read it", "1) Read it", "* Read it", "- [ ] Read it", "Read it", "1 [ ] Read it"])
async def test_lines_may_be_written_as_lists_are(use: Use, line: str) -> None:
    assert (await use("plan", line)).text.splitlines()[1:] == ["1 [ ] Read it"]


async def test_numbers_begin_anew_in_a_list_within_a_list(use: Use) -> None:
    result = await use("plan", "1. Implement\n   1. parser\n   2. printer\n2. Test")
    assert [each.id for each in Plan(plan(result))] == ["1", "1.1", "1.2", "2"]


async def test_tasks_are_added_one_by_one(use: Use, after: After) -> None:
    await use("add", "Read the spec")
    await use("add", "Implement it", after=["1"])
    await use("add", "Write the parser", under="2")
    await use("add", "Write the printer (after 2.1)", under="2")
    assert await after("add", "Test it", after=["2"]) == PLAN


async def test_task_changes_its_state(use: Use, after: After) -> None:
    await use("plan", "Read\nWrite (after 1)\nTest\nPublish")
    assert (await after("start", "1")).splitlines()[:2] == ["Plan: 0 of 4 done; ready: 3, 4", "1 [>] Read"]
    assert (await after("done", "1")).splitlines()[:2] == ["Plan: 1 of 4 done; ready: 2, 3, 4", "1 [x] Read"]
    dropped = await after("drop", "3, 4")
    assert dropped.splitlines() == [
        "Plan: 1 of 4 done; 2 dropped; ready: 2",
        "1 [x] Read",
        "2 [ ] Write (after 1)",
        "3 [-] Test",
        "4 [-] Publish",
    ]


async def test_a_task_with_subtasks_is_what_they_are(use: Use, after: After) -> None:
    await use("plan", PLAN)
    assert "2 [>] Implement it" in (await after("done", "2.1"))
    assert "2 [x] Implement it" in (await after("drop", "2.2"))
    assert "2 [>] Implement it" in (await after("add", "Write the docs", under="2"))


async def test_what_is_done_is_done_with_all_that_was_open_in_it(use: Use, after: After) -> None:
    await use("plan", PLAN)
    await use("drop", "2.1")
    assert (await after("done", "2")).splitlines()[2:5] == [
        "2 [x] Implement it (after 1)",
        "  2.1 [-] Write the parser",
        "  2.2 [x] Write the printer (after 2.1)",
    ]


async def test_what_a_task_waits_for_may_be_dropped(use: Use, after: After) -> None:
    await use("plan", "Read\nWrite (after 1)")
    assert "ready: 2" in (await after("drop", "1"))


async def test_a_subtask_waits_for_what_the_whole_waits_for(use: Use, after: After) -> None:
    assert "ready: 1\n" in (await after("plan", PLAN))
    assert "ready: 2.1\n" in (await after("done", "1"))


async def test_starting_a_step_too_early_is_questioned(use: Use) -> None:
    await use("plan", PLAN)
    assert (await use("start", "3")).text.endswith("(3 should have waited for what is still open: is that right?)")
    assert "should" not in (await use("done", "1")).text


async def test_a_goal_and_what_it_waits_for_can_be_changed(use: Use, after: After) -> None:
    await use("plan", "Read\nWrite")
    assert "2 [ ] Rewrite it" in (await after("edit", "2 Rewrite it"))
    assert "2 [ ] Rewrite it (after 1)" in (await after("edit", "2", after=["1"]))
    assert "2 [ ] Rewrite it\n" in (await after("edit", "2", after=["none"])) + "\n"


@pytest.mark.parametrize(
    ("action", "args", "why"),
    [
        ("done", {"text": "7"}, "there is no task '7'; available: 1, 2, 2.1, 2.2, 3"),
        ("add", {"text": "More", "under": "7"}, "there is no task '7'"),
        ("add", {"text": "More", "after": ["7"]}, "task 4 can't wait for '7', which isn't there"),
        ("edit", {"text": "1", "after": ["1"]}, "task 1 can't wait for itself"),
        ("edit", {"text": "1", "after": ["3"]}, "in a circle: "),
        ("edit", {"text": "1", "after": ["2.2"]}, "in a circle: "),
        ("edit", {"text": "2.1", "after": ["2"]}, "in a circle: "),
        ("edit", {"text": "2", "after": ["2.1"]}, "in a circle: "),
        ("edit", {"text": "1"}, "give the id and the new goal"),
        ("edit", {"text": "1 " + "x" * 301}, "a goal is a line of 1 to 300 characters"),
        ("add", {}, "what is to be done"),
        ("done", {}, "which one"),
        ("add", {"text": "1. Again"}, "two tasks have the id '1'"),
        (
            "add",
            {"text": "[?] Ask"},
            r"\[\?\] isn't a state; available: \[ \] todo, \[>\] doing, \[x\] done, \[-\] dropped",
        ),
        ("add", {"text": "(after 1)"}, "says its goal"),
        ("plan", {"text": "\n".join(["More"] * 101)}, "a plan holds 100 tasks, not 101"),
        ("plan", {"text": "a\n b\n  c\n   d\n    e"}, "4 levels at most"),
        ("plan", {"tasks": [{"aim": "Read"}]}, "`tasks` must hold objects of goal"),
        ("plan", {"tasks": [{"goal": " "}]}, "a goal is a line"),
        ("plan", {"tasks": [{"goal": "Read", "id": "no id"}]}, "'no id' can't be an id"),
    ],
)
async def test_invalid_plan_is_refused_and_changes_nothing(
    use: Use, entries: list[AnyEntry], action: str, args: dict[str, Any], why: str
) -> None:
    await use("plan", PLAN)
    with pytest.raises(ToolRefused, match=why):
        await use(action, **args)
    assert format_plan(current_plan(entries)) == PLAN


async def test_a_circle_is_named(use: Use) -> None:
    await use("plan", "a\nb (after 1)\nc (after 2)")
    with pytest.raises(ToolRefused, match=r"circle: (1 → 3 → 2 → 1|2 → 1 → 3 → 2|3 → 2 → 1 → 3)\."):
        await use("edit", "1", after=["3"])


async def test_a_call_that_is_run_again_after_a_crash_adds_nothing_twice(use: Use, entries: list[AnyEntry]) -> None:
    lost = await use("add", "Read the spec")
    entries.clear()
    assert await use("add", "Read the spec") == lost
    assert Traits.REPEATABLE in task.traits


async def test_the_person_sees_the_plan_when_it_changes(use: Use) -> None:
    assert (await use("add", "Read")).for_user == "Plan: 0 of 1 done; ready: 1\n1 [ ] Read"
    assert (await use("list")).for_user is None


async def test_change_is_answered_with_the_changed_lines(use: Use) -> None:
    await use("plan", PLAN)
    assert (await use("done", "1")).text == "Plan: 1 of 4 done; ready: 2.1\n1 [x] Read the spec"
    assert (await use("done", "2.1")).text.splitlines() == [
        "Plan: 2 of 4 done; ready: 2.2",
        "2 [>] Implement it (after 1)",
        "  2.1 [x] Write the parser",
    ]
    assert (await use("start", "2")).text == "Plan: 2 of 4 done; ready: 2.2"
    assert (await use("list")).text.count("\n") == 5


async def test_the_details_hold_the_tasks_and_the_lines(use: Use) -> None:
    assert (await use("plan", "Read\nWrite (after 1)")).details == {
        "tasks": [{"goal": "Read", "id": "1"}, {"goal": "Write", "id": "2", "after": ["1"]}],
        "plan": "Plan: 0 of 2 done; ready: 1\n1 [ ] Read\n2 [ ] Write (after 1)",
    }


async def test_the_result_of_another_tool_of_that_name_is_no_plan(entries: list[AnyEntry]) -> None:
    entries.append(ToolEntry(message=ToolResult("1", "task", [], details={"tasks": "none"})))
    assert current_plan(entries) == Plan()


GOALS = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="()[]"), min_size=1, max_size=9)
TASKS = st.recursive(
    st.builds(Task, GOALS, state=st.sampled_from(["todo", "doing", "done", "dropped"])),
    lambda inner: st.builds(Task, GOALS, subtasks=st.lists(inner, max_size=3).map(tuple)),
    max_leaves=12,
)


@given(st.lists(TASKS, max_size=5))
def test_any_plan_reads_as_it_is_shown(tasks: list[Task]) -> None:
    try:
        made = plan_of(tasks)
    except ToolRefused:
        return
    assert plan_of(parse_plan(format_plan(made))) == made


@given(st.text("[]()-x>. 1a\n\tafter", max_size=200))
def test_any_text_is_a_plan_or_refused(text: str) -> None:
    try:
        made = plan_of(parse_plan(text))
    except ToolRefused:
        return
    assert format_plan(made)


def plan(result: ToolResult) -> tuple[Task, ...]:
    return current_plan([ToolEntry(message=result)]).tasks
