"""`ls`: what is in a folder, and what is hidden in it."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.tools.ls import MAX_ENTRIES, ls

Call = Callable[..., Awaitable[ToolResult]]


async def test_folders_come_first_then_files_with_their_sizes(workspace: Path, call: Call) -> None:
    for name in ("src", "docs"):
        (workspace / name).mkdir()
    (workspace / "b.txt").write_text("x" * 1500)
    (workspace / "a.txt").write_text("x")
    (workspace / "link").symlink_to("src/main.py")
    os.mkfifo(workspace / "pipe")
    result = await call(ls)
    assert result.text == "docs/\nsrc/\na.txt  1 byte\nb.txt  1.5 kB\nlink -> src/main.py\npipe  (a named pipe)"
    assert result.details == {"path": ".", "entries": 6, "hidden": 0}


async def test_it_says_what_git_ignores(workspace: Path, call: Call) -> None:
    (workspace / ".gitignore").write_text("dist/\n*.log\n")
    (workspace / "sub").mkdir()
    (workspace / "sub/.gitignore").write_text("!keep.log\nlocal*\n")
    for name in (".git/config", "dist/x", "a.log", "sub/keep.log", "sub/b.log", "sub/local.txt"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).touch()
    assert (await call(ls)).text == "sub/\n.gitignore  12 bytes\n[hidden: .git/, dist/, a.log]"
    assert (await call(ls, path="sub")).text == (".gitignore  17 bytes\nkeep.log  0 bytes\n[hidden: b.log, local.txt]")


async def test_an_ignored_folder_is_listed_when_it_is_asked_for(workspace: Path, call: Call) -> None:
    (workspace / ".gitignore").write_text("dist/\n")
    (workspace / "dist").mkdir()
    (workspace / "dist/x").touch()
    assert (await call(ls, path="dist")).text == "x  0 bytes"


async def test_a_large_folder_is_listed_in_pages(workspace: Path, call: Call) -> None:
    for number in range(MAX_ENTRIES + 3):
        (workspace / f"{number:04}").touch()
    first = await call(ls)
    assert first.text.endswith(f"\n[{MAX_ENTRIES + 3} entries in all; to go on: ls . start={MAX_ENTRIES + 1}]")
    assert (await call(ls, start=MAX_ENTRIES + 1)).text == "\n".join(
        f"{n:04}  0 bytes" for n in range(MAX_ENTRIES, MAX_ENTRIES + 3)
    )
    with pytest.raises(ToolRefused, match="there is none from 9999"):
        await call(ls, start=9999)


async def test_names_that_are_no_text_do_no_harm(workspace: Path, call: Call) -> None:
    (workspace / "two\nlines\x1b[31m").touch()
    Path(os.fsdecode(os.fsencode(workspace) + b"/caf\xe9")).touch()
    assert (await call(ls)).text == "caf\ufffd  0 bytes\ntwo\ufffdlines\ufffd[31m  0 bytes"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("file.txt", r"file\.txt is a file, not a folder"),
        ("nope", "nope doesn't exist"),
        ("file.txt/x", "Not a directory"),
    ],
)
async def test_what_is_no_folder_is_refused(path: str, why: str, workspace: Path, call: Call) -> None:
    (workspace / "file.txt").touch()
    with pytest.raises(ToolRefused, match=why):
        await call(ls, path=path)


async def test_an_empty_folder_says_so(call: Call) -> None:
    assert (await call(ls)).text == "[nothing to show]"
