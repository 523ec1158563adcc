"""`edit`: an old text becomes a new one, and nothing else changes."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.tools.edit import MAX_PLACES, edit
from denizen.tools.files.changes import MAX_FILE_BYTES

Call = Callable[..., Awaitable[ToolResult]]
PROGRAM = "def f():\n    if x:\n        return 1\n    return 2\n"


async def test_a_text_that_occurs_once_is_replaced(workspace: Path, call: Call) -> None:
    (workspace / "a.py").write_text(PROGRAM)
    result = await call(edit, path="a.py", old="return 1", new="return one")
    assert (workspace / "a.py").read_text() == PROGRAM.replace("return 1", "return one")
    assert result.text == "Edited a.py, line 3"
    assert result.details == {
        "path": "a.py",
        "diff": "@@ -1,4 +1,4 @@\n def f():\n     if x:\n-        return 1\n+        return one\n     return 2",
        "added": 1,
        "removed": 1,
    }


async def test_more_than_one_occurrence_is_ambiguous(workspace: Path, call: Call) -> None:
    (workspace / "a.py").write_text(PROGRAM)
    with pytest.raises(ToolRefused, match=r"a\.py has this text 2 times, at lines 3, 4: give more"):
        await call(edit, path="a.py", old="return", new="yield")
    assert (workspace / "a.py").read_text() == PROGRAM


async def test_overlapping_occurrences_are_ambiguous_too(workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text("aaa\n")
    with pytest.raises(ToolRefused, match="2 times"):
        await call(edit, path="a.txt", old="aa", new="b")


async def test_all_replaces_every_occurrence(workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text("aaa a\n" * 20)
    result = await call(edit, path="a.txt", old="a", new="b", all=True)
    assert (workspace / "a.txt").read_text() == "bbb b\n" * 20
    assert result.text == "Edited a.txt, 80 places: lines 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, …"


async def test_a_text_that_is_nearly_everywhere_is_refused(workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text("a" * (MAX_PLACES + 1))
    with pytest.raises(ToolRefused, match=f"more than {MAX_PLACES} times"):
        await call(edit, path="a.txt", old="a", new="b", all=True)


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"one\r\ntwo\r\nthree\r\n", "one\ntwo\n", "1\n2\n2.5\n", b"1\r\n2\r\n2.5\r\nthree\r\n"),
        (b"one\r\ntwo\r\nthree\r\n", "one\r\ntwo", "1\r\n2", b"1\r\n2\r\nthree\r\n"),
        (b"one\r\ntwo\nthree\r\n", "two", "2\n2.5", b"one\r\n2\n2.5\nthree\r\n"),
        (b"one\r\ntwo", "two", "2\n3", b"one\r\n2\r\n3"),
        (b"\xef\xbb\xbfone\n", "one", "1", b"\xef\xbb\xbf1\n"),
        ("eins\nzwö\n".encode("utf-16"), "zwö", "drü", "eins\ndrü\n".encode("utf-16")),
        (b"caf\xe9\n\x93q\x94\n", "café", "thé", b"th\xe9\n\x93q\x94\n"),
        ("naïve\n".encode() + b"\xff\n", "naïve", "naïf", "naïf\n".encode() + b"\xff\n"),
        (b"one\rtwo\r", "two", "2\n3", b"one\r2\n3\r"),
    ],
    ids=["crlf", "asked with crlf", "mixed", "open end", "mark", "utf-16", "latin-1", "a broken byte", "old mac"],
)
async def test_line_ends_and_encoding_are_kept(
    before: bytes, old: str, new: str, after: bytes, *, workspace: Path, call: Call
) -> None:
    (workspace / "a.txt").write_bytes(before)
    await call(edit, path="a.txt", old=old, new=new)
    assert (workspace / "a.txt").read_bytes() == after


async def test_a_sign_that_the_encoding_does_not_have_is_refused(workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(ToolRefused, match=r"a.txt is written in latin-1, which has no '\\u0436'"):
        await call(edit, path="a.txt", old="café", new="ж")
    assert (workspace / "a.txt").read_bytes() == b"caf\xe9\n"


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        (
            "if x:\n    return 1\n",
            "if y:\n    for z in y:\n        return z\n",
            "def f():\n    if y:\n        for z in y:\n            return z\n    return 2\n",
        ),
        (
            "        if x:\n            return 1",
            "        if y:\n            return 3\n    else: pass",
            "def f():\n    if y:\n        return 3\nelse: pass\n    return 2\n",
        ),
        (
            "\tif x:\n\t\treturn 1",
            "\tif y:\n\t\treturn [\n\t\t\t1]",
            PROGRAM.replace("x:", "y:").replace("1", "[\n            1]"),
        ),
        ("if  x:   \n\n\n        return 1", "if y:\n        return 1", PROGRAM.replace("x:", "y:")),
        ("if x:\n    return 1\n", "", "def f():\n    return 2\n"),
    ],
    ids=["shifted", "shifted the other way", "tabs", "spaces and blank lines", "removed"],
)
async def test_a_text_that_differs_in_white_space_is_found_and_indented_as_it_is_there(
    old: str, new: str, after: str, workspace: Path, call: Call
) -> None:
    (workspace / "a.py").write_text(PROGRAM)
    result = await call(edit, path="a.py", old=old, new=new)
    assert (workspace / "a.py").read_text() == after
    assert result.text.startswith("Edited a.py, lines 2–3, found by ignoring white space:\n@@")


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        ("say “hi” – it’s\n", 'say "hi" - it\'s', 'say "ho" - it\'s', "say “ho” – it’s\n"),
        ("  “a”  and  “b”,\nc\n", 'c "a" and "b"', "", None),
        ("x = ‘a’  # why\ny\n", "x = 'a'\t# why\ny", "x = 'a'\t# why\nz", "x = ‘a’  # why\nz\n"),
        ("ab\u200bc = cafe\u0301\n", "abc = caf\u00e9", "abc = the", "abc = the\n"),
    ],
    ids=["in a line", "not there", "lines", "characters of no width and accents"],
)
async def test_a_text_in_plain_signs_is_found_where_the_file_has_typographic_ones(
    before: str, old: str, new: str, after: str | None, *, workspace: Path, call: Call
) -> None:
    (workspace / "a.txt").write_text(before)
    if after is None:
        with pytest.raises(ToolRefused, match="doesn't contain this text"):
            await call(edit, path="a.txt", old=old, new=new)
    else:
        assert "found by ignoring" in (await call(edit, path="a.txt", old=old, new=new)).text
    assert (workspace / "a.txt").read_text() == (after or before)


async def test_what_is_written_exactly_counts_before_what_looks_like_it(workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text("a – b\na - b\n")
    await call(edit, path="a.txt", old="a - b", new="c")
    assert (workspace / "a.txt").read_text() == "a – b\nc\n"


async def test_what_stays_keeps_the_white_space_that_it_has(workspace: Path, call: Call) -> None:
    (workspace / "a.py").write_text("x  =  {\n    1:   2,\n    10:  3,\n}\n")
    await call(edit, path="a.py", old="x = {\n  1: 2,\n  10: 3,\n}", new="x = {\n  1: 2,\n  10: 4,\n}")
    assert (workspace / "a.py").read_text() == "x  =  {\n    1:   2,\n    10: 4,\n}\n"


@pytest.mark.parametrize("old", ["one\\ntwo", 'say \\"hi\\"', "a &lt; b"])
async def test_a_miss_with_escapes_in_it_says_so(old: str, workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text('one\ntwo\nsay "hi"\na < b\n')
    with pytest.raises(ToolRefused, match="doesn't contain this text; it does without the escapes"):
        await call(edit, path="a.txt", old=old, new="x")


async def test_spaces_become_tabs_where_the_file_has_tabs(workspace: Path, call: Call) -> None:
    (workspace / "a.py").write_bytes(b"def f():\r\n\tif x:\r\n\t\treturn 1\r\n")
    await call(edit, path="a.py", old="  if x:\n    return 1", new="  if y:\n    if z:\n      return 1")
    assert (workspace / "a.py").read_bytes() == b"def f():\r\n\tif y:\r\n\t\tif z:\r\n\t\t\treturn 1\r\n"


async def test_white_space_is_not_ignored_where_more_than_one_place_would_fit(workspace: Path, call: Call) -> None:
    text = "a:\n  go()\n  stop()\nb:\n    go()\n    stop()\n"
    (workspace / "a.txt").write_text(text)
    with pytest.raises(ToolRefused, match="2 times, at lines 2, 5: give more of what is around the one meant, exactly"):
        await call(edit, path="a.txt", old="go()\nstop()", new="x")
    assert (workspace / "a.txt").read_text() == text


async def test_a_part_of_a_line_must_be_exact(workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text("value  =  max(1, 2)\n")
    with pytest.raises(ToolRefused, match="doesn't contain this text"):
        await call(edit, path="a.txt", old="value = max", new="x")


async def test_a_miss_shows_the_nearest_text_with_line_numbers(workspace: Path, call: Call) -> None:
    (workspace / "a.py").write_text("import os\n\n\n" + PROGRAM)
    with pytest.raises(ToolRefused) as refused:
        await call(edit, path="a.py", old="    if x:\n        return True\n", new="x")
    assert "not part of it:\n5\t    if x:\n6\t        return 1\n7\t    return 2" in str(refused.value)
    with pytest.raises(ToolRefused, match="\n4\tdef f"):
        await call(edit, path="a.py", old="def g():", new="x")


async def test_a_miss_with_line_numbers_in_it_says_so(workspace: Path, call: Call) -> None:
    (workspace / "a.py").write_text(PROGRAM)
    with pytest.raises(ToolRefused, match="leave out the line numbers of `read`"):
        await call(edit, path="a.py", old="2\t    if x:\n3\t        return 1", new="x")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("", "x", "`old` is empty"),
        ("x", "x", "nothing to do"),
        ("x\n", "x\r\n", "nothing to do"),
        ("if  x:", "if x:", "already like `new`"),
    ],
)
async def test_an_edit_that_would_change_nothing_is_refused(
    old: str, new: str, why: str, workspace: Path, call: Call
) -> None:
    (workspace / "a.py").write_text(PROGRAM)
    with pytest.raises(ToolRefused, match=why):
        await call(edit, path="a.py", old=old, new=new)


async def test_what_is_no_text_is_refused(workspace: Path, call: Call) -> None:
    (workspace / "a.bin").write_bytes(b"a\0b")
    with pytest.raises(ToolRefused, match=r"a\.bin is binary data"):
        await call(edit, path="a.bin", old="a", new="b")
    with (workspace / "huge.txt").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(ToolRefused, match=r"huge\.txt is too large to edit"):
        await call(edit, path="huge.txt", old="a", new="b")


async def test_a_missing_file_names_the_nearest(workspace: Path, call: Call) -> None:
    (workspace / "main.py").touch()
    with pytest.raises(ToolRefused, match=r"man\.py doesn't exist; the nearest: main\.py"):
        await call(edit, path="man.py", old="a", new="b")
