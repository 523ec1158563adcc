"""`grep`: the lines that match, the same ones with `rg` and without."""

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import Answer, Tool, ToolContext
from denizen.testing import FakeClock
from denizen.tools.grep import MAX_FILE_BYTES, MAX_RESULTS, grep_tool

Call = Callable[..., Awaitable[ToolResult]]
WITH_RG, WITHOUT = grep_tool(os.environ), grep_tool({"PATH": ""})
needs_rg = pytest.param(WITH_RG, id="rg", marks=pytest.mark.needs("rg"))

NO_FILE = "[no file to search: none is here that `glob` and `type` let in]"


@pytest.fixture(params=[needs_rg, pytest.param(WITHOUT, id="own")])
def grep(request: pytest.FixtureRequest) -> Tool:
    return request.param


@pytest.fixture
def tree(workspace: Path) -> Path:
    files = {
        ".gitignore": "dist/\n",
        "src/main.py": "import os\n\ndef main():\n    return os.getcwd()\n",
        "src/view.py": "import main\n# IMPORT\n",
        "notes.md": "one\nimport two\n",
        "dist/main.py": "import os\n",
        ".git/config": "import\n",
    }
    for name, text in files.items():
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(text)
    return workspace


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({}, "notes.md\n2:import two\nsrc/main.py\n1:import os\nsrc/view.py\n1:import main"),
        ({"path": "src"}, "src/main.py\n1:import os\nsrc/view.py\n1:import main"),
        ({"path": "notes.md"}, "notes.md\n2:import two"),
        ({"path": "dist"}, "dist/main.py\n1:import os"),
        ({"glob": "*.py"}, "src/main.py\n1:import os\nsrc/view.py\n1:import main"),
        ({"glob": "src/v*"}, "src/view.py\n1:import main"),
        ({"glob": "*.{md,rst}"}, "notes.md\n2:import two"),
        ({"glob": "!*.py"}, "notes.md\n2:import two"),
        ({"glob": "!src"}, "notes.md\n2:import two"),
        ({"glob": "!src/m*"}, "notes.md\n2:import two\nsrc/view.py\n1:import main"),
        ({"glob": "*.rs"}, f"{NO_FILE}\n[not searched, because git ignores them: 1]"),
        (
            {"pattern": r"os\n\n", "path": "src"},
            "[no matches; each line is searched by itself, so none has a line end]",
        ),
        ({"ignore_case": True, "glob": "view.py"}, "src/view.py\n1:import main\n2:# IMPORT"),
        ({"mode": "files"}, "notes.md\nsrc/main.py\nsrc/view.py"),
        ({"mode": "count", "ignore_case": True}, "notes.md: 1\nsrc/main.py: 1\nsrc/view.py: 2"),
        ({"start": 3}, "src/view.py\n1:import main"),
        ({"start": 9}, "[no more matches]"),
        ({"pattern": "^import os$"}, "src/main.py\n1:import os"),
        ({"pattern": r"os\.\w+\(\)", "context": 1}, "src/main.py\n3-def main():\n4:    return os.getcwd()"),
        (
            {"pattern": "^def|os$", "context": 1},
            "src/main.py\n1:import os\n2-\n3:def main():\n4-    return os.getcwd()",
        ),
        ({"pattern": "one|(?i:# imp)", "context": 1, "glob": "view.py"}, "src/view.py\n1-import main\n2:# IMPORT"),
        ({"pattern": "(?<=import )main"}, "src/view.py\n1:import main"),
        ({"pattern": "main("}, None),
        ({"pattern": "nothing"}, "[no matches]\n[not searched, because git ignores them: 1]"),
        ({"pattern": "-e"}, "[no matches]\n[not searched, because git ignores them: 1]"),
    ],
)
async def test_what_is_found(args: dict[str, Any], text: str | None, grep: Tool, call: Call) -> None:
    if text is None:
        with pytest.raises(ToolRefused, match="isn't a regular expression"):
            await call(grep, **{"pattern": "import", **args})
    else:
        assert (await call(grep, **{"pattern": "import", **args})).text == text


@pytest.mark.parametrize("pattern", ["a\0b", "\ud800", "x" * 200_000], ids=["null", "half a character", "too long"])
async def test_a_pattern_that_no_program_can_be_given_is_refused(pattern: str, grep: Tool, call: Call) -> None:
    with pytest.raises(ToolRefused, match="can't be searched for"):
        await call(grep, pattern=pattern)


