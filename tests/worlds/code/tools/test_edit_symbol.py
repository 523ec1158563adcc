"""`edit_symbol`: code changed by symbol, put where it fits, and never written where it breaks the grammar."""

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import Tool, Traits
from denizen.structure import Symbol, language_of, outline
from denizen.testing import ToolConformance
from denizen.worlds.code.tools.edit_symbol import edit_symbol

Call = Callable[..., Awaitable[ToolResult]]
DATA = Path(__file__).parents[3] / "data/languages"
FILES = sorted(path.name for path in DATA.iterdir() if path.is_file() and path.name != "README.md")

STORE = """\
LIMIT = 100
SIZE = 1


# Keeps parts.
@dataclass
class Store(Base):
    size: int = 0

    def add(self, part):
        return part

    @property
    def full(self):
        return False


def load(path):
    return Store()


if __name__ == "__main__":
    load("parts")
"""
FULL = "    @property\n    def full(self):\n        return False\n"
ADD = "    def add(self, part):\n        return part\n"
LOAD = "def load(path):\n    return Store()\n"


@pytest.fixture
def store(workspace: Path) -> Path:
    path = workspace / "store.py"
    path.write_text(STORE)
    return path


class TestEditSymbol(ToolConformance):
    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Path:
        (tmp_path / "store.py").write_text(STORE)
        return tmp_path

    @pytest.fixture
    def tool(self) -> Tool:
        return edit_symbol

    @pytest.fixture
    def args(self) -> dict[str, Any]:
        return {"target": "store.py/load", "action": "replace", "content": "def load(path):\n    return 1\n"}


def test_it_writes_and_goes_by_the_name_edit_in_commands() -> None:
    assert edit_symbol.traits == Traits.WRITES
    assert edit_symbol.shell_names == ("edit",)


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("Store/add", f"{ADD}\n"),
        ("Store/full", f"\n{FULL}"),
        ("SIZE", "SIZE = 1\n"),
        ("load", f"{LOAD}\n\n"),
        ("Store", STORE[STORE.index("# Keeps") : STORE.index("def load")]),
        ("Store/size", "    size: int = 0\n\n"),
    ],
)
async def test_deleting_leaves_the_rest_as_it_was(name: str, gone: str, store: Path, call: Call) -> None:
    await call(edit_symbol, target=f"store.py/{name}", action="delete")
    assert store.read_text() == STORE.replace(gone, "", 1)


@pytest.mark.parametrize(
    "content",
    [
        "def add(self, part):\n    check(part)\n",
        "    def add(self, part):\n        check(part)",
        "def add(self, part):\n        check(part)\n",
        "\n\ndef add(self, part):\n\tcheck(part)\n\n",
        "def add(self, part):\r\n    check(part)\r\n",
    ],
    ids=["by itself", "as it is there", "the first line by itself", "tabs", "crlf"],
)
async def test_a_replacement_is_indented_as_it_is_there(content: str, store: Path, call: Call) -> None:
    result = await call(edit_symbol, target="store.py/Store/add", action="replace", content=content)
    assert store.read_text() == STORE.replace("return part", "check(part)")
    assert result.text == "Replaced store.py/Store/add, lines 10-11"
    assert result.details["path"] == "store.py"
    assert (result.details["added"], result.details["removed"]) == (1, 1)


@pytest.mark.parametrize(
    ("file", "above", "code"),
    [
        ("a.py", "# Adds.\n# Twice.\n@cache\n@limit(\n    1,\n)\n", "def f():\n    return {}\n"),
        ("a.py", "# -*- coding: utf-8 -*-\n", "def f():\n    return {}\n"),
        ("a.js", "/* Copyright 2020 A. Author */\n", "function f() {{\n    return {};\n}}\n"),
        ("a.ts", "/** Adds. */\n@sealed\n", "export class f {{\n    x = {}\n}}\n"),
        ("a.rs", "/// Adds.\n#[inline]\n", "fn f() -> i32 {{\n    {}\n}}\n"),
        ("a.java", "/**\n * Adds.\n */\n@Deprecated @Other(1) ", "class f {{\n    int x = {};\n}}\n"),
    ],
)
async def test_a_replacement_keeps_what_is_above_and_not_given(
    file: str, above: str, code: str, workspace: Path, call: Call
) -> None:
    (workspace / file).write_text(above + code.format(1))
    await call(edit_symbol, target=f"{file}/f", action="replace", content=code.format(2))
    assert (workspace / file).read_text() == above + code.format(2)


