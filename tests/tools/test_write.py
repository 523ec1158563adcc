"""`write`: a whole file."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.tools.write import write

Call = Callable[..., Awaitable[ToolResult]]


async def test_a_new_file_gets_its_folders(workspace: Path, call: Call) -> None:
    result = await call(write, path="a/b/c.txt", content="one\ntwo\n")
    assert (workspace / "a/b/c.txt").read_bytes() == b"one\ntwo\n"
    assert result.text == "Created a/b/c.txt: 2 lines, 8 bytes."
    assert result.details == {
        "path": "a/b/c.txt",
        "created": True,
        "bytes": 8,
        "diff": "@@ -0,0 +1,2 @@\n+one\n+two",
        "added": 2,
        "removed": 0,
    }


async def test_an_old_file_is_replaced_and_the_difference_shown(workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text("".join(f"{n}\n" for n in range(1, 21)))
    result = await call(write, path="a.txt", content="".join(f"{n}\n" for n in range(1, 21) if n != 15))
    assert result.text == "Replaced a.txt: 19 lines, 48 bytes."
    assert result.details["diff"] == "@@ -12,7 +12,6 @@\n 12\n 13\n 14\n-15\n 16\n 17\n 18"
    assert (result.details["added"], result.details["removed"]) == (0, 1)


@pytest.mark.parametrize("content", ["", "no line end", "a\r\nb", "\ufeffmark", "é🎉\u2028"])
async def test_the_content_is_written_as_it_is(content: str, workspace: Path, call: Call) -> None:
    await call(write, path="a.txt", content=content)
    assert (workspace / "a.txt").read_bytes() == content.encode()


async def test_a_binary_file_can_be_replaced(workspace: Path, call: Call) -> None:
    (workspace / "a.bin").write_bytes(b"\0\xff")
    result = await call(write, path="a.bin", content="text\n")
    assert (workspace / "a.bin").read_text() == "text\n"
    assert result.details["diff"] == "@@ -0,0 +1 @@\n+text"


async def test_what_is_no_text_is_refused(workspace: Path, call: Call) -> None:
    with pytest.raises(ToolRefused, match=r"has no '\\ud800'"):
        await call(write, path="a.txt", content="half a sign: \ud800")
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize(("path", "why"), [("sub", "is a folder"), ("file.txt/x", "Not a directory")])
async def test_what_is_no_place_for_a_file_is_refused(path: str, why: str, workspace: Path, call: Call) -> None:
    (workspace / "sub").mkdir()
    (workspace / "file.txt").touch()
    with pytest.raises(ToolRefused, match=why):
        await call(write, path=path, content="x")


async def test_a_great_change_is_shown_in_numbers(workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text("".join(f"{n}\n" for n in range(9000)))
    result = await call(write, path="a.txt", content="".join(f"{-n}\n" for n in range(1, 8000)))
    assert (result.details["diff"], result.details["added"], result.details["removed"]) == ("", 7999, 9000)


async def test_changes_far_apart_in_a_large_file_are_counted(workspace: Path, call: Call) -> None:
    lines = [f"{n}\n" for n in range(9000)]
    (workspace / "a.txt").write_text("".join(lines))
    result = await call(write, path="a.txt", content="".join(["first\n", *lines[1:-1], "last\n", "more\n"]))
    assert (result.details["added"], result.details["removed"]) == (3, 2)
