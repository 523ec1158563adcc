"""`apply_patch`: patches as models write them, all of one or none of it."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.tools.patch import apply_patch

Call = Callable[..., Awaitable[ToolResult]]
CASES = sorted((Path(__file__).parent.parent / "data/patches").glob("*.txt"))
SECTION = re.compile(r"^=== (before|patch|after|refused) ?(.*)\n", re.MULTILINE)


def sections(case: Path) -> list[tuple[str, str, str]]:
    """What, of which file, and the text."""
    _, *parts = SECTION.split(case.read_text())
    return list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
async def test_a_patch_as_models_write_them(case: Path, workspace: Path, call: Call) -> None:
    parts = sections(case)
    for what, name, text in parts:
        if what == "before":
            put(workspace, name, text.encode())
    before = files(workspace)
    (patch,) = [text for what, _, text in parts if what == "patch"]
    refusals = [text.strip() for what, _, text in parts if what == "refused"]
    if refusals:
        with pytest.raises(ToolRefused, match=re.escape(refusals[0])):
            await call(apply_patch, patch=patch)
        assert files(workspace) == before
    else:
        await call(apply_patch, patch=patch)
        assert files(workspace) == {name: text.encode() for what, name, text in parts if what == "after"}


UPDATE = """\
--- a/names.txt
+++ b/names.txt
@@ -1,2 +1,3 @@
 one
-two
+TWO
+more
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"one\ntwo\nthree\n", b"one\nTWO\nmore\nthree\n"),
        (b"one\r\ntwo\r\nthree\r\n", b"one\r\nTWO\r\nmore\r\nthree\r\n"),
        (b"one\r\ntwo\nthree\r\n", b"one\r\nTWO\nmore\nthree\r\n"),
        (b"one\ntwo", b"one\nTWO\nmore"),
        (b"one\r\ntwo", b"one\r\nTWO\r\nmore"),
        (b"\xef\xbb\xbfone\ntwo\n", b"\xef\xbb\xbfone\nTWO\nmore\n"),
        (b"one\ntwo\ncaf\xe9\n", b"one\nTWO\nmore\ncaf\xe9\n"),
        ("one\ntwo\nthrée\n".encode("utf-16"), "one\nTWO\nmore\nthrée\n".encode("utf-16")),
    ],
    ids=["lf", "crlf", "mixed", "open end", "crlf with open end", "mark", "latin-1", "utf-16"],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["patch lf", "patch crlf"])
async def test_a_file_keeps_its_line_ends_and_its_encoding(
    before: bytes, after: bytes, line_end: str, workspace: Path, call: Call
) -> None:
    path = put(workspace, "names.txt", before)
    await call(apply_patch, patch=UPDATE.replace("\n", line_end))
    assert path.read_bytes() == after


async def test_a_patch_can_change_the_line_ends_themselves(workspace: Path, call: Call) -> None:
    path = put(workspace, "names.txt", b"one\r\ntwo\r\n")
    await call(apply_patch, patch="--- a/names.txt\n+++ b/names.txt\n@@ -1,2 +1,2 @@\n-one\r\n+one\n two\r\n")
    assert path.read_bytes() == b"one\ntwo\r\n"


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        (b"a\nb", " a\n-b\n\\ No newline at end of file\n+b\n", b"a\nb\n"),
        (b"a\nb\n", " a\n-b\n+b\n\\ No newline at end of file\n", b"a\nb"),
        (b"a\nb", " a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n", b"a\nc"),
        (b"a\nb", " a\n b\n+c\n", b"a\nb\nc"),
    ],
    ids=["gets one", "loses it", "stays without", "nothing said"],
)
async def test_the_line_end_of_the_last_line(
    before: bytes, patch: str, after: bytes, workspace: Path, call: Call
) -> None:
    path = put(workspace, "names.txt", before)
    await call(apply_patch, patch=f"--- a/names.txt\n+++ b/names.txt\n@@ -1,2 +1,2 @@\n{patch}")
    assert path.read_bytes() == after


