"""Working in a copy: the project sees nothing of it until it is applied, and then only what was changed there."""

import os
from pathlib import Path

import pytest
from tests.checkpoints.conftest import Tree, tree
from tests.checkpoints.test_shadow import git

from denizen.checkpoints import Conflict, Shadow, shadow_of
from denizen.testing import FakeClock


@pytest.fixture
def project(workspace: Path) -> Tree:
    git(workspace, "init")
    (workspace / ".gitignore").write_text("/node_modules/\n.env\n__pycache__/\n")
    (workspace / "src").mkdir()
    (workspace / "src" / "__pycache__").mkdir()
    (workspace / "src" / "__pycache__" / "a.pyc").touch()
    (workspace / "src" / "a").write_text("1")
    (workspace / "src" / "b").write_text("1")
    (workspace / "run").write_text("1")
    (workspace / "run").chmod(0o755)
    (workspace / "node_modules" / "left-pad").mkdir(parents=True)
    (workspace / "node_modules" / "left-pad" / "index.js").write_text("pad")
    (workspace / ".env").write_text("KEY=1")
    return tree(workspace)


async def test_the_project_changes_when_it_is_applied(shadow: Shadow, workspace: Path, project: Tree) -> None:
    start = await shadow.snapshot()
    async with shadow.worktree(start) as copy:
        assert os.access(copy.path / "run", os.X_OK)
        (copy.path / "src" / "a").write_text("2")
        (copy.path / "src" / "b").unlink()
        (copy.path / "src" / "new").symlink_to("a")
        assert tree(workspace) == project
        before = await shadow.apply(copy)
    assert before == start
    del project["src/b"]
    assert tree(workspace) == project | {"src/a": ("file", b"2"), "src/new": ("link", "a")}


async def test_a_copy_that_is_not_applied_leaves_nothing(shadow: Shadow, workspace: Path, project: Tree) -> None:
    async with shadow.worktree(await shadow.snapshot()) as copy:
        (copy.path / "src" / "a").write_text("2")
        (copy.path / ".env").unlink()
    assert not copy.path.exists()
    assert tree(workspace) == project


async def test_what_is_ignored_can_be_reached_and_is_not_applied(
    shadow: Shadow, workspace: Path, project: Tree
) -> None:
    with (workspace / "huge").open("wb") as file:
        file.truncate(100_000_001)
    async with shadow.worktree(await shadow.snapshot()) as copy:
        assert (copy.path / "node_modules" / "left-pad" / "index.js").read_text() == "pad"
        assert (copy.path / ".env").read_text() == "KEY=1"
        assert (copy.path / "huge").stat().st_size == 100_000_001
        assert not (copy.path / "src" / "__pycache__").exists()
        (copy.path / "src" / "__pycache__").mkdir()
        (copy.path / "src" / "__pycache__" / "b.pyc").touch()
        await shadow.apply(copy)
    (workspace / "huge").unlink()
    assert tree(workspace) == project


async def test_caches_that_ignore_themselves_are_not_shared_with_the_copy(shadow: Shadow, workspace: Path) -> None:
    git(workspace, "init")
    for cache in (".pytest_cache", "src/.ruff_cache"):
        (workspace / cache / "v").mkdir(parents=True)
        (workspace / cache / "v" / "last").touch()
        (workspace / cache / ".gitignore").write_text("*\n")
    async with shadow.worktree(await shadow.snapshot()) as copy:
        assert [*copy.path.rglob("*cache*")] == []


async def test_what_the_user_changed_meanwhile_stays(shadow: Shadow, workspace: Path, project: Tree) -> None:
    async with shadow.worktree(await shadow.snapshot()) as copy:
        (copy.path / "src" / "a").write_text("2")
        (workspace / "src" / "b").write_text("mine")
        await shadow.apply(copy)
    assert tree(workspace) == project | {"src/a": ("file", b"2"), "src/b": ("file", b"mine")}


async def test_what_both_changed_is_not_applied(shadow: Shadow, workspace: Path, project: Tree) -> None:
    async with shadow.worktree(await shadow.snapshot()) as copy:
        (copy.path / "src" / "a").write_text("2")
        (copy.path / "src" / "b").write_text("2")
        (workspace / "src" / "b").write_text("mine")
        with pytest.raises(Conflict, match="checkpoint: src/b"):
            await shadow.apply(copy)
    assert tree(workspace) == project | {"src/b": ("file", b"mine")}