async def test_separate_matches_are_divided(grep: Tool, workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text("".join(f"{n}\n" for n in range(1, 10)))
    assert (await call(grep, pattern="2|8", context=1)).text == "a.txt\n1-1\n2:2\n3-3\n--\n7-7\n8:8\n9-9"


async def test_many_matches_come_in_pages(grep: Tool, workspace: Path, call: Call) -> None:
    for name in ("a.txt", "b.txt"):
        (workspace / name).write_text("x\n" * (MAX_RESULTS - 10))
    first = await call(grep, pattern="x")
    assert first.text.endswith(f"\n10:x\n[results 1–{MAX_RESULTS}; to go on: grep with start={MAX_RESULTS + 1}]")
    rest = await call(grep, pattern="x", start=MAX_RESULTS + 1)
    assert rest.text.startswith("b.txt\n11:x\n12:x")
    assert rest.text.endswith(f"\n{MAX_RESULTS - 10}:x")
    assert rest.details["matches"] == MAX_RESULTS - 20


async def test_wide_matches_fill_a_page_sooner(grep: Tool, workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text(f"{'x' * 290}\n" * MAX_RESULTS)
    first = await call(grep, pattern="x")
    assert len(first.text) < 45_000
    shown = first.details["matches"]
    assert shown < MAX_RESULTS
    assert (await call(grep, pattern="x", start=shown + 1)).text.startswith(f"a.txt\n{shown + 1}:")


async def test_long_lines_are_cut_around_the_match(grep: Tool, workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text("é" * 5000 + "needle" + "x" * 5000 + "\n")
    text = (await call(grep, pattern="needle")).text
    assert "needle" in text
    assert text.startswith("a.txt\n1:…é")
    assert text.endswith("x…")
    assert len(text) < 350


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"x\r\nneedle\r\n", "a\n2:needle"),
        (b"\xef\xbb\xbfneedle\n", "a\n1:needle"),
        ("needle é\n".encode("utf-16"), "a\n1:needle é"),
        (b"caf\xe9 needle\n", "a\n1:caf\ufffd needle"),
        (b"needle\n\0\n", "[no matches]"),
        (b"", "[no matches]"),
        (b"needle", "a\n1:needle"),
    ],
    ids=["crlf", "mark", "utf-16", "latin-1", "binary", "empty", "open end"],
)
async def test_files_that_are_not_plain_text(data: bytes, text: str, grep: Tool, workspace: Path, call: Call) -> None:
    (workspace / "a").write_bytes(data)
    assert (await call(grep, pattern="needle( é)?$" if data else "x*")).text == text
    assert (await call(grep, pattern="needle", mode="files")).text == (text if "[" in text else "a")


@pytest.mark.parametrize("pattern", ["(", "*", "a{2,1}", "[[:alpha:]]", "(?P<n", "\\"])
async def test_a_bad_pattern_says_why(pattern: str, grep: Tool, call: Call) -> None:
    with pytest.raises(ToolRefused, match=r"isn't a regular expression \(Python's\): .*put \\ before"):
        await call(grep, pattern=pattern)


@pytest.mark.parametrize("pattern", ["foo() {", "(a)\\1", "a(?=b)", "\\Aab", "(?P<x>a)(?P=x)", "a{,2}b"])
async def test_patterns_that_rg_reads_otherwise_mean_what_they_mean_in_python(
    pattern: str, workspace: Path, call: Call
) -> None:
    (workspace / "a.txt").write_text("function foo() {\naab\nab\nab{,2}b\n")
    assert (await call(WITH_RG, pattern=pattern)).text == (await call(WITHOUT, pattern=pattern)).text


