"""What recorded transcripts show of how tools are called, and the defaults that would have saved calls."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from denizen.entries import AnyEntry, AssistantEntry, StartedEntry, ToolEntry, UserEntry
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult, UserMessage
from denizen.ports import Schema
from denizen.sessions.codec import load
from denizen.tools import tool
from denizen.tools.friction import Friction, Proposal, friction, proposals
from denizen.tools.task import task

DATA = Path(__file__).parent.parent / "data" / "friction"


@tool
def grep(
    pattern: str,
    path: str = ".",
    *,
    glob: str = "",
    ignore_case: bool = False,
    context: Annotated[int, Meta(ge=0, le=50)] = 0,
    mode: Literal["lines", "files"] = "lines",
    start: int = 1,
) -> str:
    """Search."""
    return pattern


@tool
def read(path: str, start: int = 1) -> str:
    """Read."""
    return path


SCHEMAS = {each.name: each.schema for each in (grep, read)}


def recorded(*names: str) -> list[Sequence[AnyEntry]]:
    transcripts = [load((DATA / f"{name}.jsonl").read_bytes(), name) for name in names]
    return [transcript.path(transcript.head) for transcript in transcripts]


def report(*transcripts: Sequence[AnyEntry]) -> dict[str, Friction]:
    return {each.tool: each for each in friction([(entries, calls_of) for entries in transcripts], SCHEMAS)}


def calls_of(message: AssistantMessage) -> list[ToolCall]:
    return message.tool_calls


def turn(*calls: dict[str, Any], tool: str = "grep", error: str = "", changes: bool = False) -> list[AnyEntry]:
    """A user's message, and replies with one call each that are answered."""
    entries: list[AnyEntry] = [UserEntry(message=UserMessage([Text("Task")]))]
    for args in calls:
        entries.append(AssistantEntry(message=AssistantMessage([ToolCall("c1", tool, args)])))
        entries += [StartedEntry(call_id="c1", name=tool)] if changes else []
        entries.append(ToolEntry(message=ToolResult("c1", tool, [Text(error or "found")], is_error=bool(error))))
    return entries


# What recorded sessions show


def test_a_search_made_again_with_more_context_is_a_correction() -> None:
    found = report(*recorded("searching"))["grep"]
    assert found.calls == 7
    assert found.of["corrected"] == {"context: not given → 3": 3}


def test_what_was_asked_twice_in_a_turn_is_repeated() -> None:
    found = report(*recorded("searching"))
    assert found["read"].of["repeated"] == {'path="shop.py"': 1}
    assert found["ls"].count("repeated") == 0


def test_after_a_change_the_same_question_is_not_a_repetition() -> None:
    assert report(*recorded("stumbling"))["read"].count("repeated") == 0


def test_misuse_refusals_failures_and_what_was_cut_off_are_told_apart() -> None:
    found = report(*recorded("stumbling"))
    assert found["read"].count("misused") == found["raed"].count("misused") == 1
    assert found["write"].of["refused"] == {"not run: the user said no": 1}
    assert found["read"].of["failed"] == {"shop.pi doesn't exist; the nearest: shop.py": 1}
    assert found["read"].of["cut_off"] == {'path="long.txt"': 1}
    assert found["edit"].of == {}


def test_a_wrong_name_put_right_is_a_correction_and_reading_on_is_none() -> None:
    assert report(*recorded("stumbling"))["read"].of["corrected"] == {'path: "shop.pi" → "shop.py"': 1}


def test_tools_with_most_friction_come_first() -> None:
    assert [*report(*recorded("stumbling", "searching"))][:2] == ["read", "grep"]


# What counts as what


def test_another_question_is_no_correction() -> None:
    entries = turn({"pattern": "a"}, {"pattern": "b"}, {"pattern": "b", "path": "src"}, {"pattern": "b", "start": 201})
    assert report(entries)["grep"].count("corrected") == 0


def test_the_next_task_done_is_no_correction() -> None:
    schema = {task.name: task.schema}
    entries = turn({"action": "done", "text": "1"}, {"action": "done", "text": "2"}, tool="task")
    [found] = friction([(entries, calls_of)], schema)
    assert found.count("corrected") == 0


def test_two_changes_or_another_turn_are_no_correction() -> None:
    two = turn({"pattern": "a"}, {"pattern": "a", "context": 2, "mode": "files"})
    apart = [*turn({"pattern": "a"}), *turn({"pattern": "a", "context": 2})]
    assert report(two)["grep"].count("corrected") == report(apart)["grep"].count("corrected") == 0


def test_a_call_that_may_change_something_is_never_repeated() -> None:
    assert report(turn({"pattern": "a"}, {"pattern": "a"}, changes=True))["grep"].count("repeated") == 0


