"""`find`: files and folders by name."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.tools.files.walk import MAX_DEPTH
from denizen.tools.find import MAX_PATHS, find, find_tool

Call = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def tree(workspace: Path) -> Path:
    (workspace / ".gitignore").write_text("dist/\n")
    for name in (
        *("README.md", "src/main.py", "src/app/view.ts", "src/app/view.tsx", "src/app/test/view.py"),
        *("test/main.py", "dist/main.py", ".git/main.py", ".github/ci.yml", "src/[x].py"),
    ):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).touch()
    return workspace


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("main.py", ".", "src/main.py\ntest/main.py"),
        ("*.py", "src", "src/[x].py\nsrc/app/test/view.py\nsrc/main.py"),
        ("src/*.py", ".", "src/[x].py\nsrc/main.py"),
        ("./src/*.py", ".", "src/[x].py\nsrc/main.py"),
        ("**/*.py", "src", "src/[x].py\nsrc/app/test/view.py\nsrc/main.py"),
        ("src/**/view.*", ".", "src/app/test/view.py\nsrc/app/view.ts\nsrc/app/view.tsx"),
        (
            "src/**",
            ".",
            "src/[x].py\nsrc/app/\nsrc/app/test/\nsrc/app/test/view.py\nsrc/app/view.ts\nsrc/app/view.tsx\nsrc/main.py",
        ),
        ("*.{ts,tsx}", ".", "src/app/view.ts\nsrc/app/view.tsx"),
        ("{src,test}/{main,none}.py", ".", "src/main.py\ntest/main.py"),
        ("test/", ".", "src/app/test/\ntest/"),
        ("view.ts?", ".", "src/app/view.tsx"),
        ("[A-Z]*", ".", "README.md"),
        ("\\[x\\].py", ".", "src/[x].py"),
        ("ci.yml", ".", ".github/ci.yml"),
    ],
)
async def test_names_are_matched_as_git_does(pattern: str, path: str, found: str, call: Call) -> None:
    assert (await call(find, pattern=pattern, path=path)).text == found


@pytest.mark.usefixtures("tree")
async def test_nothing_found_says_what_was_not_searched(call: Call) -> None:
    result = await call(find, pattern="*.rs")
    assert result.text == "[nothing matches *.rs]\n[not searched, because git ignores them: 1]"


@pytest.mark.usefixtures("tree")
async def test_a_pattern_may_begin_with_the_workspace(workspace: Path, call: Call) -> None:
    assert (await call(find, pattern=f"{workspace}/src/*.py")).text == "src/[x].py\nsrc/main.py"


@pytest.mark.usefixtures("tree")
async def test_part_of_a_name_gets_a_hint(call: Call) -> None:
    text = (await call(find, pattern="vie")).text
    assert text.startswith("[nothing matches vie; to find part of a name: *vie*]")
    assert (await call(find, pattern="*vie*")).text.startswith("src/app/test/view.py\n")


async def test_many_results_come_in_pages(workspace: Path, call: Call) -> None:
    for number in range(MAX_PATHS + 2):
        (workspace / f"{number:04}").touch()
    first = await call(find, pattern="*")
    assert first.text.endswith(f"\n{MAX_PATHS - 1:04}\n[there is more; to go on: find with start={MAX_PATHS + 1}]")
    assert (await call(find, pattern="*", start=MAX_PATHS + 1)).text == f"{MAX_PATHS:04}\n{MAX_PATHS + 1:04}"
    assert (await call(find, pattern="*", start=9999)).text == "[nothing more matches *]"


async def test_links_are_found_but_not_followed(workspace: Path, call: Call) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub/loop").symlink_to(workspace)
    assert (await call(find, pattern="**")).text == "sub/\nsub/loop"


async def test_deep_tree_is_walked_completely(workspace: Path, call: Call) -> None:
    deep = workspace.joinpath(*["d"] * 300)
    deep.mkdir(parents=True)
    (deep / "end").touch()
    assert (await call(find, pattern="end")).text == "d/" * 300 + "end"


async def test_folders_that_are_too_deep_are_reported(workspace: Path, call: Call) -> None:
    workspace.joinpath(*["d"] * MAX_DEPTH, "deeper").mkdir(parents=True)
    text = (await call(find, pattern="d*")).text
    assert text.count("\n") == MAX_DEPTH
    assert text.endswith(f"/d/d/d (more than {MAX_DEPTH} folders deep)]")


async def test_a_pattern_for_too_many_names_is_refused(call: Call) -> None:
    with pytest.raises(ToolRefused, match="more than 200 others"):
        await call(find, pattern="{a,b}" * 20)


async def test_hostile_pattern_ends_soon(workspace: Path, call: Call) -> None:
    (workspace / ("a" * 250)).touch()
    assert (await call(find, pattern="*a" * 100 + "b")).text.startswith("[nothing matches")


async def test_what_is_no_folder_is_refused(workspace: Path, call: Call) -> None:
    (workspace / "file").touch()
    with pytest.raises(ToolRefused, match="file is a file, not a folder"):
        await call(find, pattern="*", path="file")


@pytest.mark.usefixtures("tree")
async def test_a_search_that_takes_too_long_says_so(tree: Path, call: Call) -> None:
    (tree / ".gitignore").write_text("".join(f"*{number}\n" for number in range(5000)))
    result = await call(find_tool(seconds=0.0), pattern="*")
    assert result.text.endswith("\n[not all was searched: it took too long; give a narrower `path`]")


async def test_a_pattern_with_many_commas_in_an_open_brace_takes_no_time(call: Call) -> None:
    pattern = "{" + "," * 300_000
    assert (await call(find, pattern=pattern)).text.startswith("[nothing matches {,,,")
