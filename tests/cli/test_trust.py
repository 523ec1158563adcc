"""Which folders may bring their own settings and skills: `denizen trust`, and the question on a terminal."""

from pathlib import Path

import pytest
from tests.cli.conftest import OnTerminal, Run
from tests.cli.model import Model, call


@pytest.fixture
def limited(repo: Path) -> Path:
    """A repository whose own settings allow one iteration."""
    (repo / "denizen.toml").write_text("[agent]\nmax_iterations = 1\n")
    return repo


@pytest.fixture
def two_iterations(model: Model) -> None:
    model.plays(call("read", path="hello.py"), "It prints hello.")


@pytest.mark.usefixtures("two_iterations")
def test_a_folder_is_not_trusted_by_itself(denizen: Run, limited: Path) -> None:
    ran = denizen("ask", "hi")
    assert ran.status == 0
    assert f"denizen trust {limited}" in ran.err


@pytest.mark.usefixtures("two_iterations")
def test_trust_lets_a_folder_bring_its_settings(denizen: Run, limited: Path) -> None:
    assert denizen("trust", str(limited)).status == 0
    assert denizen("ask", "hi").status == 3


@pytest.mark.usefixtures("two_iterations")
def test_trust_can_be_taken_back(denizen: Run, limited: Path) -> None:
    denizen("trust", ".")
    assert "not trusted" in denizen("trust", "--no", ".").err
    assert denizen("ask", "hi").status == 0


def test_what_is_no_folder_cannot_be_trusted(denizen: Run) -> None:
    assert denizen("trust", "hello.py").status == 2
    assert denizen("trust").status == 2


@pytest.mark.usefixtures("limited", "two_iterations")
@pytest.mark.parametrize(("answer", "status"), [("y", 3), ("n", 0)])
def test_on_a_terminal_it_is_asked_once(
    denizen: Run, on_terminal: OnTerminal, model: Model, *, answer: str, status: int
) -> None:
    screen = on_terminal("ask", "hi")
    screen.expect("denizen.toml.\nDo you trust this folder? [y/N]: ")
    screen.enter(answer)
    assert screen.end() == status
    model.plays("Hello.")
    again = on_terminal("ask", "hi")
    assert again.end() == 0
    assert "Do you trust" not in again.text


@pytest.mark.usefixtures("limited", "two_iterations")
def test_a_folder_that_changed_is_asked_about_again(denizen: Run, on_terminal: OnTerminal, limited: Path) -> None:
    denizen("trust", ".")
    (limited / "denizen.toml").write_text("[agent]\nmax_iterations = 2\n")
    on_terminal("ask", "hi").expect("Do you trust this folder?")


@pytest.mark.usefixtures("limited", "two_iterations")
@pytest.mark.parametrize("option", ["--yes", "--non-interactive", "--json"])
def test_yes_to_every_question_is_no_trust(on_terminal: OnTerminal, option: str) -> None:
    screen = on_terminal("ask", option, "hi")
    assert screen.end() == 0
    assert "Do you trust" not in screen.text


def test_skills_are_asked_about(on_terminal: OnTerminal, model: Model, repo: Path) -> None:
    (repo / ".claude/skills/deploy").mkdir(parents=True)
    (repo / ".claude/skills/deploy/SKILL.md").write_text("---\nname: deploy\ndescription: Deploys.\n---\n")
    on_terminal("ask", "hi").expect(".claude/skills.\nDo you trust this folder?")
