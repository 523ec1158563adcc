"""`view`: a folder as a tree, a file as its skeleton, a symbol as its source."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.documents import LINE, written

from denizen.errors import ToolRefused
from denizen.messages import Document, Image, Text, ToolResult
from denizen.ports import Tool
from denizen.structure.index import BATCH_FILES
from denizen.testing import ToolConformance
from denizen.text.documents import MOST_SHOWN
from denizen.worlds.code.tools.view import BEGINNING_LINES, MAX_LINES, view_tool

Call = Callable[..., Awaitable[ToolResult]]
DATA = Path(__file__).parents[3] / "data/languages"
FILES = sorted(path.name for path in DATA.iterdir() if path.is_file() and path.name != "README.md")

STORE = """\
LIMIT = 100

# Keeps parts.
@dataclass
class Store(Base):
    size: int = 0

    def add(self, part):
        def check():
            pass

        return part


def load(path):
    return Store()
"""


@pytest.fixture
def view(tmp_path: Path) -> Tool:
    return view_tool(tmp_path / "home")


@pytest.fixture
def store(workspace: Path) -> Path:
    (workspace / "src").mkdir()
    (workspace / "src/store.py").write_text(STORE)
    return workspace


class TestView(ToolConformance):
    @pytest.fixture
    def tool(self, view: Tool) -> Tool:
        return view

    @pytest.fixture
    def args(self) -> dict[str, Any]:
        return {"path": "."}


async def test_a_folder_is_a_tree_with_sizes_and_counts(view: Tool, workspace: Path, call: Call) -> None:
    for name, length in {"a/b/c/deep.py": 10, "a/b/two.py": 5, "a/one.py": 1500, "README.md": 1, "dist/x": 9}.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("x" * length)
    (workspace / ".gitignore").write_text("dist/\n")
    result = await call(view)
    assert result.text == (
        "./  5 files, 1.5 kB\na/  3 files, 1.5 kB\n  b/  2 files, 15 bytes\n  one.py  1.5 kB\n.gitignore  6 bytes\n"
        "README.md  1 byte\n[deeper folders are only counted; more: view ./FOLDER]"
    )
    assert result.details == {"path": ".", "kind": "folder", "files": 5, "bytes": 1522}
    assert "deep.py" in (await call(view, depth=9)).text
    assert (await call(view, path="a/b")).text == (
        "a/b/  2 files, 15 bytes\nc/  1 file, 10 bytes\n  deep.py  10 bytes\ntwo.py  5 bytes"
    )


async def test_a_folder_with_nothing_else_in_it_is_joined_with_what_is(view: Tool, workspace: Path, call: Call) -> None:
    (workspace / "src/main/java/org").mkdir(parents=True)
    (workspace / "src/main/java/org/A.java").touch()
    assert (await call(view)).text == (
        "./  1 file, 0 bytes\nsrc/main/java/org/  1 file, 0 bytes\n  A.java  0 bytes\n"
        "[deeper folders are only counted; more: view ./FOLDER]"
    )


async def test_of_a_crowded_folder_only_some_is_shown(view: Tool, workspace: Path, call: Call) -> None:
    for number in range(1000):
        (workspace / f"{number:04}.txt").touch()
    text = (await call(view)).text
    assert text.endswith("0029.txt  0 bytes\n… 970 more")


@pytest.mark.usefixtures("store")
async def test_a_file_is_its_signatures(view: Tool, call: Call) -> None:
    assert (await call(view, path="src/store.py")).text == (
        "src/store.py  python, 16 lines, 198 bytes\n"
        "1      LIMIT = 100\n"
        "3-12   class Store(Base)\n"
        "6        size: int = 0\n"
        "8-12     def add(self, part)\n"
        "9-10       def check()\n"
        "15-16  def load(path)"
    )


@pytest.mark.usefixtures("store")
async def test_depth_says_how_much_is_seen(view: Tool, call: Call) -> None:
    assert (await call(view, path="src/store.py", depth=1)).text == (
        "src/store.py  python, 16 lines, 198 bytes\n"
        "1      LIMIT = 100\n"
        "3-12   class Store(Base)  (+3)\n"
        "15-16  def load(path)\n"
        "[3 symbols left out; more: view src/store.py/SYMBOL]"
    )
    assert (await call(view, path="src/store.py/Store", depth=1)).text == (
        "src/store.py/Store  lines 3-12\n3-12  class Store(Base)  (+3)\n[3 symbols left out]"
    )


@pytest.mark.usefixtures("store")
async def test_types_alone(view: Tool, call: Call) -> None:
    types = "3-12  class Store(Base)\n6       size: int = 0\n8-12    def add(self, part)"
    alone = await call(view, path="src/store.py", types_only=True)
    assert alone.text == f"src/store.py  python, 16 lines, 198 bytes\n{types}"
    below = await call(view, types_only=True)
    assert below.text == "src/store.py\n  " + types.replace("\n", "\n  ")
    assert (await call(view, types_only=True, depth=1)).text == (
        "src/store.py\n  3-12  class Store(Base)\n"
        "[2 symbols left out; more: view a folder or a file of it, types_only=true]"
    )


@pytest.mark.parametrize(
    "path",
    [
        "src/store.py/Store/add",
        "src/store.py/Store.add",
        "src/store.py/Store::add",
        "src/store.py/add",
        "src/store.py/Store/add@8",
        "Store/add",
        "Store.add",
        "add",
        "ADD",
        "store.Store.add",
        "src/Store/add",
        "src/store.py/Store/add/",
    ],
)
@pytest.mark.usefixtures("store")
async def test_a_symbol_is_its_source(path: str, view: Tool, call: Call) -> None:
    assert (await call(view, path=path)).text == (
        "src/store.py/Store/add  method, lines 8-12\n"
        "8\t    def add(self, part):\n9\t        def check():\n10\t            pass\n11\t\n12\t        return part"
    )


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("src/store.py/Stor", "src/store.py has no symbol 'Stor'; the nearest: Store"),
        ("src/store.py/zzzz", "src/store.py has no symbol 'zzzz'$"),
        ("src/sto.py", "src/sto.py doesn't exist; the nearest: src/store.py; the code has no symbol 'sto.py'"),
        ("laod", "laod doesn't exist; the code has no symbol 'laod'; the nearest: load"),
        ("../x", "leads out of the workspace"),
        ("", "an empty path"),
    ],
)
@pytest.mark.usefixtures("store")
async def test_what_is_not_there_is_refused_with_what_is_near(path: str, why: str, view: Tool, call: Call) -> None:
    with pytest.raises(ToolRefused, match=why):
        await call(view, path=path)


async def test_symbols_of_one_name_are_all_shown_or_named(view: Tool, workspace: Path, call: Call) -> None:
    (workspace / "a.py").write_text("def f(): return 1\n")
    (workspace / "b.py").write_text("def f(): return 2\n")
    assert (await call(view, path="f")).text == (
        "a.py/f  function, lines 1\n1\tdef f(): return 1\nb.py/f  function, lines 1\n1\tdef f(): return 2"
    )
    for name in ("a.py", "b.py"):
        (workspace / name).write_text("def f():\n" + "    x = 1\n" * 80)
    assert (await call(view, path="f")).text == (
        "a.py/f@1  def f()\nb.py/f@1  def f()\n[2 symbols of this name; view one of them]"
    )
    assert "a.py/f  function, lines 1-81" in (await call(view, path="a.py/f@1")).text


async def test_a_file_wins_over_a_symbol_of_its_name(view: Tool, workspace: Path, call: Call) -> None:
    (workspace / "store").mkdir()
    (workspace / "store/a.py").write_text("def store(): pass\n")
    assert (await call(view, path="store")).text.startswith("store/  1 file")
    assert (await call(view, path="store/store")).text.startswith("store/a.py/store  function")


async def test_a_definition_wins_over_what_speaks_of_it(view: Tool, workspace: Path, call: Call) -> None:
    shutil.copy(DATA / "store.rs", workspace)
    text = (await call(view, path="store.rs/Part")).text
    assert text.startswith("store.rs/Part  struct, lines 29-34\n")
    assert text == (await call(view, path="Part")).text
    assert "impl" not in text
    assert (await call(view, path="store.rs/Part@53")).text.startswith("store.rs/Part  impl, lines 53-57\n")


async def test_lines_of_any_text(view: Tool, workspace: Path, call: Call) -> None:
    (workspace / "notes.txt").write_text("".join(f"line {n}\n" for n in range(1, 1001)))
    assert (await call(view, path="notes.txt", lines="2-3")).text == "2\tline 2\n3\tline 3"
    assert (await call(view, path="notes.txt", lines="1000-2000")).text == "1000\tline 1000"
    assert (await call(view, path="notes.txt", lines="7")).text == "7\tline 7"
    assert (await call(view, path="notes.txt", lines="5-")).text.count("\n") == MAX_LINES - 1
    for wrong, why in {"x": "isn't like 10-20", "5-4": "before it begins", "1001": "has no line 1001"}.items():
        with pytest.raises(ToolRefused, match=why):
            await call(view, path="notes.txt", lines=wrong)
    with pytest.raises(ToolRefused, match="is not a file"):
        await call(view, lines="1-2")


@pytest.mark.parametrize("name", FILES)
async def test_files_of_every_language(name: str, view: Tool, workspace: Path, call: Call) -> None:
    shutil.copy(DATA / name, workspace)
    text = (await call(view, path=name)).text
    symbols = (DATA / "expected" / f"{name}.txt").read_text().partition("\n\n")[0].splitlines()
    assert len(text.splitlines()) == len(symbols) + 1
    last = symbols[-1].split(" | ")[0].split()[-1]
    assert (await call(view, path=f"{name}/{last}")).text.startswith(f"{name}/{last}  ")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "a.py  python, 0 bytes\n[the file is empty]"),
        (b"# nothing yet\n", "a.py  python, 1 lines, 14 bytes\n1\t# nothing yet"),
        (
            b"def f(:\n    pass\n\ndef g():\n    pass\n",
            """a.py  python, 5 lines, 36 bytes
