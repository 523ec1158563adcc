"""`read`: text by lines, images, and what is neither."""

import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.documents import PAPER, written

from denizen.errors import DenizenError, ToolRefused
from denizen.messages import Document, Image, Text, ToolResult
from denizen.text.documents import MOST_SHOWN
from denizen.tools.files.media import MAX_IMAGE_BYTES, MAX_PDF_BYTES
from denizen.tools.read import MAX_CHARS, MAX_LINES, read

Call = Callable[..., Awaitable[ToolResult]]
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


async def test_lines_are_numbered(workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text("one\n\n  three\n")
    result = await call(read, path="a.txt")
    assert result.text == "1\tone\n2\t\n3\t  three"
    assert result.details == {"path": "a.txt", "start": 1, "lines": 3, "bytes": 13}


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [(2, 3, "2\tb\n3\tc"), (4, None, "4\td"), (1, 1, "1\ta"), (3, 99, "3\tc\n4\td")],
)
async def test_a_range_of_lines(start: int, end: int | None, text: str, workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text("a\nb\nc\nd")
    assert (await call(read, path="a.txt", start=start, end=end)).text == text


@pytest.mark.parametrize(
    ("start", "end", "why"),
    [
        (5, None, "a.txt has 4 lines; there is none from 5"),
        (3, 2, "`end` .2. is before `start` .3."),
        (0, 2, "`start`"),
    ],
)
async def test_a_range_that_is_not_there(start: int, end: int | None, why: str, workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text("a\nb\nc\nd\n")
    with pytest.raises(ToolRefused, match=why):
        await call(read, path="a.txt", start=start, end=end)


async def test_an_empty_file(workspace: Path, call: Call) -> None:
    (workspace / "a.txt").touch()
    assert (await call(read, path="a.txt")).text == "[the file is empty]"


async def test_a_long_file_says_how_to_go_on_and_does(workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, MAX_LINES + 12)))
    first = await call(read, path="a.txt")
    assert f"\n{MAX_LINES}\tline {MAX_LINES}\n[" in first.text
    assert first.text.endswith(f"to go on: read a.txt start={MAX_LINES + 1}]")
    rest = await call(read, path="a.txt", start=MAX_LINES + 1)
    assert rest.text.startswith(f"{MAX_LINES + 1}\tline {MAX_LINES + 1}\n")
    assert rest.text.endswith(f"line {MAX_LINES + 11}")


async def test_a_file_that_just_fits_needs_no_more(workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text("x\n" * MAX_LINES)
    assert (await call(read, path="a.txt")).text.endswith(f"\n{MAX_LINES}\tx")
    (workspace / "a.txt").write_text("x\n" * (MAX_LINES + 1))
    assert (await call(read, path="a.txt", end=MAX_LINES)).text.endswith(f"\n{MAX_LINES}\tx")


async def test_what_it_shows_stays_below_the_engines_limit(workspace: Path, call: Call) -> None:
    (workspace / "wide.txt").write_text(f"{'x' * 1500}\n" * 100)
    result = await call(read, path="wide.txt")
    assert MAX_CHARS < len(result.text) < 50_000
    shown = result.details["lines"]
    assert f"read wide.txt start={shown + 1}]" in result.text


async def test_very_long_line_is_cut_and_says_how_to_get_the_rest(workspace: Path, call: Call) -> None:
    (workspace / "a b.js").write_text("first\n" + "x" * 2000 + "y" * 5_000_000 + "\nnext\n")
    shown, _, note = (await call(read, path="a b.js")).text.rpartition("\n")
    assert shown == f"1\tfirst\n2\t{'x' * 2000}… [the line goes on]\n3\tnext"
    command = note.removeprefix("[the rest of line 2 with bash: ").removesuffix("]")
    rest = subprocess.run(["bash", "-c", command], cwd=workspace, capture_output=True, check=True, text=True).stdout
    assert rest == "y" * 5_000_000 + "\n"


async def test_only_the_asked_range_of_a_huge_file_is_read(workspace: Path, call: Call) -> None:
    with (workspace / "huge.log").open("wb") as file:
        file.write(b"first\nsecond\n".ljust(10_000, b"."))
        file.truncate(1 << 40)  # a terabyte of nothing: reading on would not end
    assert (await call(read, path="huge.log", end=2)).text == "1\tfirst\n2\tsecond"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"one\r\ntwo\r\n", "1\tone\n2\ttwo"),
        (b"\xef\xbb\xbfone\n", "1\tone"),
        ("häuser\nzwei".encode("utf-16"), "1\thäuser\n2\tzwei"),
        ("häuser".encode("utf-16-be"), None),
        (b"a\x0cb\xc2\x85c\xe2\x80\xa8d\n", "1\ta\x0cb\x85c\u2028d"),
    ],
    ids=["crlf", "utf-8 mark", "utf-16 mark", "utf-16 without", "other separators"],
)
async def test_text_in_other_encodings(data: bytes, text: str | None, workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_bytes(data)
    if text is None:
        with pytest.raises(ToolRefused, match="binary data"):
            await call(read, path="a.txt")
    else:
        assert (await call(read, path="a.txt")).text == text


async def test_invalid_utf8_is_shown_with_replacements_and_reported(workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_bytes(b"caf\xe9\n\xff\xfeok\n")
    result = await call(read, path="a.txt")
    assert result.text == "1\tcaf\ufffd\n2\t\ufffd\ufffdok\n[not valid UTF-8; unreadable bytes, shown as \ufffd: 3]"


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0" + b"\0" * 40, "image/jpeg"),
        (b"GIF89a" + b"\0" * 40, "image/gif"),
        (b"RIFF\x24\0\0\0WEBPVP8 " + b"\0" * 40, "image/webp"),
    ],
)
async def test_images_are_seen_whatever_they_are_called(
    data: bytes, media_type: str, workspace: Path, call: Call
) -> None:
    (workspace / "picture.txt").write_bytes(data)
    result = await call(read, path="picture.txt")
    assert result.content[1] == Image(media_type, data)
    assert result.text == f"picture.txt: {media_type}, {len(data)} bytes"


