"""What the tools write is there whole or not at all: refused, out of room, without permission, or killed half-way."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.full_disk import file_size_limit

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import Tool, ToolContext
from denizen.tools.edit import edit
from denizen.tools.files.changes import NewContent, change, version
from denizen.tools.files.workspace import Workspace
from denizen.tools.patch import apply_patch
from denizen.tools.read import read
from denizen.tools.write import write

Call = Callable[..., Awaitable[ToolResult]]
NOBODY = 65534


def content(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder; None for folders."""
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in folder.rglob("*")}


def growing(path: str) -> list[tuple[Tool, dict[str, str]]]:
    """Calls of each tool that make the file large; the patch touches another file first."""
    more = "x" * 100_000
    sections = (
        f"*** Add File: new/first.txt\n+x\n*** Update File: {path}\n@@\n one\n+{more}\n*** Delete File: third.txt\n"
    )
    return [
        (write, {"path": path, "content": more}),
        (write, {"path": "new/deep/file.txt", "content": more}),
        (edit, {"path": path, "old": "one", "new": more}),
        (apply_patch, {"patch": f"*** Begin Patch\n{sections}*** End Patch\n"}),
    ]


@pytest.mark.parametrize("number", range(4), ids=["write", "write new", "edit", "apply_patch"])
async def test_a_full_disk_leaves_everything_as_it_was(number: int, workspace: Path, call: Call) -> None:
    (workspace / "file.txt").write_text("one\n")
    (workspace / "third.txt").write_text("three\n")
    before = content(workspace)
    tool, args = growing("file.txt")[number]
    with file_size_limit(10_000), pytest.raises(ToolRefused, match="can't be written: File too large"):
        await call(tool, **args)
    assert content(workspace) == before


@pytest.fixture
def shared(turn: ToolContext) -> Generator[tuple[Path, ToolContext]]:
    """A workspace that another user may work in, too."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)  # noqa: PTH101
        yield Path(folder), replace(turn, workspace=Path(folder))


@contextmanager
def as_nobody() -> Generator[None]:
    """Root may do everything, so it becomes somebody who may not; anybody else is that already."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


async def test_what_may_not_be_read_is_refused(shared: tuple[Path, ToolContext]) -> None:
    folder, turn = shared
    (folder / "private.txt").write_text("private\n")
    (folder / "private.txt").chmod(0)
    (folder / "closed").mkdir()
    (folder / "closed/file.txt").write_text("private\n")
    (folder / "closed").chmod(0)
    with as_nobody():
        for path in ("private.txt", "closed/file.txt"):
            with pytest.raises(ToolRefused, match=f"{path}: Permission denied"):
                await read.run({"path": path}, turn)
            with pytest.raises(ToolRefused, match=f"{path}: Permission denied"):
                await edit.run({"path": path, "old": "private", "new": "public"}, turn)
    (folder / "closed").chmod(0o700)


async def test_what_may_not_be_written_is_refused(shared: tuple[Path, ToolContext]) -> None:
    folder, turn = shared
    (folder / "fixed.txt").write_text("one\n")
    (folder / "fixed.txt").chmod(0o444)
    (folder / "fixed").mkdir(mode=0o755)
    (folder / "fixed").chmod(0o555)
    before = content(folder)
    with as_nobody():
        with pytest.raises(ToolRefused, match=r"fixed.txt is read-only"):
            await write.run({"path": "fixed.txt", "content": "two\n"}, turn)
        with pytest.raises(ToolRefused, match=r"fixed.txt is read-only"):
            await edit.run({"path": "fixed.txt", "old": "one", "new": "two"}, turn)
        with pytest.raises(ToolRefused, match=r"fixed/new.txt can't be written: Permission denied"):
            await write.run({"path": "fixed/new.txt", "content": "two\n"}, turn)
        with pytest.raises(ToolRefused, match=r"fixed/deeper/new.txt: Permission denied"):
            await write.run({"path": "fixed/deeper/new.txt", "content": "two\n"}, turn)
    assert content(folder) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a file of another user")
