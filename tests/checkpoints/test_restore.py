"""Restoring: exactly, undoably, and never over what somebody else did meanwhile."""

import os
from pathlib import Path

import pytest
from tests.checkpoints.conftest import tree

from denizen.checkpoints import Conflict, Shadow, shadow_of
from denizen.errors import DenizenError
from denizen.testing import FakeClock


async def test_a_restore_can_be_undone(shadow: Shadow, workspace: Path) -> None:
    (workspace / "a").write_text("1")
    before = await shadow.snapshot()
    (workspace / "a").write_text("2")
    (workspace / "b").write_text("never seen by a snapshot")
    was = tree(workspace)
    undo = await shadow.restore(before)
    assert tree(workspace) == {"a": ("file", b"1")}
    await shadow.restore(undo)
    assert tree(workspace) == was


async def test_turn_can_be_undone_and_redone(shadow: Shadow, workspace: Path) -> None:
    (workspace / "a").write_text("1")
    before = await shadow.snapshot()
    (workspace / "a").write_text("2")
    after = await shadow.snapshot()
    until_now = await shadow.restore(before, expect=after)
    assert until_now == after
    await shadow.restore(after, expect=await shadow.snapshot())
    assert (workspace / "a").read_text() == "2"
    assert [each.note for each in await shadow.list()] == [f"restored {after[:10]}", f"restored {before[:10]}", "", ""]


async def test_restoring_the_current_state_changes_nothing(shadow: Shadow, workspace: Path) -> None:
    (workspace / "a").write_text("1")
    before = await shadow.snapshot()
    found = (workspace / "a").stat()
    assert await shadow.restore(before) == before
    assert (workspace / "a").stat() == found


async def test_what_the_user_changed_meanwhile_is_not_overwritten(shadow: Shadow, workspace: Path) -> None:
    for name in ("a", "b", "c"):
        (workspace / name).write_text("1")
    before = await shadow.snapshot()
    for name in ("a", "b", "c", "d"):
        (workspace / name).write_text("2")
    after = await shadow.snapshot()
    (workspace / "a").write_text("mine")
    (workspace / "b").unlink()
    (workspace / "d").write_text("mine")
    was = tree(workspace)
    with pytest.raises(Conflict, match=r"last checkpoint: a, b, d\. Put those changes elsewhere") as refused:
        await shadow.restore(before, expect=after)
    assert refused.value.paths == ["a", "b", "d"]
    assert tree(workspace) == was
    undo = await shadow.restore(before, expect=after, force=True)
    assert {name: content for name, (_, content) in tree(workspace).items()} == dict.fromkeys("abc", b"1")
    await shadow.restore(undo)
    assert tree(workspace) == was


async def test_what_the_user_changed_in_other_files_stays(shadow: Shadow, workspace: Path) -> None:
    (workspace / "a").write_text("1")
    (workspace / "mine").write_text("1")
    before = await shadow.snapshot()
    (workspace / "a").write_text("2")
    (workspace / "made").mkdir()
    (workspace / "made" / "by agent").write_text("2")
    after = await shadow.snapshot()
    (workspace / "mine").write_text("mine")
    (workspace / "made" / "by me").write_text("mine")
    await shadow.restore(before, expect=after)
    assert tree(workspace) == {
        "a": ("file", b"1"),
        "mine": ("file", b"mine"),
        "made/by me": ("file", b"mine"),
    }


async def test_a_folder_that_the_user_has_files_in_does_not_become_a_file_again(
    shadow: Shadow, workspace: Path
) -> None:
    (workspace / "a").write_text("1")
    before = await shadow.snapshot()
    (workspace / "a").unlink()
    (workspace / "a").mkdir()
    (workspace / "a" / "x").write_text("2")
    after = await shadow.snapshot()
    (workspace / "a" / "mine").write_text("mine")
    was = tree(workspace)
    with pytest.raises(Conflict, match="checkpoint: a/mine"):
        await shadow.restore(before, expect=after)
    assert tree(workspace) == was


async def test_the_same_change_by_the_user_is_no_conflict(shadow: Shadow, workspace: Path) -> None:
    (workspace / "a").write_text("1")
    before = await shadow.snapshot()
    (workspace / "a").write_text("2")
    after = await shadow.snapshot()
    (workspace / "a").write_text("1")
    await shadow.restore(before, expect=after)
    assert (workspace / "a").read_text() == "1"