@pytest.mark.parametrize(
    ("content", "text", "said"),
    [
        (
            "# New.\ndef f(): 2",
            "# New.\n@one\n@two\ndef f(): 2\n",
            "; kept above it: @one, @two; removed from above it: # Old.",
        ),
        ("@two\ndef f(): 2", "# Old.\n@two\ndef f(): 2\n", "; kept above it: # Old.; removed from above it: @one"),
        (
            "def g(): 1\n\n\ndef f(): 2",
            "def g(): 1\n\n\n# Old.\n@one\n@two\ndef f(): 2\n",
            "; kept above it: # Old., @one, @two",
        ),
        (
            "def g(): 1\n\n\ndef h(): 2",
            "def g(): 1\n\n\ndef h(): 2\n",
            "; removed from above it: # Old., @one, @two",
        ),
    ],
    ids=["comments given", "decorators given", "more functions", "other functions"],
)
async def test_replacing_reports_what_was_kept_and_removed_above(
    content: str, text: str, said: str, workspace: Path, call: Call
) -> None:
    (workspace / "a.py").write_text("# Old.\n@one\n@two\ndef f(): 1\n")
    result = await call(edit_symbol, target="a.py/f", action="replace", content=content)
    assert (workspace / "a.py").read_text() == text
    assert result.text == f"Replaced a.py/f, lines 1-4{said}"


async def test_a_licence_is_not_deleted_with_the_first_symbol(workspace: Path, call: Call) -> None:
    (workspace / "a.py").write_text("# SPDX-License-Identifier: MIT\n# By A. Author\ndef f(): 1\n")
    await call(edit_symbol, target="a.py/f", action="delete")
    assert (workspace / "a.py").read_text() == "# SPDX-License-Identifier: MIT\n# By A. Author\n"


async def test_text_over_several_lines_stays_what_it_is(store: Path, call: Call) -> None:
    content = 'def add(self, part):\n    """Adds.\n\n    One.\n    """\n    return """\nas it\n  is"""\n'
    await call(edit_symbol, target="store.py/Store/add", action="replace", content=content)
    assert (
        '    def add(self, part):\n        """Adds.\n\n        One.\n        """\n        return """\nas it\n  is"""\n'
        in store.read_text()
    )


@pytest.mark.parametrize(
    ("target", "args", "expected"),
    [
        (
            "Store/add",
            {"content": "def new(self):\n    pass"},
            f"{ADD}\n    def new(self):\n        pass\n\n    @property",
        ),
        (
            "Store/add",
            {"content": "def new(self):\n    pass", "before": True},
            f"0\n\n    def new(self):\n        pass\n\n{ADD}",
        ),
        (
            "Store/full",
            {"content": "def new(self):\n    pass"},
            f"{FULL}\n    def new(self):\n        pass\n\n\ndef load",
        ),
        ("SIZE", {"content": "NEW = 1"}, "SIZE = 1\nNEW = 1\n\n\n# Keeps"),
        ("SIZE", {"content": "NEW = 1", "before": True}, "LIMIT = 100\nNEW = 1\nSIZE = 1\n"),
        ("Store/size", {"content": "new: int = 1"}, "    size: int = 0\n    new: int = 1\n\n    def add"),
        (
            "Store",
            {"content": "def new():\n    pass", "before": True},
            "SIZE = 1\n\n\ndef new():\n    pass\n\n\n# Keeps",
        ),
        (
            "load",
            {"content": "def new():\n    pass", "after": True},
            f"{LOAD}\n\ndef new():\n    pass\n\n\nif __name__",
        ),
        ("", {"content": "def new():\n    pass"}, '    load("parts")\n\n\ndef new():\n    pass\n'),
        ("", {"content": "import os", "before": True}, "import os\n\n\nLIMIT = 100\n"),
    ],
)
async def test_insertions_are_separated_like_their_neighbours(
    target: str, args: dict[str, Any], expected: str, store: Path, call: Call
) -> None:
    await call(edit_symbol, target=f"store.py/{target}", action="insert", **args)
    assert expected in store.read_text()
    assert len(store.read_text()) > len(STORE)


async def test_moving_within_a_file(store: Path, call: Call) -> None:
    result = await call(edit_symbol, target="store.py/load", action="move", content="store.py/Store", before=True)
    without = STORE.replace(f"{LOAD}\n\n", "")
    assert store.read_text() == without.replace("# Keeps", f"{LOAD}\n\n# Keeps")
    assert result.text == ("Moved store.py/load, lines 18-19 before store.py/Store; imports and callers are unchanged")


