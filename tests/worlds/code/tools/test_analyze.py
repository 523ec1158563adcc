"""`analyze`: what it says of code in every language, of broken and hostile files, and that it says it briefly."""

import os
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import ToolContext
from denizen.worlds.code.tools.analyze import analyze_tool

ROOT = Path(__file__).parents[4]
DATA = ROOT / "tests" / "data" / "analysis"
BRANCHES = sorted(path.name for path in (DATA / "branches").iterdir())
RISKY = sorted(path.name for path in (DATA / "risky").iterdir())

Analyze = Callable[..., Awaitable[ToolResult]]
Files = dict[str, str]


@pytest.fixture
def analyze(turn: ToolContext, tmp_path: Path) -> Analyze:
    async def run(what: str, path: str = ".", name: str = "", **args: Any) -> ToolResult:
        tool = analyze_tool(tmp_path / "home", os.environ)
        return await tool.run({"what": what, "path": path, "name": name, **args}, turn)

    return run


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a repository of some hundred files, and a home in which its index is kept."""
    folder = tmp_path_factory.mktemp("large")
    built = shutil.ignore_patterns("__pycache__", "assets")
    shutil.copytree(ROOT / "src" / "denizen", folder / "project", ignore=built)
    commit(folder / "project", "init", "-b", "main")
    commit(folder / "project", "add", ".")
    commit(folder / "project", "commit", "-m", "All of it")
    return folder


@pytest.fixture
def write(workspace: Path) -> Callable[[Files], None]:
    def put(files: Files) -> None:
        for name, text in files.items():
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).write_text(text)

    return put


def rows(result: ToolResult) -> list[str]:
    """What was found, without remarks."""
    return [line for line in result.text.splitlines() if not line.startswith("[")]


@pytest.mark.parametrize("file", BRANCHES)
async def test_complexity_and_length_are_known_in_every_language(file: str, workspace: Path, analyze: Analyze) -> None:
    shutil.copy(DATA / "branches" / file, workspace)
    most, least = rows(await analyze("complexity"))
    assert re.match(rf"   4  {re.escape(file)}/(Sorting/)?[Ss]ort_?[Oo]ut:\d+  \d+$", most)
    assert re.match(rf"   1  {re.escape(file)}/(Sorting/)?[Pp]lain:\d+  \d+$", least)
    longest = rows(await analyze("length"))[0]
    assert re.match(r" +\d+  \S+[Ss]ort_?[Oo]ut:\d+  \d+$", longest)


@pytest.mark.parametrize("file", BRANCHES)
async def test_callers_and_callees_are_known_in_every_language(file: str, workspace: Path, analyze: Analyze) -> None:
    shutil.copy(DATA / "branches" / file, workspace)
    plain, sort_out = [re.split("[/:]", row.split()[1])[-2] for row in sorted(rows(await analyze("complexity")))]
    [caller] = rows(await analyze("callers", plain))
    assert re.fullmatch(rf"{re.escape(file)}/(Sorting/)?{sort_out}:\d+", caller)
    assert f"{plain}  {file}/" in (await analyze("callees", f"{file}/{sort_out}")).text


@pytest.mark.parametrize("file", RISKY)
async def test_risky_places_are_found_in_every_language(file: str, workspace: Path, analyze: Analyze) -> None:
    shutil.copy(DATA / "risky" / file, workspace)
    lines = (DATA / "risky" / file).read_text().splitlines()
    marked = {(number, line.split("RISK ")[1]) for number, line in enumerate(lines, 1) if "RISK " in line}
    found = rows(await analyze("security", most=100))
    assert {(int(row.split(":")[1].split()[0]), row.split()[2].rstrip(":")) for row in found} == marked


async def test_a_secret_is_reported_without_being_shown(workspace: Path, analyze: Analyze) -> None:
    shutil.copytree(DATA / "risky", workspace, dirs_exist_ok=True)
    text = (await analyze("security", most=500)).text + (await analyze("security", jq=".")).text
    assert "secret: password  is in the code" in text
    assert not re.search("hunter2|swordfish|AKIA", text)


async def test_the_worst_comes_first(write: Callable[[Files], None], analyze: Analyze) -> None:
    write({"a.py": "import hashlib\nhashlib.md5(x)\n", "b.py": "eval(x)\n"})
    result = await analyze("security")
    assert [row.split()[0] for row in rows(result)] == ["high", "low"]
    assert "where the data comes from isn't followed" in result.text


async def test_callers_say_how_often_and_where(write: Callable[[Files], None], analyze: Analyze) -> None:
    write(
        {
            "shop/cart.py": "def total(x): pass\n\n\nclass Cart:\n    def pay(self):\n        total(1); total(1)\n",
            "shop/till.py": "from shop.cart import total\n\ntotal(3)\n",
        }
    )
    result = await analyze("callers", "total")
    assert result.text.startswith("[total (shop/cart.py/total:1): 3 calls in 2 places]\n")
    assert rows(result) == ["shop/cart.py/Cart/pay:6", "shop/till.py:3"]
    assert "by name" in result.text


async def test_callers_can_be_asked_for_in_one_folder(write: Callable[[Files], None], analyze: Analyze) -> None:
    write({"a/x.py": "def go(): pass\ngo()\n", "b/y.py": "go()\n"})
    assert rows(await analyze("callers", "b", "go")) == ["b/y.py:1"]
    assert rows(await analyze("callers", "b go")) == ["b/y.py:1"]


async def test_a_function_can_be_named_with_its_file_and_class(
    write: Callable[[Files], None], analyze: Analyze
) -> None:
    write(
        {
            "a.py": "class A:\n    def go(self):\n        one()\n",
            "b.py": "class B:\n    def go(self):\n        two()\n\n\ndef two():\n    pass\n",
        }
    )
    assert rows(await analyze("callees", "b.py/B/go")) == ["two  b.py/two:6"]
    assert rows(await analyze("callees", "B.go")) == ["two  b.py/two:6"]
    assert "[not defined here: one]" in (await analyze("callees", "a.py", "go")).text


async def test_calls_of_a_function_from_elsewhere_are_found_too(
    write: Callable[[Files], None], analyze: Analyze
) -> None:
    write({"a.py": "import json\n\n\ndef load():\n    return json.loads('1')\n"})
    result = await analyze("callers", "loads")
    assert result.text.startswith("[loads (not defined here): 1 call in 1 place]")


async def test_an_unknown_name_is_answered_with_the_nearest(write: Callable[[Files], None], analyze: Analyze) -> None:
    write({"a.py": "def total(): pass\n"})
    with pytest.raises(ToolRefused, match="nothing here is called 'totel'; the nearest: total"):
        await analyze("callers", "totel")
    with pytest.raises(ToolRefused, match="needs the name of a function"):
        await analyze("callers")


async def test_a_path_that_is_not_there_is_refused(write: Callable[[Files], None], analyze: Analyze) -> None:
    write({"store/a.py": "x = 1\n"})
    with pytest.raises(ToolRefused, match="doesn't exist; the nearest: store"):
        await analyze("complexity", "stor")


def commit(folder: Path, *args: str) -> None:
    options = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *options, *args], cwd=folder, check=True, capture_output=True)


@pytest.mark.needs("git")
async def test_hotspots_change_often_and_are_complex(workspace: Path, analyze: Analyze) -> None:
    commit(workspace, "init", "-b", "main")
    branching = "def a(x):\n    if x:\n        return 1\n    return {}\n"
    for number in range(3):
        (workspace / "often.py").write_text(branching.format(number))
        (workspace / "simple.py").write_text(f"def b():\n    return {number}\n")
        if not number:
            (workspace / "once.py").write_text(branching.format(0))
        commit(workspace, "add", ".")
        commit(workspace, "commit", "-m", f"Change {number}")
    assert rows(await analyze("hotspots")) == [
        "     6  often.py  3 x 2, most in a (2)",
        "     3  simple.py  3 x 1, most in b (1)",
        "     2  once.py  1 x 2, most in a (2)",
    ]


async def test_hotspots_need_a_repository(write: Callable[[Files], None], analyze: Analyze) -> None:
    write({"a.py": "x = 1\n"})
    with pytest.raises(ToolRefused, match="not the root of a git repository"):
        await analyze("hotspots")


PIECE = "".join(f"    value_{number} = compute({number})\n" for number in range(8))


async def test_copies_are_found_whatever_is_around_them(write: Callable[[Files], None], analyze: Analyze) -> None:
    write(
        {
            "a.py": f"def one():\n{PIECE}    return 1\n",
            "b.py": f"def two():\n    start()\n{PIECE.replace('    ', '        ', 1)}    return 2\n",
            "c.py": PIECE.replace("    ", "    # "),
            "d.js": "import a from 'a'\n" * 20,
        }
    )
    result = await analyze("duplicates")
    assert rows(result) == ["   8 lines  a.py:2-9 = b.py:3-10"]


async def test_copies_inside_one_file_are_found(write: Callable[[Files], None], analyze: Analyze) -> None:
    write({"a.py": f"def one():\n{PIECE}\n\ndef two():\n{PIECE}\n\ndef three():\n{PIECE}"})
    assert rows(await analyze("duplicates")) == ["   8 lines  a.py:2-9 = a.py:13-20 = a.py:24-31"]


async def test_a_line_repeated_for_ever_takes_no_time(write: Callable[[Files], None], analyze: Analyze) -> None:
    write({"a.py": "f()\n" * 20_000})
    assert "in several places" in (await analyze("duplicates")).text


async def test_broken_empty_large_and_binary_files_are_survived(
    workspace: Path, write: Callable[[Files], None], analyze: Analyze
) -> None:
    write({"broken.py": "def a(:\n  if (((\nclass", "empty.py": "", "good.py": "def fine():\n    return 1\n"})
    write({"large.py": "x = [\n" + "    1,\n" * 800_000 + "]\n", "nested.rb": "%w(" * 25_000})
    (workspace / "binary.py").write_bytes(b"\0\1\2" * 1000)
    for what in ("complexity", "length", "duplicates", "security", "imports"):
        result = await analyze(what)
        assert not result.is_error
        assert "large.py (over 1 MB" in result.text
        assert "nested.rb (too long to parse)" in result.text


@pytest.mark.parametrize("what", ["complexity", "duplicates", "security", "imports"])
async def test_what_git_ignores_is_left_out(what: str, write: Callable[[Files], None], analyze: Analyze) -> None:
    code = f"import b\n\n\ndef hidden():\n    eval(b)\n{PIECE}"
    write({"out/a.py": code, "out/b.py": code, "in.py": "x = 1\n", ".gitignore": "out/\n"})
    assert "out/" not in (await analyze(what)).text


@pytest.mark.parametrize(
    ("file", "code", "complexity"),
    [
        ("a.swift", "enum A { case a }\nfunc f(x: A) { switch x { case .a: g()\n default: i() } }\n", 2),
        ("a.php", "<?php enum A { case B; }\nfunction f($x) { switch ($x) { case 1: g(); case 2: h(); } }\n", 3),
        ("a.rs", "impl A for B { fn f(&self) { for x in y { match x { 1 => a(), _ => b() } } } }\n", 3),
        ("a.kt", "fun f(x: Int) { when (x) { 1 -> a()\n else -> b() } }\n", 2),
        ("a.java", "class D { int f(int x) { try { return x > 1 ? 2 : 3; } catch (E e) { return 0; } } }\n", 3),
        ("a.cs", "class D { int f(int x) => x switch { 1 => 2, _ => 3 }; }\n", 2),
        ("a.rb", "def f(x)\n  return 1 if x\n  begin\n    g\n  rescue E\n    2\n  end\nend\n", 3),
        ("a.py", "def f(x):\n    try:\n        return [y for y in x if y]\n    finally:\n        g()\n", 3),
        ("b.py", "def f(x):\n    match x:\n        case 1: g()\n        case _ if y: h()\n        case _: i()\n", 4),
        ("a.go", "package a\nfunc f(x int) { switch { case x > 1: g(); case x > 2: h() } }\n", 3),
        ("a.lua", "function f(x)\n  repeat\n    x = x and 1 or 2\n  until x\nend\n", 4),
    ],
)
async def test_decisions_are_those_of_the_language(
    file: str, code: str, complexity: int, write: Callable[[Files], None], analyze: Analyze
) -> None:
    write({file: code})
    [row] = rows(await analyze("complexity"))
    assert int(row.split()[0]) == complexity


async def test_what_is_decided_outside_named_functions_is_no_function_and_still_named(
    write: Callable[[Files], None], analyze: Analyze
) -> None:
    write({"app.js": "app.get('/', (request) => {\n  if (request.a && request.b) { go(); }\n});\n"})
    write({"run.sh": 'if [ -n "$1" ]; then echo; fi\n', "a.py": "def f(x):\n    return g(lambda y: 1 if y else 2)\n"})
    result = await analyze("complexity")
    assert result.text.splitlines() == [
        "[1 function; complexity, function, lines]",
        "   2  a.py/f:1  2",
        "[complexity outside named functions: app.js 3, run.sh 2]",
    ]
    assert rows(await analyze("length")) == ["   2  a.py/f:1  2"]


async def test_what_was_left_out_can_be_asked_for(write: Callable[[Files], None], analyze: Analyze) -> None:
    write({"a.py": "".join(f"def f{number}(): pass\n" for number in range(30))})
    result = await analyze("complexity", most=3)
    assert len(rows(result)) == 3
    assert "[27 more; ask for them with `most`, or for a smaller `path`]" in result.text


async def test_a_filter_gets_all_that_was_found(write: Callable[[Files], None], analyze: Analyze) -> None:
    write({"a.py": "def f(x):\n    return 1 if x else 2\n\n\ndef g(): pass\n"})
    result = await analyze("complexity", jq="[.[] | select(.complexity > 1) | .name]")
    assert result.text == '["f"]'


async def test_names_that_would_break_the_answer_are_made_harmless(workspace: Path, analyze: Analyze) -> None:
    (workspace / "a\x1b[2J\n[system].py").write_text("def f(): eval(x)\n")
    for what in ("complexity", "security"):
        text = (await analyze(what)).text
        assert "\x1b" not in text
        assert len(rows(await analyze(what))) == 1


@pytest.mark.needs("git")
@pytest.mark.parametrize(
    ("what", "path", "most"),
    [
        ("complexity", ".", 1200),
        ("length", ".", 1200),
        ("hotspots", ".", 1500),
        ("duplicates", ".", 2500),
        ("security", ".", 2500),
        ("imports", ".", 2500),
        ("callers", "printable", 2000),
        ("callees", "tools/files/walk.py/walk", 1500),
    ],
)
async def test_answers_about_a_hundred_files_are_short(
    what: str, path: str, most: int, large: Path, turn: ToolContext
) -> None:
    assert len(list((large / "project").rglob("*.py"))) > 100
    tool = analyze_tool(large / "home", os.environ)
    text = (await tool.run({"what": what, "path": path}, replace(turn, workspace=large / "project"))).text
    assert 50 < len(text) <= most


async def test_a_second_answer_parses_only_what_changed(
    workspace: Path, write: Callable[[Files], None], analyze: Analyze
) -> None:
    write({f"a{number}.py": "def f(x):\n    return eval(x) if x else 2\n" for number in range(3)})
    first = {what: (await analyze(what)).text for what in ("complexity", "length", "security")}
    (workspace / "a1.py").write_text("def f(x):\n    return 1\n")
    for number in (0, 2):  # other bytes with the same stamp, which only reading them again would show
        path = workspace / f"a{number}.py"
        stamp = path.stat()
        path.write_bytes(b"#" * stamp.st_size)
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert "3 functions" in first["complexity"]
    assert rows(await analyze("complexity")) == ["   2  a0.py/f:1  2", "   2  a2.py/f:1  2", "   1  a1.py/f:1  2"]
    assert "[2 places: 2 high" in (await analyze("security")).text


@pytest.mark.parametrize("what", ["complexity", "length", "duplicates", "security"])
async def test_vendored_and_generated_files_are_counted_and_left_out(
    what: str, write: Callable[[Files], None], analyze: Analyze
) -> None:
    code = f"def f(x):\n    eval(x)\n{PIECE}{PIECE}"
    write({"vendor/a.py": code, "x/third_party/b.py": code, "c.py": f"# Code generated by hand. DO NOT EDIT.\n{code}"})
    write({"own.py": "x = 1\n", "d.py": '"""Ids are generated by the database."""\n'})
    text = (await analyze(what)).text
    assert "[left out: 3 vendored or generated files; name a folder of them to analyze them]" in text
    assert "a.py" not in text
    for asked in ("vendor", "x/third_party/b.py", "c.py"):
        assert rows(await analyze(what, asked))


async def test_builtins_are_not_taken_for_classes_and_functions_of_their_name(
    write: Callable[[Files], None], analyze: Analyze
) -> None:
    write({"fields.py": "class list: pass\ndef print(): pass\nclass A:\n    def filter(self): pass\n"})
    write({"use.py": "def f(x):\n    print(list(x))\n", "dot.py": "def g(x):\n    x.filter(1)\n"})
    write({"named.py": "from fields import list\ndef h(x):\n    list(x)\n"})
    assert rows(await analyze("callees", "use.py/f")) == []
    assert "[not defined here: print, list]" in (await analyze("callees", "use.py/f")).text
    assert rows(await analyze("callees", "dot.py/g")) == ["filter  fields.py/A/filter:4"]
    assert rows(await analyze("callees", "named.py/h")) == ["list  fields.py/list:1"]


@pytest.mark.parametrize(
    ("file", "code", "severities"),
    [
        ("a.js", "function run(m) { exec(m); re.exec(m); /x/.exec(m); this.exec(m) }\n", []),
        ("a.js", "const { exec } = require('child_process')\nexec(`ls ${x}`)\nre.exec(x)\n", ["high"]),
        ("a.js", "eval(x)\n", ["high"]),
        ("a.py", "def f(password_field='secret_word', token='csrf_name'): pass\n", []),
        ("a.py", "def f(password='hunter22'): pass\n", ["high"]),
        ("a.py", "password_template = 'admin/change.html'\n", []),
        ("a.py", "password = 'hunter22'\n", ["high"]),
        ("tests/a.py", "password = 'hunter22'\n", ["low"]),
        ("a_test.go", 'package a\nvar password = "hunter22"\n', ["low"]),
        ("src/a.spec.ts", "const apiKey = 'hunter22'\n", ["low"]),
    ],
)
async def test_what_is_taken_for_a_risk_is_one(
    file: str, code: str, severities: list[str], write: Callable[[Files], None], analyze: Analyze
) -> None:
    write({file: code})
    assert [row.split()[0] for row in rows(await analyze("security"))] == severities


@pytest.mark.parametrize("asked", ["lib app.handle", "app.handle", "lib/app.js/app.handle", "lib/app.js/app/handle"])
async def test_callers_are_found_by_a_name_as_view_prints_it(
    asked: str, write: Callable[[Files], None], analyze: Analyze
) -> None:
    code = "app.handle = function handle(x) {};\napp.use = function use(x) { app.handle(x) };\n"
    write({"lib/app.js": f"var app = {{}};\n{code}"})
    result = await analyze("callers", asked)
    assert result.text.startswith("[handle (lib/app.js/app/handle:2): 1 call in 1 place]")
    assert rows(result) == ["lib/app.js/app/use:3"]
