"""What a person enters while the agent works on a terminal that can't show a prompt meanwhile."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import PROGRAM, OnTerminal
from tests.cli.model import Model
from tests.cli.screen import Screen
from tests.cli.test_cancel import wait_until

from denizen.messages import AssistantMessage, ToolCall

QUESTION = "or say what to do instead"


Working = Callable[..., Screen]


@pytest.fixture
def working(on_terminal: OnTerminal, model: Model, repo: Path, home: Path) -> Working:
    """`working("--json")`: a conversation in which a tool runs until there is a file `go`; then one wants to write."""
    with (home / "denizen.toml").open("a") as file:
        file.write('[policy]\nrules = [{ tool = "bash", decide = "allow" }, { tool = "write", decide = "ask" }]\n')
    waits = ToolCall("1", "bash", {"command": "touch started; while [ ! -e go ]; do sleep 0.05; done"})
    writes = ToolCall("2", "write", {"path": "new.txt", "content": "x"})
    model.server.say(AssistantMessage([waits, writes], stop_reason="tool_calls"))
    model.plays("Fine.")

    def start(*options: str) -> Screen:
        screen = on_terminal("chat", "--session", "s", *options, TERM="dumb")
        screen.expect(">")
        screen.enter("tell me everything")
        wait_until((repo / "started").exists)
        return screen

    return start


@pytest.fixture
def screen(working: Working) -> Screen:
    return working()


def test_a_line_from_before_a_question_that_is_answered_is_said(screen: Screen, model: Model, repo: Path) -> None:
    screen.enter("but be short")
    screen.expect("but be short")
    (repo / "go").touch()
    screen.expect(QUESTION)
    screen.enter("n")
    screen.expect("Fine.")
    assert model.told().startswith("but be short")


def test_lines_from_before_a_question_that_is_left_open_come_back(screen: Screen, repo: Path) -> None:
    screen.enter("but be short")
    screen.enter("and quick")
    screen.expect("and quick")
    (repo / "go").touch()
    screen.expect(QUESTION)
    screen.type("\x04")
    screen.expect("/continue asks again")
    screen.expect("> but be short")
    screen.expect("and quick")


def test_a_command_from_before_a_question_that_is_left_open_is_carried_out(screen: Screen, repo: Path) -> None:
    screen.enter("/quit")
    screen.expect("/quit")
    (repo / "go").touch()
    screen.expect(QUESTION)
    screen.type("\x04")
    assert screen.end() == 0


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_lines_that_ctrl_c_came_before_come_back(working: Working, model: Model, options: list[str]) -> None:
    screen = working(*options)
    screen.enter("but be short")
    screen.type("and qu")
    screen.expect("and qu")
    screen.type("\x03")
    screen.expect("cancelled")
    screen.expect("> but be short")
    screen.expect("and qu")
    screen.enter("ick")
    screen.expect("Fine.")
    assert model.told().startswith("but be short\nand quick")


def test_the_terminal_is_left_as_it_was(working: Working, repo: Path) -> None:
    screen = working()
    (repo / "go").touch()
    screen.expect(QUESTION)
    screen.enter("n")
    screen.expect("\n>")
    screen.type("\x04")
    assert screen.end() == 0
    assert screen.modes == screen.modes_before


def test_a_terminal_that_goes_away_is_no_failure(repo: Path, environ: dict[str, str]) -> None:
    screen = Screen(["/bin/sh", "-c", f"exec {' '.join(PROGRAM)} chat 2>err"], repo, environ)
    try:
        screen.expect(">")
        assert screen.hang_up() == 130
    finally:
        screen.close()
    assert "Traceback" not in (repo / "err").read_text()