async def test_moving_to_another_file_changes_both(store: Path, workspace: Path, call: Call) -> None:
    other = workspace / "other.py"
    other.write_text("class Other:\n    def first(self):\n        pass\n")
    result = await call(edit_symbol, target="store.py/Store/full", action="move", content="other.py/Other/first")
    assert store.read_text() == STORE.replace(f"\n{FULL}", "")
    assert other.read_text() == f"class Other:\n    def first(self):\n        pass\n\n{FULL}"
    assert [file["path"] for file in result.details["files"]] == ["store.py", "other.py"]


async def test_moving_to_another_file_changes_both_or_none(store: Path, workspace: Path, call: Call) -> None:
    (workspace / "only.py").write_text("class Only:\n    def one(self):\n        pass\n")
    with pytest.raises(ToolRefused, match=r"would break the grammar of only\.py"):
        await call(edit_symbol, target="only.py/Only/one", action="move", content="store.py/load")
    assert store.read_text() == STORE


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (
            {"target": "store.py/Store/add", "content": "def add(self:\n    pass"},
            "break the grammar of store.py at what",
        ),
        ({"target": "store.py/Store/add", "content": "def add(self):\nreturn 1"}, "expected an indented block"),
        ({"target": "store.py/Store/add", "content": "  "}, "replace needs content"),
        ({"target": "store.py/Store/add", "content": ADD}, "is already like that"),
        ({"target": "store.py/Stor"}, "store.py has no symbol 'Stor'; the nearest: Store"),
        ({"target": "stor.py/Store"}, "stor.py doesn't exist; the nearest: store.py"),
        ({"target": "store.py"}, "store.py is a file; name the symbol in it"),
        ({"target": "."}, "is a folder; name FILE/SYMBOL"),
        ({"target": "../x.py/f"}, "leads out of the workspace"),
        ({"target": ".git/x.py/f"}, "doesn't exist"),
        ({"target": "store.py/load", "before": True, "after": True}, "can't be both"),
        ({"target": "store.py/load", "action": "delete", "content": "x"}, "delete takes no content"),
        ({"target": "store.py/load", "action": "move", "content": ""}, "move needs a destination"),
        ({"target": "store.py/Store", "action": "move", "content": "store.py/Store/add"}, "inside of itself"),
        ({"target": "store.py/load", "action": "move", "content": "store.rs"}, "written in rust, not in python"),
        ({"target": "notes.md/x"}, "the structure of notes.md isn't known"),
        ({"target": "store.py/load", "jq": ".["}, "the jq filter"),
    ],
)
async def test_refusals_say_why_and_write_nothing(
    args: dict[str, Any], why: str, store: Path, workspace: Path, call: Call
) -> None:
    (workspace / "notes.md").write_text("# x\n")
    (workspace / "store.rs").write_text("fn f() {}\n")
    with pytest.raises(ToolRefused, match=why):
        await call(edit_symbol, **{"action": "replace", "content": "x = 1", **args})
    assert store.read_text() == STORE or "jq" in args


async def test_of_several_symbols_of_one_name_the_line_says_which(workspace: Path, call: Call) -> None:
    path = workspace / "a.py"
    path.write_text("if x:\n    def f(): return 1\nelse:\n    def f(): return 2\n")
    with pytest.raises(ToolRefused, match="has 'f' 2 times; say which: f@2, f@4"):
        await call(edit_symbol, target="a.py/f", action="replace", content="def f(): return 3")
    await call(edit_symbol, target="a.py/f@4", action="replace", content="def f(): return 3")
    assert path.read_text() == "if x:\n    def f(): return 1\nelse:\n    def f(): return 3\n"


@pytest.mark.parametrize(
    ("name", "text"), [("a.py", "a = 1; b = 2\n"), ("a.go", "package x\nvar a, b int\n"), ("a.c", "enum x { a, b };\n")]
)
async def test_a_symbol_that_shares_its_line_is_left_alone(name: str, text: str, workspace: Path, call: Call) -> None:
    (workspace / name).write_text(text)
    with pytest.raises(ToolRefused, match=r"shares line \d with other code"):
        await call(edit_symbol, target=f"{name}/a", action="delete")
    assert (workspace / name).read_text() == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"x = 1\r\ndef f():\r\n    pass\r\n", b"x = 1\r\ndef f():\r\n    return 1\r\n"),
        (b"\xef\xbb\xbfdef f():\n    pass", b"\xef\xbb\xbfdef f():\n    return 1"),
        (b"# caf\xe9\n\ndef f():\n    pass\n", b"# caf\xe9\n\ndef f():\n    return 1\n"),
        (b"x = 1\r\ny = 2\ndef f():\n    pass\n", b"x = 1\r\ny = 2\ndef f():\n    return 1\n"),
        (b"def f():\n\tpass\n", b"def f():\n\treturn 1\n"),
    ],
    ids=["crlf", "mark, open end", "latin-1", "mixed", "tabs"],
)
async def test_the_file_is_written_as_it_was(text: bytes, expected: bytes, workspace: Path, call: Call) -> None:
    (workspace / "a.py").write_bytes(text)
    await call(edit_symbol, target="a.py/f", action="replace", content="def f():\n    return 1\n")
    assert (workspace / "a.py").read_bytes() == expected


