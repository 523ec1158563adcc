"""`denizen checkpoints`: create, list, diff, restore."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import OnTerminal, Run


@pytest.fixture
def base(denizen: Run, repo: Path) -> str:
    """The checkpoint `base` of the repository, which has changed since, and the checkpoint `later` after that."""
    made = denizen("checkpoints", "create", "base").out.strip()
    (repo / "hello.py").write_text('print("bye")\n')
    (repo / "made").write_text("since\n")
    denizen("checkpoints", "create", "later")
    return made


def test_create_prints_the_id(denizen: Run, base: str) -> None:
    assert len(base) == 40


def test_list_says_what_changed_up_to_each(denizen: Run, base: str) -> None:
    titles, later, first = denizen("checkpoints", "list").out.splitlines()
    assert titles.split() == ["id", "when", "label", "changed"]
    assert later.split()[2:] == ["later", "hello.py,", "made"]
    assert first.split() == [base[:10], first.split()[1], "base"]


def test_list_as_json_has_every_detail(denizen: Run, base: str) -> None:
    later, first = [json.loads(line) for line in denizen("checkpoints", "list", "--json").out.splitlines()]
    assert (first["id"], first["label"], first["changed"]) == (base, "base", [])
    assert later["changed"] == ["hello.py", "made"]


def test_list_is_short_unless_asked(denizen: Run, repo: Path) -> None:
    for number in range(22):
        denizen("checkpoints", "create", f"{number}")
    assert len(denizen("checkpoints", "list").out.splitlines()) == 21
    assert len(denizen("checkpoints", "list", "--all").out.splitlines()) == 23


def test_list_without_checkpoints(denizen: Run) -> None:
    ran = denizen("checkpoints", "list")
    assert (ran.status, ran.out) == (0, "")
    assert "no checkpoints of this folder yet" in ran.err


def test_diff_is_a_patch(denizen: Run, base: str, repo: Path) -> None:
    (repo / "hello.py").write_text('print("again")\n')
    assert '-print("hello")\n+print("again")\n' in denizen("checkpoints", "diff", "base").out
    assert '-print("hello")\n+print("bye")\n' in denizen("checkpoints", "diff", "base", "later").out
    assert '-print("bye")\n+print("again")\n' in denizen("checkpoints", "diff").out
    assert denizen("checkpoints", "diff", "base", "--names").out == "hello.py\nmade\n"
    assert json.loads(denizen("checkpoints", "diff", "base", "--json").out)["paths"] == ["hello.py", "made"]


def test_a_diff_cannot_paint_the_terminal(denizen: Run, base: str, repo: Path) -> None:
    (repo / "hello.py").write_text("\x1b[2J")
    out = denizen("checkpoints", "diff").out
    assert "\x1b" not in out
    assert "hello.py" in out


def test_diff_without_checkpoints(denizen: Run) -> None:
    ran = denizen("checkpoints", "diff")
    assert (ran.status, ran.out) == (1, "")
    assert "nothing to compare with" in ran.err


def test_restore_makes_the_files_what_they_were_and_can_be_undone(denizen: Run, base: str, repo: Path) -> None:
    ran = denizen("checkpoints", "restore", "base")
    assert (ran.status, ran.err) == (0, "2 files restored.\n")
    assert (repo / "hello.py").read_text() == 'print("hello")\n'
    assert not (repo / "made").exists()
    assert denizen("checkpoints", "restore", ran.out.strip()).status == 0
    assert (repo / "made").read_text() == "since\n"


def test_restore_takes_a_short_id(denizen: Run, base: str, repo: Path) -> None:
    assert denizen("checkpoints", "restore", base[:8]).status == 0
    assert not (repo / "made").exists()


def test_restore_as_json(denizen: Run, base: str) -> None:
    done = json.loads(denizen("checkpoints", "restore", "base", "--json").out)
    assert done["paths"] == ["hello.py", "made"]
    assert len(done["before"]) == 40


def test_changes_by_hand_are_overwritten_by_force_only(denizen: Run, base: str, repo: Path) -> None:
    (repo / "hello.py").write_text("mine\n")
    ran = denizen("checkpoints", "restore", "base", "--yes")
    assert ran.status == 1
    assert "changes made since the last checkpoint: hello.py. Keep a copy of what matters, or add --force:" in ran.err
    assert (repo / "made").exists()
    before = denizen("checkpoints", "restore", "base", "--force").out.strip()
    assert (repo / "hello.py").read_text() == 'print("hello")\n'
    denizen("checkpoints", "restore", before)
    assert (repo / "hello.py").read_text() == "mine\n"


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 130)])
def test_restore_asks_on_a_terminal(on_terminal: OnTerminal, base: str, repo: Path, answer: str, status: int) -> None:
    screen = on_terminal("checkpoints", "restore", "base")
    screen.expect("Change 2 files (hello.py, made)? [y/N]: ")
    screen.enter(answer)
    assert screen.end() == status
    assert (repo / "made").exists() == (answer == "n")


def test_a_checkpoint_of_paths_restores_these_alone(denizen: Run, repo: Path) -> None:
    (repo / "src").mkdir()
    (repo / "src" / "a").write_text("1")
    denizen("checkpoints", "create", "part", "a", cwd=repo / "src")
    (repo / "src" / "a").write_text("2")
    (repo / "hello.py").write_text("2")
    assert "[only src/a]" in denizen("checkpoints", "list").out
    denizen("checkpoints", "create", "later")
    assert denizen("checkpoints", "restore", "part").status == 0
    assert [(repo / name).read_text() for name in ("src/a", "hello.py")] == ["1", "2"]


def test_what_is_left_out_is_said(denizen: Run, repo: Path) -> None:
    (repo / ".Git").write_text("odd")
    assert denizen("checkpoints", "create", "base").err == "Left out, because they can't be saved: .Git.\n"


@pytest.mark.parametrize("command", ["diff", "restore"])
def test_a_checkpoint_that_there_is_not(denizen: Run, base: str, command: str) -> None:
    ran = denizen("checkpoints", command, "nobody")
    assert ran.status == 1
    assert "There is no checkpoint nobody" in ran.err


def test_another_workspace_has_checkpoints_of_its_own(denizen: Run, base: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert denizen("checkpoints", "list", "--workspace", str(other)).out == ""
    denizen("checkpoints", "create", "there", "--workspace", str(other))
    assert len(denizen("checkpoints", "list", "--workspace", str(other)).out.splitlines()) == 2