[it breaks the grammar at line 1; some symbols may be missing]
1-2  def f
4-5  def g()""",
        ),
        ("# é\ndef é(): pass\n".encode("latin-1"), "a.py  python, 2 lines, 18 bytes\n1-2  def é()"),
        ("def é(): pass\n".encode("utf-16"), "a.py  python, 1 lines, 30 bytes\n1  def é()"),
        (b"\xef\xbb\xbfdef f(): pass\r\n", "a.py  python, 1 lines, 18 bytes\n1  def f()"),
    ],
    ids=["empty", "no symbols", "broken", "latin-1", "utf-16", "mark"],
)
async def test_files_that_are_not_plain_programs(
    data: bytes, text: str, view: Tool, workspace: Path, call: Call
) -> None:
    (workspace / "a.py").write_bytes(data)
    assert (await call(view, path="a.py")).text == text


async def test_binary_data_is_refused(view: Tool, workspace: Path, call: Call) -> None:
    (workspace / "a.py").write_bytes(b"x = 1\n\0\0")
    for path in ("a.py", "a.py/x"):
        with pytest.raises(ToolRefused, match=r"a\.py is binary data \(8 bytes\), not text"):
            await call(view, path=path)
    with pytest.raises(ToolRefused, match="is binary data"):
        await call(view, path="a.py", lines="1-2")


async def test_pictures_and_pages_of_pdf_documents_are_seen(view: Tool, workspace: Path, call: Call) -> None:
    (workspace / "book.pdf").write_bytes(written(pages=60))
    (workspace / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    _, picture = (await call(view, path="a.png")).content
    assert picture == Image("image/png", b"\x89PNG\r\n\x1a\n")
    first = await call(view, path="book.pdf")
    assert first.text.endswith(f"pages 1 to {MOST_SHOWN} of 60; to go on: view book.pdf lines={MOST_SHOWN + 1}-")
    about, pages = (await call(view, path="book.pdf", lines="59-")).content
    assert isinstance(about, Text)
    assert about.text.endswith("pages 59 to 60 of 60")
    assert isinstance(pages, Document)
    assert LINE in pages.text
    assert (await call(view, path="book.pdf", jq=".last")).text == str(MOST_SHOWN)


async def test_a_very_large_file_is_seen_by_lines(view: Tool, workspace: Path, call: Call) -> None:
    (workspace / "a.py").write_text("x = 1\n" * 900_000)
    text = (await call(view, path="a.py")).text
    assert text.startswith("a.py  5.4 MB\n[over 1.0 MB, too large to parse]\n1\tx = 1\n")
    assert text.endswith(f"\n[more: view a.py lines={BEGINNING_LINES + 1}-{BEGINNING_LINES + 100}]")
    assert (await call(view, path="a.py", lines="899999-900000")).text == "899999\tx = 1\n900000\tx = 1"
    with pytest.raises(ToolRefused, match=r"a\.py \(over 1\.0 MB, too large to parse\) has no symbol 'x'"):
        await call(view, path="a.py/x")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("app.use", "app/use"),
        ("Router.prototype.run", "Router/run"),
        ("exports.load", "load"),
        ("module.exports.save", "save"),
    ],
)
async def test_names_as_signatures_print_them_can_be_asked_for(
    name: str, path: str, view: Tool, workspace: Path, call: Call
) -> None:
    line = f"{name} = function () {{ return 1 }};"
    (workspace / "lib").mkdir()
    (workspace / "lib/app.js").write_text(f"{line}\n")
    for asked in (f"lib/app.js/{name}", f"lib/app.js/{path}", name, f"lib/{name}"):
        assert (
            await call(view, path=asked)
        ).text == f"lib/app.js/{path}  {'method' if '/' in path else 'function'}, lines 1\n1\t{line}"


async def test_text_without_a_known_structure_begins(view: Tool, workspace: Path, call: Call) -> None:
    (workspace / "notes.md").write_text("# Notes\n")
    assert (await call(view, path="notes.md")).text == (
        "notes.md  1 lines, 8 bytes\n[its structure isn't known]\n1\t# Notes"
    )


async def test_a_file_with_very_many_symbols_is_cut(view: Tool, workspace: Path, call: Call) -> None:
    (workspace / "a.py").write_text("".join(f"class C{n}:\n    x = 1\n    def f(self): pass\n" for n in range(100)))
    text = (await call(view, path="a.py")).text
    assert text.endswith("class C99  (+2)\n[200 symbols left out; more: view a.py/SYMBOL]")
    (workspace / "a.py").write_text("".join(f"def f{n}(): pass\n" for n in range(1000)))
    assert "[850 symbols left out" in (await call(view, path="a.py")).text


async def test_a_long_symbol_says_how_to_go_on(view: Tool, workspace: Path, call: Call) -> None:
    (workspace / "a.py").write_text("def f():\n" + "    x = 1\n" * 1000)
    text = (await call(view, path="a.py/f")).text
    assert text.endswith("\n400\t    x = 1\n[601 lines left out; more: view a.py lines=401-1001]")


@pytest.mark.parametrize(
    ("args", "jq", "text"),
    [
        ({}, '.entries[] | select(.kind == "file") | .path', "src/store.py"),
        ({"path": "src/store.py"}, '.symbols[] | select(.kind == "method") | .path', "Store/add"),
        ({"path": "src/store.py"}, "[.language, .lines]", '["python",16]'),
        ({"path": "src/store.py/Store"}, "[.first, .last, .doc]", '[3,12,"Keeps parts."]'),
        ({"path": "load"}, ".file, .source", "src/store.py\ndef load(path):\n    return Store()"),
        ({"types_only": True}, ".symbols[].name", "Store\nsize\nadd"),
        ({"path": "src/store.py", "lines": "1-1"}, ".text[]", "LIMIT = 100"),
    ],
)
@pytest.mark.usefixtures("store")
async def test_filters_see_all_that_was_found(args: dict[str, Any], jq: str, text: str, view: Tool, call: Call) -> None:
    assert (await call(view, **args, jq=jq)).text == text


async def test_the_index_follows_the_files_and_gitignore(view: Tool, store: Path, call: Call) -> None:
    assert (await call(view, path="load")).text.startswith("src/store.py/load")
    (store / "src/store.py").write_text("def save(): pass\n")
    (store / ".gitignore").write_text("made/\n")
    for folder in ("made", "node_modules"):
        (store / folder).mkdir()
        (store / folder / "x.py").write_text("def save(): pass\n")
    assert (await call(view, path="save")).text == "src/store.py/save  function, lines 1\n1\tdef save(): pass"
    with pytest.raises(ToolRefused, match="the code has no symbol 'load'"):
        await call(view, path="load")


async def test_a_long_wait_for_the_index_is_shown(view: Tool, workspace: Path, shown: list[str], call: Call) -> None:
    for number in range(BATCH_FILES + 1):
        (workspace / f"m{number}.py").write_text(f"def f{number}(): pass\n")
    await call(view, path="f7")
    assert shown == [f"{BATCH_FILES} files indexed\n"]


async def test_calls_at_the_same_time_index_once(view: Tool, workspace: Path, shown: list[str], call: Call) -> None:
    for number in range(BATCH_FILES + 1):
        (workspace / f"m{number}.py").write_text(f"def f{number}(): pass\n")
    answers = await asyncio.gather(*(call(view, path=f"f{number}") for number in range(4)))
    assert [answer.text.split()[0] for answer in answers] == [f"m{number}.py/f{number}" for number in range(4)]
    assert shown == [f"{BATCH_FILES} files indexed\n"]


async def test_links_that_lead_out_are_not_followed(view: Tool, store: Path, tmp_path: Path, call: Call) -> None:
    (tmp_path / "secret.py").write_text("def secret(): pass\n")
    (store / "link.py").symlink_to(tmp_path / "secret.py")
    for path in ("link.py", "link.py/secret"):
        with pytest.raises(ToolRefused, match="leads out of the workspace"):
            await call(view, path=path)
    with pytest.raises(ToolRefused, match="has no symbol 'secret'"):
        await call(view, path="secret")


async def test_the_index_stays_out_of_the_workspace(view: Tool, store: Path, tmp_path: Path, call: Call) -> None:
    await call(view, path="load")
    assert sorted(path.name for path in store.iterdir()) == ["src"]
    assert list((tmp_path / "home/projects").glob("workspace-*/index.db"))