def test_a_call_that_failed_may_be_made_again() -> None:
    assert report(turn({"pattern": "a"}, {"pattern": "a"}, error="gone"))["grep"].count("repeated") == 0


@pytest.mark.parametrize(
    ("args", "error", "kind"),
    [
        ({"_misused": "view: no such flag"}, "view: no such flag", "misused"),
        ({"invalid_json": "{"}, "not run: the arguments of grep are not a JSON object", "misused"),
        ({"pattern": 1}, "grep: wrong arguments: `pattern` must be string", "misused"),
        ({}, "not run: grep refused: read-only session.", "refused"),
        ({"pattern": "["}, "the pattern is no regular expression", "failed"),
        ({"pattern": "a"}, "x\n[ended: it took longer than 120 s; give it a longer timeout]", "cut_off"),
    ],
)
def test_kinds_of_errors(args: dict[str, Any], error: str, kind: Literal["misused", "refused"]) -> None:
    found = report(turn(args, error=error))["grep"]
    assert [*found.of] == [kind]


@pytest.mark.parametrize("command", ["cat shop.py", "grep -rn total .", " ls -la ", "sed -n 1,40p shop.py"])
def test_a_program_run_in_place_of_a_tool_is_a_way_around_it(command: str) -> None:
    found = report(turn({"command": command}, tool="bash"))["bash"]
    assert found.of == {"worked_around": {command.strip(): 1}}


@pytest.mark.parametrize("command", ["make test", "grep -c total shop.py | sort", "cat <<X", "catalogue", "", 7])
def test_what_only_a_shell_can_do_is_none(command: object) -> None:
    assert report(turn({"command": command}, tool="bash"))["bash"].of == {}


def test_calls_that_were_dropped_or_never_answered_do_not_count() -> None:
    unanswered = AssistantEntry(message=AssistantMessage([ToolCall("c9", "grep", {"pattern": "a"})]))
    entries = [*turn({"pattern": "a"}, error="not run: cancelled"), unanswered]
    assert report(entries) == {}


def test_a_tool_that_there_is_no_more_is_reported_all_the_same() -> None:
    assert report(turn({"a": 1}, {"a": 1}, tool="gone"))["gone"].count("repeated") == 1


# Proposals


def proposed(*transcripts: Sequence[AnyEntry], schemas: dict[str, Schema] = SCHEMAS) -> list[Proposal]:
    return proposals(report(*transcripts).values(), schemas)


def corrected(*values: Any, argument: str = "context") -> list[AnyEntry]:
    return [
        entry
        for number, value in enumerate(values)
        for entry in turn({"pattern": f"p{number}"}, {"pattern": f"p{number}", argument: value})
    ]


def test_what_was_corrected_three_times_is_proposed() -> None:
    [proposal] = proposed(*recorded("searching"))
    assert (proposal.name, proposal.value, proposal.now) == ("grep.context", 3, None)
    assert proposal.why == "3 of 7 calls were made again at once with another context"


def test_what_nearly_every_call_gives_is_proposed() -> None:
    [proposal] = proposed(*recorded("habits"))
    assert (proposal.name, proposal.value, proposal.why) == ("grep.ignore_case", True, "12 of 12 calls give it")


def test_two_corrections_prove_nothing() -> None:
    assert proposed(corrected(2, 2)) == []


def test_a_few_corrections_among_many_calls_prove_nothing() -> None:
    others = turn(*({"pattern": f"other {number}"} for number in range(20)))
    assert proposed(corrected(2, 2, 2), others) == []


def test_of_numbers_the_middle_is_proposed_and_of_words_what_most_agree_on() -> None:
    assert [each.value for each in proposed(corrected(2, 9, 4))] == [4]
    assert [each.value for each in proposed(corrected("*.py", "*.py", "*.js", argument="glob"))] == ["*.py"]
    assert proposed(corrected("*.py", "*.c", "*.js", argument="glob")) == []


def test_what_is_the_default_already_is_not_proposed() -> None:
    properties = SCHEMAS["grep"].parameters["properties"]
    told = {**properties, "context": {**properties["context"], "default": 3}}
    schema = Schema("grep", "", {**SCHEMAS["grep"].parameters, "properties": told})
    assert proposed(*recorded("searching"), schemas={"grep": schema}) == []
    assert proposed(turn(*({"pattern": f"{n}", "ignore_case": False} for n in range(12)))) == []


def test_what_the_tool_would_refuse_is_not_proposed() -> None:
    assert proposed(corrected(99, 99, 99)) == []
    assert proposed(corrected([1], [1], [1], argument="glob")) == []


def test_which_part_to_show_and_what_the_policy_judges_by_are_never_proposed() -> None:
    pages = turn(*({"pattern": f"{number}", "start": 201, "path": "src"} for number in range(12)))
    assert proposed(pages) == []
