"""Where git's data of a workspace is, and which `.git` files are accepted."""

import subprocess
from pathlib import Path

import pytest

from denizen.trusted.autorun import git_folder, shared_git_folder


def git(folder: Path, *args: str) -> None:
    options = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *options, *args], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "main"
    folder.mkdir()
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "The first")
    return folder


def test_git_data_is_in_the_root_of_a_repository(repository: Path) -> None:
    assert git_folder(repository) == repository / ".git"
    assert shared_git_folder(repository / ".git") == repository / ".git"


def test_other_folders_have_no_git_data(repository: Path, tmp_path: Path) -> None:
    (repository / "sub").mkdir()
    assert git_folder(repository / "sub") is None
    assert git_folder(tmp_path / "nowhere") is None


def test_linked_worktree_shares_the_main_ones_git_data(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", str(tmp_path / "linked"))
    assert git_folder(tmp_path / "linked") == repository / ".git/worktrees/linked"
    assert shared_git_folder(repository / ".git/worktrees/linked") == repository / ".git"


def test_git_data_of_a_submodule_is_in_its_superproject(repository: Path, tmp_path: Path) -> None:
    around = tmp_path / "around"
    around.mkdir()
    git(around, "init")
    git(around, "submodule", "add", str(repository), "sub")
    assert git_folder(around / "sub") == around / ".git/modules/sub"


def test_git_data_elsewhere_in_the_workspace_is_accepted(repository: Path) -> None:
    (repository / ".git").rename(repository / "data")
    (repository / ".git").write_text("gitdir: data\n")
    assert git_folder(repository) == repository / "data"


def test_git_data_that_does_not_point_back_is_rejected(repository: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    for text in (f"gitdir: {repository / '.git'}", "gitdir: ..", "gitdir:", "", "gitdir: /nowhere", "\0", "x" * 20_000):
        (trap / ".git").write_text(text)
        assert git_folder(trap) is None


def test_git_data_of_another_worktree_is_rejected(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", str(tmp_path / "linked"))
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap/.git").write_bytes((tmp_path / "linked/.git").read_bytes())
    assert git_folder(tmp_path / "trap") is None


def test_a_link_is_not_followed(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap/.git").symlink_to(repository / ".git")
    assert git_folder(tmp_path / "trap") is None
