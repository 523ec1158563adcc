"""`denizen friction`: what recorded sessions show, and defaults that are accepted into the settings."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest
from tests.cli.conftest import OnTerminal, Run
from tests.cli.model import Model, call

from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore

DATA = Path(__file__).parent.parent / "data" / "friction"


@pytest.fixture
def recorded(home: Path) -> None:
    """The home has the recorded sessions."""
    store = JsonlStore(home / "sessions", clock=SystemClock())
    for file in DATA.glob("*.jsonl"):
        place = store.path(file.stem)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    (home / "denizen.toml").write_text('# mine\nmodel = "offline"\n')


def settings(home: Path) -> dict[str, object]:
    return tomllib.loads((home / "denizen.toml").read_text()).get("tools", {})


@pytest.mark.usefixtures("recorded")
def test_a_table_examples_and_proposals(denizen: Run) -> None:
    out = denizen("friction").out
    titles, *rows = out.partition("\n\n")[0].splitlines()
    assert titles.split()[:7] == ["tool", "calls", "repeated", "misused", "refused", "failed", "corrected"]
    assert titles.endswith("cut off  worked around")
    assert [row.split() for row in rows[:2]] == [
        ["grep", "22", "1", "4"],
        ["read", "11", "1", "1", "1", "1", "1"],
    ]
    assert "  4x corrected: context: not given → 3\n" in out
    assert "1x misused: read: wrong arguments: `file` is unknown" in out
    assert "1x refused: not run: the user said no" in out


@pytest.mark.usefixtures("recorded")
def test_one_session_alone(denizen: Run) -> None:
    out = denizen("friction", "--session", "searching").out
    assert "proposals\n  grep.context = 3: 3 of 7 calls were made again at once with another context\n" in out
    assert "to accept one: denizen friction --accept grep.context" in out
    assert denizen("friction", "--session", "nobody").status == 1


@pytest.mark.usefixtures("recorded")
def test_calls_in_text_count_like_native_ones(denizen: Run) -> None:
    tools = json.loads(denizen("friction", "--session", "commands", "--json").out)["tools"]
    grep, ls = sorted(tools, key=lambda each: each["tool"])
    assert (grep["calls"], grep["corrected"]) == (3, {"context: not given → 3": 1})
    assert grep["misused"] == {"text-search: there is no option --contxt; did you mean --context?": 1}
    assert (ls["calls"], ls["repeated"]) == (2, {"no arguments": 1})


@pytest.mark.usefixtures("recorded")
def test_json_has_every_detail(denizen: Run) -> None:
    found = json.loads(denizen("friction", "--session", "habits", "--json").out)
    assert found["tools"][0]["tool"] == "grep"
    assert found["tools"][0]["calls"] == 12
    assert found["proposals"] == [
        {"tool": "grep", "argument": "ignore_case", "value": True, "now": None, "why": "12 of 12 calls give it"}
    ]


@pytest.mark.usefixtures("recorded")
def test_nothing_is_changed_unasked(denizen: Run, home: Path) -> None:
    denizen("friction", piped="y\ny\n")
    assert (home / "denizen.toml").read_text() == '# mine\nmodel = "offline"\n'


@pytest.mark.usefixtures("recorded")
def test_what_is_accepted_goes_into_the_settings_and_is_not_proposed_again(denizen: Run, home: Path) -> None:
    ran = denizen("friction", "--session", "searching", "--accept", "grep.context")
    assert (ran.status, ran.out) == (0, f"set grep.context = 3 in {home / 'denizen.toml'}\n")
    assert (home / "denizen.toml").read_text() == '# mine\nmodel = "offline"\n\n[tools.grep]\ncontext = 3\n'
    assert "proposals" not in denizen("friction", "--session", "searching").out
    again = denizen("friction", "--session", "searching", "--accept", "grep.context")
    assert (again.status, "grep.context isn't proposed; proposals: none." in again.err) == (2, True)


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(("answer", "wanted"), [("y", {"grep": {"context": 3}}), ("n", {})])
def test_a_person_is_asked(on_terminal: OnTerminal, home: Path, answer: str, wanted: dict[str, object]) -> None:
    screen = on_terminal("friction", "--session", "searching")
    screen.expect("Set grep.context = 3? [y/N]: ")
    screen.enter(answer)
    assert screen.end() == 0
    assert settings(home) == wanted


def test_an_accepted_default_is_reported_to_the_model_and_used(denizen: Run, model: Model, home: Path) -> None:
    with (home / "denizen.toml").open("a") as file:
        file.write("[tools.grep]\nmode = 'files'\n")
    model.plays(call("grep", pattern="hello"), "In hello.py.")
    assert denizen("ask", "Where is hello?").status == 0
    [grep] = [each["function"] for each in model.requests[0]["tools"] if each["function"]["name"] == "grep"]
    assert grep["parameters"]["properties"]["mode"]["default"] == "files"
    assert model.told() == "hello.py"


def test_a_default_that_cannot_be_is_reported_with_what_was_meant(denizen: Run, model: Model, home: Path) -> None:
    with (home / "denizen.toml").open("a") as file:
        file.write("[tools.grep]\ncontxt = 2\n")
    ran = denizen("ask", "Where is hello?")
    assert ran.status == 2
    assert "tools.grep.contxt isn't an argument of grep. Did you mean context?" in ran.err


def test_without_sessions_there_is_nothing_to_tell(denizen: Run) -> None:
    ran = denizen("friction")
    assert (ran.status, ran.out, ran.err) == (0, "", "No tools have been called yet.\n")


@pytest.mark.usefixtures("recorded")
def test_a_session_that_cannot_be_read_is_left_out(denizen: Run, home: Path) -> None:
    newer = Path(__file__).parent.parent / "data" / "transcripts" / "newer-major.jsonl"
    shutil.copy(newer, next((home / "sessions").glob("*/*.jsonl")).with_name("cli+default+direct+newer.jsonl"))
    ran = denizen("friction")
    assert (ran.status, "left out: Session" in ran.err) == (0, True)
    assert "grep" in ran.out
