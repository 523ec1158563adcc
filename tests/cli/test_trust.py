"""Which folders may bring their own settings and skills: `denizen trust`, and the question on a terminal."""

from pathlib import Path

import pytest
from tests.cli.conftest import OnTerminal, Run
from tests.cli.model import Model, call

from denizen.trusted.session_files import SessionFiles


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


@pytest.fixture
def changed(home: Path, denizen: Run) -> Path:
    """The agent's own SOUL.md, which a command changed."""
    denizen("skills", "check")
    soul = home / "workspace" / "SOUL.md"
    soul.parent.mkdir(parents=True, exist_ok=True)
    soul.write_text("Be kind.\n")
    look = SessionFiles(home, [str(soul)]).look()
    soul.write_text("Be evil.\n")
    look.close()
    return soul


def test_what_a_command_changed_is_shown_with_the_skills_and_counts_once_it_is_accepted(
    denizen: Run, changed: Path, model: Model
) -> None:
    ran = denizen("skills", "check")
    assert (ran.status, f"denizen trust {changed}" in ran.err) == (1, True)
    assert "-Be kind.\n+Be evil.\n" in ran.out
    model.plays("Hello.", "Hello.")
    assert f"denizen trust {changed}" in denizen("ask", "hi").err
    assert "Be kind." in str(model.requests[-1])
    assert denizen("trust", str(changed), "--yes").status == 0
    assert denizen("skills", "check").err == "Nothing changed.\n"
    assert f"denizen trust {changed}" not in denizen("ask", "hi").err
    assert "Be evil." in str(model.requests[-1])


def test_a_changed_file_is_shown_before_it_is_accepted(denizen: Run, on_terminal: OnTerminal, changed: Path) -> None:
    assert "--yes" in denizen("trust", str(changed)).err
    screen = on_terminal("trust", str(changed))
    screen.expect("as it is now? [y/N]: ")
    assert "+Be evil." in screen.text
    screen.enter("n")
    assert screen.end() == 130
    assert denizen("skills", "check").status == 1