async def test_earlier_files_are_put_back_when_a_later_one_fails(shared: tuple[Path, ToolContext]) -> None:
    folder, turn = shared
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(f"{name}\n")
        os.chown(folder / name, NOBODY, NOBODY)
    (folder / "sticky").mkdir()
    (folder / "sticky").chmod(0o1777)  # new files may be made, those of others not replaced
    (folder / "sticky/theirs.txt").write_text("theirs\n")
    (folder / "sticky/theirs.txt").chmod(0o666)
    before = content(folder)
    sections = ["Update File: a.txt\n@@\n-a.txt\n+A", "Delete File: b.txt", "Add File: new/c.txt\n+C"]
    last = "Update File: sticky/theirs.txt\n@@\n-theirs\n+ours"
    with as_nobody(), pytest.raises(ToolRefused, match=r"sticky/theirs.txt can't be written: Operation not permitted"):
        await apply_patch.run({"patch": "\n".join(f"*** {section}" for section in [*sections, last])}, turn)
    assert content(folder) == before


async def test_a_file_that_somebody_changed_meanwhile_is_left_alone(workspace: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (workspace / name).write_text("read\n")
    read_then = version((workspace / "b.txt").stat())
    (workspace / "b.txt").write_text("theirs\n")
    contents = {"a.txt": NewContent(b"ours\n"), "b.txt": NewContent(b"ours\n", replaces=read_then)}
    with pytest.raises(ToolRefused, match=r"b\.txt was changed by somebody else meanwhile; read it again"):
        change(Workspace(workspace), contents)
    with pytest.raises(ToolRefused, match=r"a\.txt was changed by somebody else"):
        change(Workspace(workspace), {"a.txt": NewContent(b"ours\n", replaces=None)})
    assert content(workspace) == {"a.txt": b"read\n", "b.txt": b"theirs\n"}


async def test_permissions_and_owner_are_kept(workspace: Path, call: Call) -> None:
    path = workspace / "file.sh"
    path.write_text("one\n")
    path.chmod(0o751)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    before = path.stat()
    await call(write, path="file.sh", content="one two\n")
    await call(edit, path="file.sh", old="two", new="three")
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


async def test_new_files_get_the_users_usual_permissions(workspace: Path, call: Call) -> None:
    mask = os.umask(0o027)
    try:
        await call(write, path="sub/file.txt", content="x")
    finally:
        os.umask(mask)
    assert (workspace / "sub/file.txt").stat().st_mode & 0o777 == 0o640
    assert (workspace / "sub").stat().st_mode & 0o777 == 0o750


async def test_another_name_of_the_file_keeps_the_old_content(workspace: Path, call: Call) -> None:
    (workspace / "one.txt").write_text("old\n")
    (workspace / "two.txt").hardlink_to(workspace / "one.txt")
    await call(write, path="one.txt", content="new\n")
    assert (workspace / "two.txt").read_text() == "old\n"


async def test_a_cancelled_write_is_there_whole_or_not_at_all(workspace: Path, turn: ToolContext) -> None:
    for number in range(20):
        task = asyncio.create_task(write.run({"path": f"{number}.txt", "content": "x" * 500_000}, turn))
        for _ in range(number):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # again: it is still waited for
        with contextlib.suppress(asyncio.CancelledError):  # it may have been done before
            await task
        assert {path.stat().st_size for path in workspace.iterdir()} <= {500_000}
        assert {path.suffix for path in workspace.iterdir()} <= {".txt"}


WRITER = """
import asyncio, sys
from pathlib import Path
from denizen.runtime.clock import SystemClock
from denizen.ports import ToolContext
from denizen.tools.write import write

async def main():
    turn = ToolContext("session", "call-1", Path(sys.argv[1]), SystemClock(), print, None)
    while True:
        for letter in "ab":
            await write.run({"path": "file.txt", "content": letter * 3_000_000}, turn)
            print(letter, flush=True)

asyncio.run(main())
"""


def test_a_writer_that_is_killed_leaves_the_old_content_or_the_new(workspace: Path) -> None:
    whole = {letter * 3_000_000 for letter in "ab"}
    for rounds in range(1, 6):
        with subprocess.Popen([sys.executable, "-c", WRITER, workspace], stdout=subprocess.PIPE) as process:
            assert process.stdout
            for _ in range(rounds):
                assert process.stdout.readline()
            process.send_signal(signal.SIGKILL)
        assert (workspace / "file.txt").read_text() in whole