async def test_a_pattern_that_takes_for_ever_is_stopped(workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text("a" * 60 + "b\n")
    result = await call(grep_tool({"PATH": ""}, seconds=0.3), pattern="(a+)+$")
    assert result.text.startswith("[no matches]\n[not all was searched: it took too long;")


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
async def test_cancelling_ends_the_search(workspace: Path, turn: ToolContext) -> None:
    (workspace / "a.txt").write_text("a" * 60 + "b\n")
    task = asyncio.create_task(WITHOUT.run({"pattern": "(a+)+(?#to be cancelled)$"}, turn))
    while not searching():  # noqa: ASYNC110 (nothing else tells that the process has begun)
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not searching()


def searching() -> bool:
    """Whether the search of that test runs."""
    return any(b"to be cancelled" in command(path) for path in Path("/proc").glob("[0-9]*/cmdline"))


def command(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


async def test_files_that_cannot_be_searched_are_reported(grep: Tool, workspace: Path, call: Call) -> None:
    with (workspace / "huge.log").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    (workspace / "a.txt").write_text("needle\n")
    assert (await call(grep, pattern="needle")).text == "a.txt\n1:needle\n[not read: huge.log (200.0 MB)]"
    with pytest.raises(ToolRefused, match=r"huge\.log is too large to search"):
        await call(grep, pattern="needle", path="huge.log")


async def test_names_that_look_like_something_else(grep: Tool, workspace: Path, call: Call) -> None:
    for name in ("-v", "a b.txt", "3:x", "two\nlines", "~home"):
        (workspace / name).write_text("needle\n")
    found = (await call(grep, pattern="needle", mode="files")).text
    assert found == "-v\n3:x\na b.txt\ntwo\ufffdlines\n~home"


@pytest.mark.parametrize(("path", "why"), [("nope", "nope doesn't exist"), ("pipe", "pipe is a named pipe")])
async def test_a_path_that_cannot_be_searched(path: str, why: str, grep: Tool, workspace: Path, call: Call) -> None:
    os.mkfifo(workspace / "pipe")
    with pytest.raises(ToolRefused, match=why):
        await call(grep, pattern="x", path=path)


lines = st.lists(st.text(alphabet=st.sampled_from("ab. \t(é_1-"), max_size=8), max_size=12)
line_ends = st.sampled_from(["\n", "\r\n"])
patterns = st.one_of(
    st.sampled_from(
        [r"^a", r"b$", r"\ba\b", r"a.b", r"[^a]b", r"a|b\d", r"\w+\s", r"(ab)+", r"^$", r"^\s*$", r"é", r"a{2}", ""]
    ),
    st.text(alphabet=st.sampled_from("ab.^$|"), max_size=5).filter(
        lambda text: "$^" not in text
    ),  # rg 13 finds nothing
)
trees = st.dictionaries(
    st.sampled_from(["a.py", "b.txt", "sub/a.py", "sub/c.md", "sub-2/b.txt", "z/y/x.py", "dist/a.py"]),
    st.tuples(lines, line_ends, st.booleans()),
    max_size=5,
)
options = st.fixed_dictionaries(
    {
        "glob": st.sampled_from(["", "*.py", "sub/**", "*.{py,txt}", "a*"]),
        "ignore_case": st.booleans(),
        "context": st.integers(0, 2),
        "mode": st.sampled_from(["lines", "files", "count"]),
        "start": st.integers(1, 3),
    }
)


@pytest.mark.needs("rg")
@settings(max_examples=50)
@given(trees, patterns, options)
def test_the_answer_is_the_same_with_rg_and_without(
    tree: dict[str, tuple[list[str], str, bool]], pattern: str, option: dict[str, Any]
) -> None:
    async def nobody(question: str) -> Answer:
        raise AssertionError(question)

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / ".gitignore").write_text("dist\n*.md\n")
        for name, (text, end, is_open) in tree.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes((end.join(text) + ("" if is_open else end)).encode())
        turn = ToolContext("session", "call-1", Path(folder), FakeClock(), lambda line: None, nobody)
        answers = [answer(tool, {"pattern": pattern, **option}, turn) for tool in (WITH_RG, WITHOUT)]
    assert answers[0] == answers[1]


def answer(tool: Tool, args: dict[str, Any], turn: ToolContext) -> str:
    try:
        return asyncio.run(tool.run(args, turn)).text
    except ToolRefused as refused:
        return str(refused)


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"type": "python"}, "src/main.py\n1:import os\nsrc/view.py\n1:import main"),
        ({"type": "md"}, "notes.md\n2:import two"),
        ({"type": "py", "glob": "v*"}, "src/view.py\n1:import main"),
        ({"type": "rust"}, f"{NO_FILE}\n[not searched, because git ignores them: 1]"),
        ({"type": "rust", "path": "src/main.py"}, NO_FILE),
        ({"jq": ".matches[1] | [.file, .line, .text]"}, '["src/main.py",1,"import os"]'),
        ({"jq": ".matches", "context": 1, "path": "notes.md"}, '[{"file":"notes.md","line":2,"text":"import two"}]'),
        ({"jq": ".matches[].count", "mode": "count"}, "1\n1\n1"),
        ({"jq": ".matches[].file", "mode": "files"}, "notes.md\nsrc/main.py\nsrc/view.py"),
    ],
)
async def test_languages_and_filters(args: dict[str, Any], text: str, grep: Tool, call: Call) -> None:
    assert (await call(grep, pattern="import", **args)).text == text


async def test_a_filter_sees_more_matches_than_are_shown(grep: Tool, workspace: Path, call: Call) -> None:
    (workspace / "a.txt").write_text("x\n" * (20 * MAX_RESULTS))
    assert (await call(grep, pattern="x", jq=".whole, (.matches | length)")).text == f"false\n{10 * MAX_RESULTS}"