async def test_files_folders_and_links_replace_each_other(shadow: Shadow, workspace: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("untouched")
    (workspace / "file").write_text("1")
    (workspace / "folder").mkdir()
    (workspace / "folder" / "f").write_text("1")
    (workspace / "folder" / "deep" / "er").mkdir(parents=True)
    (workspace / "folder" / "deep" / "er" / "g").write_text("1")
    (workspace / "link").symlink_to("folder")
    was = tree(workspace)
    before = await shadow.snapshot()
    (workspace / "file").unlink()
    (workspace / "file").mkdir()
    (workspace / "file" / "inside").write_text("2")
    (workspace / "folder").rename(tmp_path / "away")
    (workspace / "folder").symlink_to(outside)
    (workspace / "link").unlink()
    (workspace / "link").mkdir()
    (workspace / "link" / "x").write_text("2")
    now = tree(workspace)
    after = await shadow.snapshot()
    await shadow.restore(before)
    assert tree(workspace) == was
    assert (outside / "f").read_text() == "untouched"
    await shadow.restore(after)
    assert tree(workspace) == now


async def test_nothing_leads_a_restore_out_of_the_workspace(shadow: Shadow, workspace: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "d").mkdir(parents=True)
    (outside / "d" / "keys").write_text("mine")
    (workspace / "d").mkdir()
    (workspace / "d" / "keys").write_text("1")
    (workspace / ".gitignore").write_text("out\n")
    (workspace / "out").mkdir()
    before, part = await shadow.snapshot(), await shadow.snapshot(paths=["d/keys"])
    (workspace / "d" / "keys").write_text("2")
    (workspace / ".denizen-restore.tmp").symlink_to(outside)
    await shadow.restore(before)
    assert (workspace / "d" / "keys").read_text() == "1"
    (workspace / "d" / "keys").unlink()
    (workspace / "d").rmdir()
    (workspace / "d").symlink_to(outside / "d")
    with pytest.raises(DenizenError, match=r"is in the way: d\."):
        await shadow.restore(part)
    await shadow.restore(before)
    assert not (workspace / "d").is_symlink()
    assert tree(outside) == {"d/keys": ("file", b"mine")}


async def test_ignored_file_in_the_way_is_kept_in_a_snapshot(shadow: Shadow, workspace: Path) -> None:
    (workspace / "out").write_text("kept")
    before = await shadow.snapshot()
    (workspace / "out").unlink()
    (workspace / ".gitignore").write_text("out\n")
    await shadow.snapshot()
    (workspace / "out").mkdir()
    (workspace / "out").rmdir()
    (workspace / "out").write_text("ignored")
    undo = await shadow.restore(before)
    assert tree(workspace) == {"out": ("file", b"kept")}
    await shadow.restore(undo)
    assert (workspace / "out").read_text() == "ignored"


async def test_restored_file_that_is_ignored_by_now_is_removed_again(shadow: Shadow, workspace: Path) -> None:
    (workspace / "a").write_text("1")
    before = await shadow.snapshot()
    (workspace / "a").unlink()
    (workspace / ".gitignore").write_text("*\n")
    undo = await shadow.restore(before)
    assert (workspace / "a").exists()
    await shadow.restore(undo)
    assert tree(workspace) == {".gitignore": ("file", b"*\n")}


async def test_undoing_a_turn_overwrites_no_ignored_file(shadow: Shadow, workspace: Path) -> None:
    (workspace / "out").write_text("kept")
    before = await shadow.snapshot()
    (workspace / "out").unlink()
    (workspace / ".gitignore").write_text("out\n")
    after = await shadow.snapshot()
    (workspace / "out").write_text("mine")
    with pytest.raises(Conflict, match="checkpoint: out"):
        await shadow.restore(before, expect=after)
    assert (workspace / "out").read_text() == "mine"


async def test_a_folder_with_ignored_files_is_not_replaced_by_a_file(shadow: Shadow, workspace: Path) -> None:
    (workspace / "out").write_text("kept")
    (workspace / ".gitignore").write_text("*.o\n")
    before = await shadow.snapshot()
    (workspace / "out").unlink()
    (workspace / "out").mkdir()
    (workspace / "out" / "x.o").write_text("ignored")
    (workspace / "out" / "new").write_text("2")
    was = tree(workspace)
    undo = await shadow.restore(before)
    assert tree(workspace) == {"out": ("file", b"kept"), ".gitignore": ("file", b"*.o\n")}
    await shadow.restore(undo)
    assert tree(workspace) == was


async def test_what_no_snapshot_can_hold_is_not_moved(shadow: Shadow, workspace: Path) -> None:
    (workspace / "out").write_text("kept")
    before = await shadow.snapshot()
    (workspace / "out").unlink()
    (workspace / "out").mkdir()
    os.mkfifo(workspace / "out" / "pipe")
    (workspace / "new").write_text("2")
    with pytest.raises(DenizenError, match=r"out/pipe\. .* Move it elsewhere"):
        await shadow.restore(before, force=True)
    assert (workspace / "new").exists()


async def test_empty_folder_is_replaced_by_a_file(shadow: Shadow, workspace: Path) -> None:
    (workspace / "a").write_text("1")
    before = await shadow.snapshot()
    (workspace / "a").unlink()
    (workspace / "a" / "b").mkdir(parents=True)
    await shadow.restore(before)
    assert (workspace / "a").read_text() == "1"


async def test_existing_files_keep_their_permissions(shadow: Shadow, workspace: Path) -> None:
    (workspace / "key").write_text("1")
    (workspace / "key").chmod(0o600)
    before = await shadow.snapshot()
    (workspace / "key").write_text("2")
    await shadow.restore(before)
    assert (workspace / "key").stat().st_mode & 0o777 == 0o600


async def test_a_snapshot_of_paths_restores_these_alone(shadow: Shadow, workspace: Path) -> None:
    (workspace / "src").mkdir()
    for name in ("src/a", "src-beside", "other"):
        (workspace / name).write_text("1")
    before = await shadow.snapshot(paths={"src/"})
    assert (await shadow.find(before)).paths == ("src",)
    for name in ("src/a", "src/new", "src-beside", "other"):
        (workspace / name).write_text("2")
    await shadow.restore(before)
    assert {name: content for name, (_, content) in tree(workspace).items()} == {
        "src/a": b"1",
        "src-beside": b"2",
        "other": b"2",
    }


async def test_only_what_some_steps_touched_is_undone(shadow: Shadow, workspace: Path) -> None:
    ids: list[str] = []
    for number, name in enumerate(("a", "mine", "made/b", "a")):
        (workspace / name).parent.mkdir(exist_ok=True)
        ids.append(await shadow.snapshot())
        (workspace / name).write_text(f"{number}")
    ids.append(await shadow.snapshot())
    ours = await shadow.touched([(ids[0], ids[1]), (ids[2], ids[3]), (ids[3], ids[4])])
    assert ours == {"a", "made/b"}
    assert await shadow.touched([]) == set()
    await shadow.restore(ids[0], expect=ids[4], only=ours)
    assert tree(workspace) == {"mine": ("file", b"1")}


async def test_a_path_may_be_absolute_but_not_outside(shadow: Shadow, workspace: Path) -> None:
    assert (await shadow.find(await shadow.snapshot(paths=[workspace / "src"]))).paths == ("src",)
    assert (await shadow.find(await shadow.snapshot(paths=["."]))).paths == ()
    with pytest.raises(DenizenError, match=r"\.\./x is outside of"):
        await shadow.snapshot(paths=["../x"])


async def test_snapshots_after_one_of_paths_hold_everything(shadow: Shadow, workspace: Path) -> None:
    (workspace / "a").write_text("1")
    await shadow.snapshot(paths=["a"])
    (workspace / "b").write_text("1")
    whole = await shadow.snapshot()
    assert (await shadow.find(whole)).paths == ()
    (workspace / "b").write_text("2")
    await shadow.restore(whole)
    assert (workspace / "b").read_text() == "1"


async def test_a_workspace_that_becomes_empty_stays(tmp_path: Path, home: Path) -> None:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    part = tmp_path / "project" / "part"
    part.mkdir()
    shadow = shadow_of(part, home, clock=FakeClock(), environ=os.environ)
    before = await shadow.snapshot()
    (part / "a" / "b").mkdir(parents=True)
    (part / "a" / "b" / "c").touch()
    await shadow.restore(before)
    assert list(part.iterdir()) == []
