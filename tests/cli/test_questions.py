"""Questions are asked where the person sees them, wherever standard error goes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import PROGRAM, Run
from tests.cli.model import Model, call
from tests.cli.screen import Screen

InShell = Callable[[str], Screen]


@pytest.fixture
def in_shell(repo: Path, environ: dict[str, str]) -> Iterator[InShell]:
    """`in_shell("ask hi 2>err")`: that on a terminal, as a shell runs it."""
    screens: list[Screen] = []

    def start(words: str) -> Screen:
        screens.append(Screen(["/bin/sh", "-c", f"{' '.join(PROGRAM)} {words}"], repo, environ))
        return screens[-1]

    yield start
    for screen in screens:
        screen.close()


@pytest.mark.usefixtures("asks_about_writes")
def test_a_tool_is_asked_about(in_shell: InShell, model: Model, repo: Path) -> None:
    model.plays(call("write", path="new.txt", content="x"), "Done.")
    screen = in_shell("ask 'write it' 2>err")
    screen.expect("or say what to do instead: ")
    screen.enter("y")
    screen.expect("Done.\n")
    assert screen.end() == 0
    assert (repo / "new.txt").exists()


def test_a_folder_is_asked_about(in_shell: InShell, model: Model, repo: Path) -> None:
    model.plays("Fine.")
    (repo / "denizen.toml").write_text("[agent]\nmax_iterations = 1\n")
    screen = in_shell("ask hi 2>err")
    assert str(repo) in screen.expect("Do you trust this folder? [y/N]: ")
    screen.enter("n")
    screen.expect("Fine.\n")


def test_deleting_is_asked_about(in_shell: InShell, denizen: Run, model: Model) -> None:
    model.plays("Fine.")
    denizen("ask", "--session", "s", "hi")
    screen = in_shell("sessions rm s 2>err")
    screen.expect("Delete s permanently? [y/N]: ")
    screen.enter("n")
    assert screen.end() == 130
    assert "hi" in denizen("sessions", "show", "s").out


def test_nothing_is_asked_that_nobody_sees(in_shell: InShell, denizen: Run, model: Model, repo: Path) -> None:
    model.plays("Fine.")
    denizen("ask", "--session", "s", "hi")
    assert in_shell("sessions rm s >out 2>err").end() == 2
    assert "add --yes" in (repo / "err").read_text()
