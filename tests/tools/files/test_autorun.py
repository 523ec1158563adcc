"""Where a workspace's git data is, and which `.git` files are believed."""

import subprocess
from pathlib import Path

import pytest

from denizen.tools.files.autorun import git_folder, shared_git_folder


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


def test_a_repository_keeps_it_in_its_root(repository: Path) -> None:
    assert git_folder(repository) == repository / ".git"
    assert shared_git_folder(repository / ".git") == repository / ".git"


def test_a_folder_that_is_none_has_none(repository: Path, tmp_path: Path) -> None:
    (repository / "sub").mkdir()
    assert git_folder(repository / "sub") is None
    assert git_folder(tmp_path / "nowhere") is None


def test_a_linked_worktree_shares_that_of_the_main_one(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", str(tmp_path / "linked"))
    assert git_folder(tmp_path / "linked") == repository / ".git/worktrees/linked"
    assert shared_git_folder(repository / ".git/worktrees/linked") == repository / ".git"


def test_a_submodule_keeps_it_in_the_repository_around_it(repository: Path, tmp_path: Path) -> None:
    around = tmp_path / "around"
    around.mkdir()
    git(around, "init")
    git(around, "submodule", "add", str(repository), "sub")
    assert git_folder(around / "sub") == around / ".git/modules/sub"


def test_data_elsewhere_in_the_workspace_is_believed(repository: Path) -> None:
    (repository / ".git").rename(repository / "data")
    (repository / ".git").write_text("gitdir: data\n")
    assert git_folder(repository) == repository / "data"


def test_a_place_that_does_not_point_back_is_not_believed(repository: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    for text in (f"gitdir: {repository / '.git'}", "gitdir: ..", "gitdir:", "", "gitdir: /nowhere", "\0", "x" * 20_000):
        (trap / ".git").write_text(text)
        assert git_folder(trap) is None


def test_the_worktree_of_another_is_not_believed(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", str(tmp_path / "linked"))
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap/.git").write_bytes((tmp_path / "linked/.git").read_bytes())
    assert git_folder(tmp_path / "trap") is None


def test_a_link_is_not_followed(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap/.git").symlink_to(repository / ".git")
    assert git_folder(tmp_path / "trap") is None
