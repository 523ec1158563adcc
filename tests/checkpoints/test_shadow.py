"""Snapshots: what they hold, how they are named, and that the project never notices."""

import os
import stat
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from tests.checkpoints.conftest import tree

from denizen.checkpoints import Shadow, shadow_of
from denizen.errors import DenizenError
from denizen.ports import Checkpoints
from denizen.testing import FakeClock


def git(folder: Path, *words: str) -> str:
    """The user's own git, in the user's own repository."""
    name = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    return subprocess.run(["git", *name, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


async def test_a_restored_snapshot_is_what_the_files_were(shadow: Shadow, workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "src" / "main.py").write_text("print(1)\n")
    (workspace / "run").write_text("#!/bin/sh\n")
    (workspace / "run").chmod(0o755)
    (workspace / "link").symlink_to("src")
    (workspace / "dangling").symlink_to("nowhere")
    was = tree(workspace)
    before = await shadow.snapshot()
    (workspace / "src" / "main.py").write_text("print(2)\n")
    (workspace / "run").chmod(0o644)
    (workspace / "link").unlink()
    (workspace / "dangling").unlink()
    (workspace / "new").mkdir()
    (workspace / "new" / "file").touch()
    await shadow.restore(before)
    assert tree(workspace) == was
    assert not (workspace / "new").exists()


async def test_the_same_files_are_the_same_snapshot(shadow: Shadow, workspace: Path) -> None:
    (workspace / "a").write_text("1")
    first = await shadow.snapshot()
    assert await shadow.snapshot() == first
    (workspace / "a").write_text("2")
    assert await shadow.snapshot() != first
    assert len(await shadow.list()) == 2


async def test_an_empty_workspace_has_a_snapshot_too(shadow: Shadow, workspace: Path) -> None:
    before = await shadow.snapshot()
    (workspace / "a").touch()
    await shadow.restore(before)
    assert tree(workspace) == {}


async def test_touched_files_are_no_change(shadow: Shadow, workspace: Path) -> None:
    (workspace / "a").write_text("1")
    first = await shadow.snapshot()
    os.utime(workspace / "a", (0, 0))
    assert await shadow.snapshot() == first


async def test_a_change_that_keeps_size_and_time_is_seen_right_after_a_snapshot(
    shadow: Shadow, workspace: Path
) -> None:
    (workspace / "a").write_text("1")
    first = await shadow.snapshot()
    found = (workspace / "a").stat()
    (workspace / "a").write_text("2")
    os.utime(workspace / "a", ns=(found.st_atime_ns, found.st_mtime_ns))
    assert await shadow.snapshot() != first


async def test_ignored_files_are_neither_kept_nor_touched(shadow: Shadow, workspace: Path) -> None:
    git(workspace, "init")
    (workspace / ".gitignore").write_text("*.log\n")
    (workspace / ".git" / "info" / "exclude").write_text("/secret\n")
    (workspace / "sub").mkdir()
    (workspace / "sub" / ".gitignore").write_text("build/\n")
    (workspace / "sub" / "build").mkdir()
    ignored = [workspace / "a.log", workspace / "secret", workspace / "sub" / "build" / "out"]
    for path in ignored:
        path.write_text("1")
    before = await shadow.snapshot()
    (workspace / "b.log").write_text("made since")
    for path in ignored:
        path.write_text("2")
    assert await shadow.snapshot() == before
    await shadow.restore(before)
    assert [path.read_text() for path in ignored] == ["2", "2", "2"]
    assert (workspace / "b.log").exists()


@pytest.mark.parametrize("folder", ["dist", "node_modules"])
async def test_what_the_project_tracks_is_kept_even_if_it_is_ignored(
    shadow: Shadow, workspace: Path, folder: str
) -> None:
    git(workspace, "init")
    (workspace / ".gitignore").write_text("dist/\n")
    (workspace / folder).mkdir()
    (workspace / folder / "kept.js").write_text("1")
    (workspace / folder / "built.js").write_text("1")
    git(workspace, "add", "--force", f"{folder}/kept.js")
    before = await shadow.snapshot()
    for name in ("kept.js", "built.js"):
        (workspace / folder / name).write_text("2")
    assert (await shadow.diff(before)).paths == [f"{folder}/kept.js"]
    git(workspace, "add", "--force", f"{folder}/built.js")
    later = await shadow.snapshot()
    (workspace / folder / "built.js").unlink()
    await shadow.restore(later)
    assert (workspace / folder / "built.js").read_text() == "2"


async def test_by_products_are_neither_kept_nor_touched(shadow: Shadow, workspace: Path) -> None:
    before = await shadow.snapshot()
    for path in ("__pycache__/a.pyc", "web/node_modules/lib/index.js", ".pytest_cache/v"):
        (workspace / path).parent.mkdir(parents=True)
        (workspace / path).write_text("left by a program")
    (workspace / "cache").mkdir()
    (workspace / "cache" / "store.py").write_text("written by somebody")
    assert (await shadow.diff(before)).paths == ["cache/store.py"]
    await shadow.restore(before)
    assert not (workspace / "cache" / "store.py").exists()
    assert (workspace / "__pycache__" / "a.pyc").exists()


@pytest.mark.parametrize("file", [".git/index", ".git"])
async def test_broken_project_repository_does_no_harm(shadow: Shadow, workspace: Path, file: str) -> None:
    (workspace / file).parent.mkdir(exist_ok=True)
    (workspace / file).write_bytes(b"gitdir: \0nonsense")
    (workspace / "a").write_text("1")
    before = await shadow.snapshot()
    (workspace / "a").write_text("2")
    await shadow.restore(before)
    assert (workspace / "a").read_text() == "1"


async def test_patterns_of_a_linked_work_tree_hold(tmp_path: Path, home: Path) -> None:
    main, linked = tmp_path / "main", tmp_path / "linked"
    git(tmp_path, "init", "main")
    git(main, "commit", "--allow-empty", "--message=first")
    git(main, "worktree", "add", str(linked))
    (main / ".git" / "info" / "exclude").write_text("secret\n")
    (linked / "secret").write_text("1")
    shadow = shadow_of(linked, home, clock=FakeClock(), environ=os.environ)
    before = await shadow.snapshot()
    (linked / "secret").unlink()
    assert await shadow.snapshot() == before


async def test_the_projects_own_repository_never_notices(shadow: Shadow, workspace: Path) -> None:
    git(workspace, "init")
    (workspace / "a").write_text("1")
    git(workspace, "add", "a")
    git(workspace, "commit", "--message=first")
    (workspace / "a").write_text("2")
    git(workspace, "stash")
    (workspace / "a").write_text("3")
    for hook in ("post-checkout", "pre-commit", "post-index-change", "reference-transaction"):
        (workspace / ".git" / "hooks").mkdir(exist_ok=True)
        (workspace / ".git" / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {workspace}/ran\n")
        (workspace / ".git" / "hooks" / hook).chmod(0o755)
    was = {path: path.read_bytes() for path in (workspace / ".git").rglob("*") if path.is_file()}
    before = await shadow.snapshot("x")
    (workspace / "a").write_text("4")
    await shadow.snapshot()
    await shadow.restore(before)
    assert {path: path.read_bytes() for path in (workspace / ".git").rglob("*") if path.is_file()} == was
    assert tree(workspace) == {"a": ("file", b"3")}


async def test_the_users_settings_and_environment_change_nothing(workspace: Path, home: Path, tmp_path: Path) -> None:
    user = tmp_path / "user"
    (user / ".config" / "git").mkdir(parents=True)
    (user / ".config" / "git" / "ignore").write_text("*\n")
    (user / ".gitconfig").write_text(
        '[core]\n\tautocrlf = true\n\tfileMode = false\n[filter "x"]\n\tclean = rev\n[commit]\n\tgpgSign = true\n'
    )
    environ = dict(os.environ) | {
        "HOME": str(user),
        "GIT_DIR": str(tmp_path / "elsewhere"),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GIT_OBJECT_DIRECTORY": str(tmp_path / "objects"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.autocrlf",
        "GIT_CONFIG_VALUE_0": "true",
    }
    shadow = shadow_of(workspace, home, clock=FakeClock(), environ=environ)
    (workspace / ".gitattributes").write_text(
        "* text eol=crlf filter=x ident working-tree-encoding=UTF-16\n*.bin binary\n"
    )
    (workspace / "a").write_bytes(b"abc $Id$\r\nmixed\n\0")
    (workspace / "b.bin").write_bytes(b"\xff\xfe\r\n")
    was = tree(workspace)
    before = await shadow.snapshot()
    (workspace / "a").unlink()
    (workspace / "b.bin").unlink()
    await shadow.restore(before)
    assert tree(workspace) == was
    assert not {"elsewhere", "index", "objects"} & {path.name for path in tmp_path.iterdir()}


async def test_odd_names(shadow: Shadow, workspace: Path) -> None:
    names = [
        "new\nline",
        "täst ☃",
        "back\\slash",
        "-dash",
        ":(top)x",
        "*",
        '"quoted"',
        " blank ",
        "tab\t",
        "git~1",
        "a:b",
    ]
    names += [os.fsdecode(b"\xff\xfe")]
    for name in names:
        (workspace / name).write_text(name.encode(errors="replace").decode())
    was = tree(workspace)
    before = await shadow.snapshot()
    for name in names:
        (workspace / name).unlink()
    assert sorted((await shadow.diff(before)).paths) == sorted(names)
    await shadow.restore(before)
    assert tree(workspace) == was


@pytest.mark.parametrize("name", ["new\nline", "täst ☃", "a*b [c] \\d", " blank ", ".git"])
async def test_a_workspace_of_an_odd_name(tmp_path: Path, home: Path, name: str) -> None:
    workspace = tmp_path / name
    workspace.mkdir()
    shadow = shadow_of(workspace, home, clock=FakeClock(), environ=os.environ)
    (workspace / "a").write_text("1")
    before = await shadow.snapshot()
    (workspace / "a").write_text("2")
    await shadow.restore(before)
    assert (workspace / "a").read_text() == "1"


@pytest.mark.parametrize("committed", [False, True])
async def test_repositories_in_the_project_are_kept_as_files(shadow: Shadow, workspace: Path, committed: bool) -> None:
    inner = workspace / "vendor" / "lib"
    inner.mkdir(parents=True)
    git(inner, "init")
    (inner / "code.c").write_text("1")
    (inner / ".gitignore").write_text("*.o\n")
    (inner / "code.o").write_text("ignored")
    if committed:
        git(inner, "add", ".")
        git(inner, "commit", "--message=first")
    git(inner, "init", "deeper")
    (inner / "deeper" / "x").write_text("1")
    before = await shadow.snapshot()
    (inner / "code.c").write_text("2")
    (inner / "deeper" / "x").unlink()
    (inner / "new.c").write_text("2")
    assert (await shadow.diff(before)).paths == [f"vendor/lib/{name}" for name in ("code.c", "deeper/x", "new.c")]
    await shadow.restore(before)
    assert tree(inner) == {
        "code.c": ("file", b"1"),
        ".gitignore": ("file", b"*.o\n"),
        "code.o": ("file", b"ignored"),
        "deeper/x": ("file", b"1"),
    }
    assert git(inner, "status", "--short").count("code.c") == (0 if committed else 1)


async def test_a_repository_cloned_since_loses_its_files_but_not_its_data(shadow: Shadow, workspace: Path) -> None:
    before = await shadow.snapshot()
    git(workspace, "init", "clone")
    (workspace / "clone" / "a").touch()
    await shadow.restore(before)
    assert tree(workspace) == {}
    assert (workspace / "clone" / ".git" / "HEAD").exists()
    assert (await shadow.diff(before)).paths == []


async def test_files_that_cannot_be_kept_are_left_out_and_named(shadow: Shadow, workspace: Path) -> None:
    with (workspace / "huge").open("wb") as file:
        file.truncate(100_000_001)
    os.mkfifo(workspace / "pipe")
    (workspace / ".GIT").write_text("odd")
    (workspace / "a").write_text("1")
    before = await shadow.snapshot()
    assert (await shadow.find(before)).left_out == (".GIT", "huge")
    (workspace / "a").write_text("2")
    await shadow.restore(before)
    assert sorted(path.name for path in workspace.iterdir()) == [".GIT", "a", "huge", "pipe"]
    assert (workspace / "a").read_text() == "1"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
async def test_an_unreadable_file_is_left_out(shadow: Shadow, workspace: Path) -> None:
    (workspace / "a").write_text("1")
    (workspace / "a").chmod(0)
    assert (await shadow.find(await shadow.snapshot())).left_out == ("a",)


async def test_a_file_that_grew_too_large_is_never_overwritten(shadow: Shadow, workspace: Path) -> None:
    (workspace / "log").write_text("small")
    before = await shadow.snapshot()
    with (workspace / "log").open("wb") as file:
        file.truncate(100_000_001)
    for force in (False, True):
        with pytest.raises(DenizenError, match=r"is in the way: log\."):
            await shadow.restore(before, force=force)
    assert (workspace / "log").stat().st_size == 100_000_001


async def test_a_part_of_a_repository_obeys_the_rules_above_it(tmp_path: Path, home: Path) -> None:
    git(tmp_path, "init", "project")
    (tmp_path / "project" / ".gitignore").write_text("/part/out/\n*.log\n")
    part = tmp_path / "project" / "part"
    (part / "out").mkdir(parents=True)
    (part / "out" / "x").write_text("1")
    (part / "a").write_text("1")
    (tmp_path / "project" / "beside").write_text("1")
    shadow = shadow_of(part, home, clock=FakeClock(), environ=os.environ)
    before = await shadow.snapshot()
    for file in (part / "out" / "x", part / "a", part / "b.log", part / "new", tmp_path / "project" / "beside"):
        file.write_text("2")
    difference = await shadow.diff(before)
    assert difference.paths == ["a", "new"]
    assert "+++ b/a" in difference.text
    await shadow.restore(before)
    assert {name: content for name, (_, content) in tree(tmp_path / "project").items()} == {
        ".gitignore": b"/part/out/\n*.log\n",
        "part/out/x": b"2",
        "part/a": b"1",
        "part/b.log": b"2",
        "beside": b"2",
    }


async def test_an_ignored_workspace_is_kept_all_the_same(tmp_path: Path, home: Path) -> None:
    git(tmp_path, "init", "project")
    (tmp_path / "project" / ".gitignore").write_text("*\n")
    part = tmp_path / "project" / "part"
    part.mkdir()
    (part / "a").write_text("1")
    shadow = shadow_of(part, home, clock=FakeClock(), environ=os.environ)
    before = await shadow.snapshot()
    (part / "a").unlink()
    await shadow.restore(before)
    assert (part / "a").read_text() == "1"


async def test_the_home_is_never_kept(tmp_path: Path) -> None:
    home = tmp_path / ".denizen *"
    shadow = shadow_of(tmp_path, home, clock=FakeClock(), environ=os.environ)
    home.mkdir()
    (home / "token").write_text("secret")
    (tmp_path / "a").write_text("1")
    before = await shadow.snapshot()
    (home / "token").write_text("another")
    assert await shadow.snapshot() == before


async def test_the_homes_own_workspace_is_kept(tmp_path: Path) -> None:
    git(tmp_path, "init")
    workspace = tmp_path / ".denizen" / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "MEMORY.md").write_text("1")
    shadow = shadow_of(workspace, tmp_path / ".denizen", clock=FakeClock(), environ=os.environ)
    before = await shadow.snapshot()
    (workspace / "MEMORY.md").write_text("2")
    assert (await shadow.diff(before)).paths == ["MEMORY.md"]


async def test_the_repository_is_for_the_user_alone(shadow: Shadow, workspace: Path, home: Path) -> None:
    (workspace / "a").touch()
    await shadow.snapshot()
    (folder,) = (home / "checkpoints").iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_labels_name_the_newest(shadow: Shadow, workspace: Path) -> None:
    (workspace / "a").write_text("1")
    first = await shadow.snapshot("green")
    assert (await shadow.find("green")).id == first
    (workspace / "a").write_text("2")
    await shadow.snapshot()
    second = await shadow.snapshot("green")
    assert (await shadow.find("green")).id == second


async def test_a_label_may_be_any_text(shadow: Shadow) -> None:
    label = "vor dem\nUmbau ☃ \t" + os.fsdecode(b"\xff")
    await shadow.snapshot(label)
    assert [each.label for each in await shadow.list()] == [label]


async def test_snapshots_are_listed_the_newest_first(shadow: Shadow, workspace: Path, clock: FakeClock) -> None:
    ids = []
    for number in range(12):
        (workspace / "a").write_text(f"{number}")
        ids.append(await shadow.snapshot(f"label {number}"))
        await clock.sleep(60)
    found = await shadow.list()
    assert [each.id for each in found] == ids[::-1]
    assert found[0].at - found[-1].at == timedelta(minutes=11)


async def test_an_id_can_be_shortened(shadow: Shadow) -> None:
    snapshot = await shadow.snapshot()
    assert (await shadow.find(snapshot[:8])).id == snapshot
    for name in ("nobody", snapshot[:3], ""):
        with pytest.raises(DenizenError, match="There is no checkpoint"):
            await shadow.find(name)


async def test_a_difference_is_paths_and_a_patch(shadow: Shadow, workspace: Path) -> None:
    (workspace / "a").write_text("one\n")
    before = await shadow.snapshot()
    (workspace / "a").write_text("two\n")
    (workspace / "täst").write_text("new\n")
    now = await shadow.diff(before)
    assert now.paths == ["a", "täst"]
    assert "-one\n+two\n" in now.text
    assert "+++ b/täst" in now.text
    after = await shadow.snapshot()
    assert await shadow.diff(before, after) == now
    assert (await shadow.diff(after, before)).text != now.text


async def test_missing_git_is_reported(workspace: Path, home: Path, tmp_path: Path) -> None:
    shadow = shadow_of(workspace, home, clock=FakeClock(), environ={"PATH": str(tmp_path / "empty")})
    with pytest.raises(DenizenError, match=r"need git.*Install it"):
        await shadow.snapshot()


@pytest.mark.parametrize("sign", ["No space left on device", "write error. Out of diskspace"])
async def test_full_disk_is_reported_and_leaves_no_waste(
    workspace: Path, home: Path, tmp_path: Path, sign: str
) -> None:
    (workspace / "a").write_text("1")
    full = tmp_path / "bin"
    full.mkdir()
    (full / "git").write_text(
        f"""#!/bin/sh
PATH="{os.environ["PATH"]}"
case "$*" in *update-index*) touch "$GIT_DIR/objects/pack/tmp_pack_x"; echo "fatal: {sign}" >&2; exit 128;; esac
exec git "$@"
"""
    )
    (full / "git").chmod(0o755)
    broken = shadow_of(workspace, home, clock=FakeClock(), environ=dict(os.environ) | {"PATH": str(full)})
    with pytest.raises(DenizenError, match="Free some space and try again; the checkpoints that were made are safe"):
        await broken.snapshot()
    before = await shadow_of(workspace, home, clock=FakeClock(), environ=os.environ).snapshot()
    (workspace / "a").write_text("2" * 1000)
    with pytest.raises(DenizenError, match="Free some space"):
        await broken.snapshot()
    assert [each.id for each in await broken.list()] == [before]
    assert list(home.rglob("tmp_pack_*")) == []


async def test_missing_workspace_is_reported(shadow: Shadow, workspace: Path) -> None:
    await shadow.snapshot()
    workspace.rmdir()
    with pytest.raises(DenizenError, match="isn't there any more"):
        await shadow.snapshot()


async def test_broken_repository_is_reported_with_advice(shadow: Shadow, workspace: Path, home: Path) -> None:
    (workspace / "a").write_text("1")
    await shadow.snapshot()
    (folder,) = (home / "checkpoints").iterdir()
    (folder / "index").write_bytes(b"nonsense")
    with pytest.raises(DenizenError, match="move that folder elsewhere"):
        await shadow.snapshot()


async def test_old_snapshots_are_deleted_except_labels_and_the_newest(
    shadow: Shadow, workspace: Path, clock: FakeClock
) -> None:
    (workspace / "a").write_text("first")
    labelled = await shadow.snapshot("keep")
    (workspace / "a").write_text("second")
    dropped = await shadow.snapshot()
    (workspace / "a").write_text("third")
    begun = await shadow.snapshot()
    await clock.sleep(timedelta(days=31).total_seconds())
    for number in range(61):
        await shadow.snapshot(f"label {number}")
    assert len(await shadow.list()) == 64
    for number in range(32):
        await shadow.snapshot(f"more {number}")
    ids = [each.id for each in await shadow.list()]
    assert dropped not in ids
    assert begun not in ids
    assert (ids[-1], len(ids)) == (labelled, 94)
    await shadow.restore(labelled)
    assert (workspace / "a").read_text() == "first"


def test_shadow_is_a_checkpoints_port(shadow: Shadow) -> None:
    checkpoints: Checkpoints = shadow
    assert checkpoints