async def test_a_file_that_is_broken_already_can_be_fixed(workspace: Path, call: Call) -> None:
    path = workspace / "a.py"
    path.write_text("def f(:\n    pass\n\ndef g():\n    pass\n")
    result = await call(edit_symbol, target="a.py/g", action="delete")
    assert "broke the grammar before, and still does" in result.text
    await call(edit_symbol, target="a.py/f", action="replace", content="def f():\n    pass\n")
    assert path.read_text() == "def f():\n    pass\n"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "a.py has no symbol 'f'"),
        (b"def f(): pass\n\0\0", "is binary data"),
        (b"def f(): pass\n" * 360_000, r"a\.py is too large to parse \(over 1 MB\); change it with apply_patch"),
    ],
    ids=["empty", "binary", "5 MB"],
)
async def test_files_without_a_structure_are_refused(data: bytes, why: str, workspace: Path, call: Call) -> None:
    (workspace / "a.py").write_bytes(data)
    with pytest.raises(ToolRefused, match=why):
        await call(edit_symbol, target="a.py/f", action="delete")
    assert (workspace / "a.py").read_bytes() == data


async def test_an_empty_file_is_begun(workspace: Path, call: Call) -> None:
    (workspace / "a.py").touch()
    await call(edit_symbol, target="a.py", action="insert", content="def f():\n    pass")
    assert (workspace / "a.py").read_text() == "def f():\n    pass\n"


async def test_newer_python_than_ours_is_not_held_against_it(workspace: Path, call: Call) -> None:
    (workspace / "a.py").write_text("type New[T] = list[T]\n\ndef f():\n    pass\n")
    await call(edit_symbol, target="a.py/f", action="delete")
    assert (workspace / "a.py").read_text() == "type New[T] = list[T]\n"


async def test_a_filter_sees_what_was_changed(store: Path, call: Call) -> None:
    result = await call(edit_symbol, target="store.py/SIZE", action="delete", jq=".removed, .path")
    assert result.text == "1\nstore.py"
    assert "SIZE" not in store.read_text()


def symbols_of(name: str) -> list[Symbol]:
    return [*outline((DATA / name).read_bytes(), language_of(name)).symbols]


def alone(name: str) -> list[Symbol]:
    """The symbols that have their lines, and their names, to themselves."""
    symbols, lines = symbols_of(name), (DATA / name).read_text().splitlines()
    found: list[Symbol] = []
    for symbol in symbols:
        text = "\n".join(lines[symbol.first - 1 : symbol.last]).strip()
        source = (DATA / name).read_bytes()[symbol.start : symbol.end].decode()
        same = [each for each in symbols if each.path == symbol.path or each.start == symbol.start]
        if text == source and len(same) == 1:
            found.append(symbol)
    return found


CASES = [(name, symbol) for name in FILES for symbol in alone(name)]


def on_its_own(symbol: Symbol, name: str) -> str:
    return (DATA / name).read_bytes()[symbol.start : symbol.end].decode()


@pytest.mark.parametrize(("name", "symbol"), CASES)
async def test_in_every_language_a_symbol_fits_where_it_is(
    name: str, symbol: Symbol, workspace: Path, call: Call
) -> None:
    shutil.copy(DATA / name, workspace)
    with pytest.raises(ToolRefused, match="is already like that"):
        await call(
            edit_symbol,
            target=f"{name}/{symbol.path}@{symbol.line}",
            action="replace",
            content=on_its_own(symbol, name),
        )


@pytest.mark.parametrize(("name", "symbol"), CASES)
async def test_in_every_language_deleting_takes_one_symbol_away(
    name: str, symbol: Symbol, workspace: Path, call: Call
) -> None:
    path = workspace / name
    shutil.copy(DATA / name, path)
    every = symbols_of(name)
    inside = {each for each in every if symbol.start <= each.start and each.end <= symbol.end}
    try:
        await call(edit_symbol, target=f"{name}/{symbol.path}@{symbol.line}", action="delete")
    except ToolRefused:  # the only thing in its block: nothing is written
        inside = set()
    left = outline(path.read_bytes(), language_of(name))
    assert [each.path for each in left.symbols] == [each.path for each in every if each not in inside]
    assert not left.problems