async def test_an_image_that_no_provider_takes_is_refused(workspace: Path, call: Call) -> None:
    (workspace / "large.png").write_bytes(PNG.ljust(MAX_IMAGE_BYTES + 1, b"\0"))
    with pytest.raises(ToolRefused, match=r"image of 3\.8 MB; at most 3\.8 MB can be seen"):
        await call(read, path="large.png")


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x7fELF\x02\x01", "a program or library"),
        (b"PK\x03\x04zip", "a zip archive"),
        (b"\x1f\x8bgz", "gzip data"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"text\0text", "binary data"),
    ],
)
async def test_binary_files_are_refused_with_kind_and_size(data: bytes, what: str, workspace: Path, call: Call) -> None:
    (workspace / "a.bin").write_bytes(data)
    with pytest.raises(ToolRefused, match=rf"a.bin is {what}.*{len(data)} bytes"):
        await call(read, path="a.bin")


async def test_the_program_for_a_binary_file_is_named(workspace: Path, call: Call) -> None:
    (workspace / "a.gz").write_bytes(b"\x1f\x8bgz")
    with pytest.raises(ToolRefused, match="not text; bash may have zcat for it"):
        await call(read, path="a.gz")


async def test_a_pdf_document_is_seen_whole(workspace: Path, call: Call) -> None:
    (workspace / "a.pdf").write_bytes(PAPER.data)
    result = await call(read, path="a.pdf")
    assert result.content == [Text("a.pdf: PDF document, 907 bytes, pages 1 to 2 of 2"), replace(PAPER, name="a.pdf")]


async def test_a_long_pdf_document_is_seen_by_pages_and_says_how_to_go_on(workspace: Path, call: Call) -> None:
    (workspace / "book.pdf").write_bytes(written(pages=500))
    first = await call(read, path="book.pdf")
    assert first.text.endswith(f"pages 1 to {MOST_SHOWN} of 500; to go on: read book.pdf start={MOST_SHOWN + 1}")
    about, pages = (await call(read, path="book.pdf", start=499)).content
    assert isinstance(about, Text)
    assert about.text.endswith("pages 499 to 500 of 500")
    assert isinstance(pages, Document)
    assert pages.pages == 2
    assert pages.text.startswith("[page 499]\n")
    one = await call(read, path="book.pdf", start=7, end=7)
    assert one.text.endswith("page 7 of 500")
    with pytest.raises(DenizenError, match=r"book.pdf has 500 pages; there is none from 501"):
        await call(read, path="book.pdf", start=501)


@pytest.mark.parametrize(
    ("data", "why"),
    [(PAPER.data[:400], "isn't a PDF document that can be read"), (written(password="secret"), "is encrypted")],
    ids=["damaged", "encrypted"],
)
async def test_a_pdf_document_that_cannot_be_read_is_refused(
    data: bytes, why: str, workspace: Path, call: Call
) -> None:
    (workspace / "a.pdf").write_bytes(data)
    with pytest.raises(DenizenError, match=f"a.pdf {why}"):
        await call(read, path="a.pdf")


async def test_a_huge_pdf_document_is_refused_before_it_is_read(workspace: Path, call: Call) -> None:
    with (workspace / "a.pdf").open("wb") as file:
        file.write(b"%PDF-1.7\n")
        file.truncate(MAX_PDF_BYTES + 1)
    with pytest.raises(ToolRefused, match=r"a.pdf is a PDF document of 100\.0 MB; at most 100\.0 MB"):
        await call(read, path="a.pdf")


async def test_a_folder_points_to_ls(workspace: Path, call: Call) -> None:
    (workspace / "sub").mkdir()
    with pytest.raises(ToolRefused, match="sub is a folder; list it with ls"):
        await call(read, path="sub")
