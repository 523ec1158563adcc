"""A question that nobody is there to answer parks the turn; `denizen answer` goes on with it."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.model import Model, call

pytestmark = pytest.mark.usefixtures("asks_about_writes")


@pytest.fixture
def parked(denizen: Run, model: Model) -> str:
    """A session that waits for an answer about writing new.txt."""
    model.plays(call("write", "I will write.", path="new.txt", content="x"))
    ran = denizen("ask", "--session", "my work", "write something")
    assert (ran.status, ran.out) == (4, "")
    assert "answer with: denizen answer 'my work' yes|no|TEXT" in ran.err
    return "my work"


def test_yes_runs_the_call_and_goes_on(denizen: Run, model: Model, repo: Path, parked: str) -> None:
    model.plays("Written.")
    ran = denizen("answer", parked, "yes")
    assert (ran.status, ran.out) == (0, "Written.\n")
    assert (repo / "new.txt").read_text() == "x"


def test_no_tells_the_model(denizen: Run, model: Model, repo: Path, parked: str) -> None:
    model.plays("Then not.")
    assert denizen("answer", parked, "no").status == 0
    assert not (repo / "new.txt").exists()
    assert "the user said no" in model.told()


def test_words_reach_the_model_in_place_of_running_the_call(
    denizen: Run, model: Model, repo: Path, parked: str
) -> None:
    model.plays("Then so.")
    denizen("answer", parked, "call", "it", "old.txt")
    assert not (repo / "new.txt").exists()
    assert "call it old.txt" in model.told()


def test_without_an_answer_the_whole_question_is_shown(denizen: Run, parked: str) -> None:
    ran = denizen("answer", parked)
    assert ran.status == 4
    assert "path     new.txt" in ran.out
    assert "content  x" in ran.out
    assert "denizen answer 'my work' yes|no|TEXT" in ran.out


def test_as_json_the_question_is_an_event(denizen: Run, parked: str) -> None:
    event = json.loads(denizen("answer", parked, "--json").out)
    assert event["type"] == "parked"


def test_it_goes_on_in_the_folder_where_the_session_began(
    denizen: Run, model: Model, repo: Path, tmp_path: Path, parked: str
) -> None:
    model.plays("Written.")
    denizen("answer", parked, "yes", cwd=tmp_path)
    assert (repo / "new.txt").exists()


def test_it_goes_on_with_another_profile_where_that_is_named(denizen: Run, model: Model, parked: str) -> None:
    model.plays("Written.")
    denizen("answer", parked, "yes", "--profile", "coder")
    assert "[1] $ write" in str(model.requests[-1]["messages"])


@pytest.mark.parametrize(("options", "goes_on_with"), [([], "other"), (["--model", "test:third"], "third")])
def test_it_goes_on_with_its_model_unless_another_is_named(
    denizen: Run, model: Model, options: list[str], goes_on_with: str
) -> None:
    model.plays(call("write", path="new.txt", content="x"), "Written.")
    assert denizen("ask", "--session", "s", "--model", "test:other", "write it").status == 4
    assert denizen("answer", "s", "yes", *options).status == 0
    assert model.requests[-1]["model"] == goes_on_with


def test_for_session_asks_no_more_in_this_session(denizen: Run, model: Model, parked: str) -> None:
    again = call("write", path="new.txt", content="y")
    model.plays("Written.", again, "Again.", again)
    denizen("answer", parked, "yes", "--for-session")
    assert denizen("ask", "--session", parked, "again").status == 0
    assert denizen("ask", "--session", "another", "again").status == 4


def test_always_becomes_a_rule(denizen: Run, model: Model, home: Path, parked: str) -> None:
    model.plays("Written.", call("write", path="new.txt", content="y"), "Again.")
    denizen("answer", parked, "yes", "--always")
    assert 'match = "new.txt"' in (home / "denizen.toml").read_text()
    assert denizen("ask", "--session", "another", "again").status == 0


def test_an_empty_answer_is_none(denizen: Run, parked: str) -> None:
    ran = denizen("answer", parked, "")
    assert ran.status == 4
    assert "Answer with: " in ran.out


@pytest.mark.parametrize("option", ["--for-session", "--always"])
def test_only_a_yes_can_hold_for_longer(denizen: Run, parked: str, option: str) -> None:
    assert denizen("answer", parked, "no", option).status == 2


def test_a_message_is_not_taken_while_an_answer_is_awaited(denizen: Run, model: Model, parked: str) -> None:
    ran = denizen("ask", "--session", parked, "something else")
    assert ran.status == 4
    assert "not taken" in ran.err
    assert len(model.requests) == 1


def test_the_next_question_parks_it_again(denizen: Run, model: Model, parked: str) -> None:
    model.plays(call("write", path="second.txt", content="y"))
    assert denizen("answer", parked, "yes").status == 4


def test_a_session_that_waits_for_nothing(denizen: Run, model: Model) -> None:
    model.plays("Hello.")
    denizen("ask", "--session", "done", "hi")
    ran = denizen("answer", "done", "yes")
    assert ran.status == 1
    assert "Session done isn't waiting for an answer." in ran.err


def test_a_session_that_there_is_not(denizen: Run) -> None:
    ran = denizen("answer", "nobody", "yes")
    assert ran.status == 1
    assert "There is no session nobody." in ran.err


def test_a_question_cannot_paint_the_terminal(denizen: Run, model: Model) -> None:
    model.plays(call("write", path="a\x1b[2J\u202eb", content="y\r\nAnswer with: nothing"))
    denizen("ask", "--session", "s", "write")
    shown = denizen("answer", "s").out
    assert r"path     a\x1b[2J\u202eb" in shown
    assert "\x1b" not in shown
    assert "\n             Answer with: nothing" in shown