async def test_a_copy_that_a_process_left_is_found_again(
    shadow: Shadow, workspace: Path, project: Tree, home: Path
) -> None:
    left = await shadow.copy(await shadow.snapshot())
    (left.path / "src" / "a").write_text("2")
    (left.folder / "index.lock").touch()  # git was killed, too
    later = shadow_of(workspace, home, clock=FakeClock(), environ=os.environ)
    found = await later.copy_in(left.folder)
    assert found is not None
    assert found == left
    await later.apply(found)
    await found.discard()
    assert tree(workspace) == project | {"src/a": ("file", b"2")}
    assert not left.folder.exists()


@pytest.mark.parametrize("within", [".", "src"])
async def test_copy_knows_whether_it_was_worked_in(workspace: Path, home: Path, project: Tree, within: str) -> None:
    with (workspace / "src" / "huge").open("wb") as file:
        file.truncate(100_000_001)
    shadow = shadow_of(workspace / within, home, clock=FakeClock(), environ=os.environ)
    async with shadow.worktree(await shadow.snapshot()) as copy:
        assert not await shadow.worked_in(copy)
        (copy.path / "made").touch()
        assert await shadow.worked_in(copy)


async def test_old_copy_is_not_reopened(shadow: Shadow, clock: FakeClock, project: Tree) -> None:
    left = await shadow.copy(await shadow.snapshot())
    os.utime(left.folder / "copy", (clock.now().timestamp(), clock.now().timestamp()))
    await clock.sleep(4 * 86_400)
    assert await shadow.copy_in(left.folder) == left
    await clock.sleep(2 * 86_400)
    assert await shadow.copy_in(left.folder) is None
    await left.discard()


async def test_incomplete_copy_is_not_reopened(shadow: Shadow, tmp_path: Path) -> None:
    assert await shadow.copy_in(tmp_path / "nowhere") is None
    assert await shadow.copy_in(tmp_path) is None


@pytest.mark.parametrize("name", ["copy", "files", "index", "index.lock"])
async def test_a_project_may_be_called_anything(tmp_path: Path, home: Path, name: str) -> None:
    workspace = tmp_path / name
    workspace.mkdir()
    (workspace / "a").write_text("1")
    shadow = shadow_of(workspace, home, clock=FakeClock(), environ=os.environ)
    made = await shadow.copy(await shadow.snapshot())
    assert made.path.name == name
    (made.path / "a").write_text("2")
    left = await shadow.copy_in(made.folder)
    assert left == made
    await shadow.apply(made)
    await made.discard()
    assert (workspace / "a").read_text() == "2"


async def test_a_part_of_a_repository_is_copied_alone(workspace: Path, home: Path, project: Tree) -> None:
    shadow = shadow_of(workspace / "src", home, clock=FakeClock(), environ=os.environ)
    async with shadow.worktree(await shadow.snapshot()) as copy:
        assert tree(copy.path) == {"a": ("file", b"1"), "b": ("file", b"1")}
        (copy.path / "a").write_text("2")
        await shadow.apply(copy)
    assert tree(workspace) == project | {"src/a": ("file", b"2")}


async def test_a_copy_may_be_applied_again_and_again(shadow: Shadow, workspace: Path, project: Tree) -> None:
    async with shadow.worktree(await shadow.snapshot()) as copy:
        for number in "23":
            (copy.path / "src" / "a").write_text(number)
            (workspace / "src" / "a").write_text("1")
            await shadow.apply(copy)
    assert (workspace / "src" / "a").read_text() == "3"


async def test_the_home_is_not_reached_from_a_copy(tmp_path: Path) -> None:
    home = tmp_path / ".denizen"
    shadow = shadow_of(tmp_path, home, clock=FakeClock(), environ=os.environ)
    home.mkdir()
    (home / "token").write_text("secret")
    async with shadow.worktree(await shadow.snapshot()) as copy:
        assert list(copy.path.iterdir()) == []
