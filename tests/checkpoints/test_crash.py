"""A restore that was killed can be completed, and blocks nobody."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.checkpoints.conftest import tree

from denizen.checkpoints import Shadow, shadow_of
from denizen.errors import DenizenError
from denizen.runtime.clock import SystemClock
from denizen.testing import FakeClock

RESTORER = Path(__file__).with_name("restorer.py")
MANY = 700


def fill(workspace: Path, text: str) -> None:
    for number in range(MANY):
        path = workspace / f"d{number % 7}" / f"f{number}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{text} {number}")


@pytest.mark.parametrize("seen", ["first file", "last file"])
async def test_a_restore_that_was_killed_is_completed_by_the_next(
    shadow: Shadow, workspace: Path, home: Path, seen: str
) -> None:
    fill(workspace, "old")
    was, before = tree(workspace), await shadow.snapshot()
    fill(workspace, "new")
    (workspace / "made").write_text("new")
    after = await shadow.snapshot()
    watched = workspace / ("d0/f0" if seen == "first file" else "d6/f699")
    new = watched.read_bytes()
    command = [sys.executable, str(RESTORER), str(home), str(workspace), before, after]
    with subprocess.Popen(command) as process:
        while process.poll() is None and watched.read_bytes() == new:
            pass
        process.kill()
    assert watched.read_bytes().startswith(b"old")
    await shadow.restore(before, expect=after)
    assert tree(workspace) == was
    assert not (workspace / ".denizen-restore.tmp").exists()


async def test_what_a_killed_restore_left_behind_is_not_kept(shadow: Shadow, workspace: Path) -> None:
    (workspace / "a").write_text("1")
    before = await shadow.snapshot()
    (workspace / ".denizen-restore.tmp").mkdir()
    (workspace / ".denizen-restore.tmp" / "a").write_text("2")
    assert await shadow.snapshot() == before
    await shadow.restore(await shadow.snapshot("x"))
    assert (workspace / "a").read_text() == "1"


@pytest.mark.parametrize(
    "name", ["index.lock", "HEAD.lock", "refs/heads/last.lock", "refs/checkpoints/0000000002.lock"]
)
async def test_lock_files_of_a_killed_git_are_removed(shadow: Shadow, workspace: Path, home: Path, name: str) -> None:
    (workspace / "a").write_text("1")
    await shadow.snapshot()
    (folder,) = (home / "checkpoints").iterdir()
    (folder / name).touch()
    (workspace / "a").write_text("2")
    assert len({await shadow.snapshot(), *[each.id for each in await shadow.list()]}) == 2


async def test_a_repository_that_was_half_made_is_made_again(shadow: Shadow, workspace: Path, home: Path) -> None:
    (workspace / "a").write_text("1")
    await shadow.snapshot()
    (folder,) = (home / "checkpoints").iterdir()
    (folder / "root").unlink()
    (folder / "info" / "attributes").unlink()
    (workspace / "a").write_text("2")
    await shadow.snapshot()
    assert len(await shadow.list()) == 2


async def test_concurrent_snapshots_wait_for_each_other(workspace: Path, home: Path) -> None:
    shadows = [shadow_of(workspace, home, clock=SystemClock(), environ=os.environ) for _ in range(4)]
    (workspace / "a").write_text("1")
    same = await asyncio.gather(*(shadow.snapshot() for shadow in shadows))
    assert len(set(same)) == 1
    await asyncio.gather(*(shadow.snapshot(f"label {number}") for number, shadow in enumerate(shadows)))
    assert sorted(each.label for each in await shadows[0].list()) == ["", *(f"label {number}" for number in range(4))]


async def test_lock_that_is_never_released_is_reported(shadow: Shadow, workspace: Path, home: Path) -> None:
    other = shadow_of(workspace, home, clock=FakeClock(), environ=os.environ)
    async with shadow.opened():
        with pytest.raises(DenizenError, match=r"Another process has held .* for 60 s"):
            await other.snapshot()
    assert await other.snapshot()


async def test_a_cancelled_snapshot_leaves_the_next_one_free(shadow: Shadow, workspace: Path) -> None:
    fill(workspace, "old")
    for turns in (1, 5, 20):
        task = asyncio.create_task(shadow.snapshot())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    before = await shadow.snapshot()
    (workspace / "d0" / "f0").unlink()
    await shadow.restore(before)
    assert len(tree(workspace)) == MANY
