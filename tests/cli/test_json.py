"""`--json`: one event object a line, the last of them `done`, whatever happens."""

import json
from typing import Any

import pytest
from tests.cli.conftest import Ran, Run
from tests.cli.model import Model, call, dies, refuses


def events(ran: Ran) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran.out.splitlines()]


def test_every_event_is_a_line_and_the_last_is_done(denizen: Run, model: Model) -> None:
    model.plays(call("read", "Let me look.", path="hello.py"), "It prints hello.")
    ran = denizen("ask", "--json", "What does it do?")
    types = [event["type"] for event in events(ran)]
    assert ran.status == 0
    assert list(dict.fromkeys(types)) == ["llm_start", "llm_stream", "llm_end", "tool_start", "tool_end", "done"]
    assert events(ran)[-1]["result"]["reply"] == "It prints hello."
    assert events(ran)[-1]["result"]["stop_reason"] == "answered"
    assert types.count("done") == 1


def test_text_is_exact(denizen: Run, model: Model) -> None:
    model.plays("a\x1b[31mb")
    assert events(denizen("ask", "--json", "hi"))[-1]["result"]["reply"] == "a\x1b[31mb"


def test_a_turn_that_failed_ends_with_done(denizen: Run, model: Model) -> None:
    model.plays(refuses(404, "no such model"))
    ran = denizen("ask", "--json", "hi")
    assert ran.status == 1
    assert events(ran)[-1]["result"]["stop_reason"] == "error"
    assert "no such model" in events(ran)[-1]["result"]["error"]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["--model", "nobody:x", "hi"], 2), (["--continue", "hi"], 2), ([], 2)],
    ids=["unknown provider", "nothing to continue", "no message"],
)
def test_a_turn_that_never_began_ends_with_done(denizen: Run, model: Model, arguments: list[str], status: int) -> None:
    ran = denizen("ask", "--json", *arguments)
    assert ran.status == status
    assert events(ran)[-1]["type"] == "done"
    assert events(ran)[-1]["result"]["error"]


@pytest.mark.usefixtures("asks_about_writes")
def test_a_parked_turn_says_what_it_waits_for(denizen: Run, model: Model) -> None:
    model.plays(call("write", path="new.txt", content="x"))
    ran = denizen("ask", "--json", "--session", "s", "write")
    parked, done = events(ran)[-2:]
    assert ran.status == 4
    assert parked["type"] == "parked"
    assert done["result"]["stop_reason"] == "parked"


@pytest.mark.usefixtures("asks_about_writes")
@pytest.mark.parametrize(("option", "written"), [("--yes", True), ("--non-interactive", False)])
def test_questions_are_answered_by_the_options(
    denizen: Run, model: Model, repo: Any, option: str, written: bool
) -> None:
    model.plays(call("write", path="new.txt", content="x"), "Done.")
    ran = denizen("ask", "--json", option, "write")
    assert ran.status == 0
    assert (repo / "new.txt").exists() == written


def test_a_stream_that_died_is_withdrawn(denizen: Run, model: Model) -> None:
    model.plays(dies("Half an"), "Whole.")
    types = [event["type"] for event in events(denizen("ask", "--json", "hi"))]
    assert types.index("withdrawn") < types.index("retry") < types.index("llm_end")


def test_without_streaming_there_are_no_pieces(denizen: Run, model: Model) -> None:
    model.plays("Whole.")
    assert "llm_stream" not in [event["type"] for event in events(denizen("ask", "--json", "--no-stream", "hi"))]