async def test_permissions_are_kept_and_can_be_changed(workspace: Path, call: Call) -> None:
    kept, made = put(workspace, "names.txt", b"one\ntwo\n"), put(workspace, "run.sh", b"true\n")
    kept.chmod(0o640)
    made.chmod(0o644)
    patch = UPDATE + "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
    new = "diff --git a/new.sh b/new.sh\nnew file mode 100755\n--- /dev/null\n+++ b/new.sh\n@@ -0,0 +1 @@\n+true\n"
    await call(apply_patch, patch=patch + new)
    modes = [(workspace / name).stat().st_mode & 0o777 for name in ("names.txt", "run.sh", "new.sh")]
    assert modes[:2] == [0o640, 0o755]
    assert modes[2] & 0o100


async def test_it_says_what_was_not_as_the_patch_says(workspace: Path, call: Call) -> None:
    put(workspace, "names.txt", b"zero\n  one\n  two\nthree\n")
    result = await call(apply_patch, patch=UPDATE)
    assert "Updated names.txt (+2 −1)" in result.text
    assert "1 line below its number, ignoring white space" in result.text
    assert result.details["files"][0]["diff"] == "@@ -1,4 +1,5 @@\n zero\n   one\n-  two\n+  TWO\n+  more\n three"


async def test_a_hunk_that_fits_nowhere_shows_the_nearest_lines(workspace: Path, call: Call) -> None:
    put(workspace, "names.txt", b"zero\none\n2\nthree\n")
    with pytest.raises(ToolRefused, match=r"removes 'two', which isn't there(?s:.*)2\tone\n3\t2"):
        await call(apply_patch, patch=UPDATE)


@pytest.mark.parametrize("path", ["../out.txt", "/etc/out.txt", ".git/config", "denizen.toml", "sub/.git/hooks/x"])
async def test_a_patch_does_not_reach_what_the_tools_may_not_write(path: str, workspace: Path, call: Call) -> None:
    put(workspace, "names.txt", b"one\ntwo\n")
    section = f"*** Begin Patch\n*** Update File: names.txt\n@@\n-one\n+ONE\n*** Add File: {path}\n+x\n*** End Patch\n"
    with pytest.raises(ToolRefused):
        await call(apply_patch, patch=section)
    assert files(workspace) == {"names.txt": b"one\ntwo\n"}
    assert list(workspace.iterdir()) == [workspace / "names.txt"]


@pytest.mark.parametrize("change", ["Delete File: link", "Update File: link\n*** Move to: b.txt"])
async def test_a_link_is_not_taken_for_the_file_that_it_leads_to(change: str, workspace: Path, call: Call) -> None:
    put(workspace, "sub/a.txt", b"a\n")
    (workspace / "link").symlink_to("sub/a.txt")
    with pytest.raises(ToolRefused, match=r"link is a link to sub/a.txt: name that one, or remove the link with bash"):
        await call(apply_patch, patch=f"*** Begin Patch\n*** {change}\n*** End Patch\n")
    await call(apply_patch, patch="*** Begin Patch\n*** Update File: link\n@@\n-a\n+b\n*** End Patch\n")
    assert (workspace / "link").is_symlink()
    assert (workspace / "sub/a.txt").read_bytes() == b"b\n"


async def test_when_one_file_cannot_be_written_all_stay_as_they_were(workspace: Path, call: Call) -> None:
    put(workspace, "a.txt", b"a\n")
    put(workspace, "b.txt", b"b\n")
    (workspace / "c").mkdir()
    sections = [
        "Update File: a.txt\n@@\n-a\n+A",
        "Add File: new/deep/x.txt\n+x",
        "Delete File: b.txt",
        "Add File: c\n+c",
    ]
    with pytest.raises(ToolRefused, match="c is a folder"):
        await call(apply_patch, patch="*** Begin Patch\n*** " + "\n*** ".join(sections) + "\n*** End Patch\n")
    assert files(workspace) == {"a.txt": b"a\n", "b.txt": b"b\n"}
    assert sorted(path.name for path in workspace.iterdir()) == ["a.txt", "b.txt", "c"]
