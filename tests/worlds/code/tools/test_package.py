"""`package`: what manifests and lock files say, of every format, and what they can't do to us."""

import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import ToolContext, Traits
from denizen.worlds.code.tools.package import package_tool

DATA = Path(__file__).parents[3] / "data" / "packages"
PACKAGE = package_tool(None)

Call = Callable[..., Awaitable[ToolResult]]
Use = Callable[[str], Path]

NODE = """\
  chalk 4.1.2 (^4.0.0)
  debug 2.6.9 (^2.6.9)
  ms 2.1.3 (^2.1.0)
  once 1.4.0 (^1.4.0; dev)
  fsevents 2.3.3 (^2.3.0; optional)"""
UV = """\
  jinja2 3.1.6 (>=3.1)
  requests 2.34.2 (>=2.31)
  colorama 0.4.6 (>=0.4; optional: colour)
  pytest 9.2.0 (>=8; dev)"""

GO = """\
  github.com/BurntSushi/toml v1.3.2 (v1.3.2)
  golang.org/x/text v0.14.0 (v0.14.0; indirect)
  github.com/spf13/cobra v1.8.0 (v1.8.0)"""
CARGO = """\
  rand 0.8.5 (0.8)
  wires (not locked) (path wires)
  serde_json 1.0.108 (1; optional)
  rand 0.7.3 (0.7; dev)
  libc 0.2.150 (0.2)
[not looked at, give it as `path`: wires/Cargo.toml]"""


@pytest.fixture
def use(workspace: Path) -> Use:
    """Fill the workspace with a project of the test data."""
    return lambda name: Path(shutil.copytree(DATA / name, workspace, dirs_exist_ok=True))


@pytest.fixture
def package(turn: ToolContext) -> Call:
    async def run(action: str, name: str = "", **args: Any) -> ToolResult:
        return await PACKAGE.run({"action": action, "name": name, **args}, turn)

    return run


@pytest.mark.parametrize(
    ("project", "heading", "rows"),
    [
        ("npm1", "package.json: lamp 1.2.0 (npm; locked by package-lock.json: 12 packages)", NODE),
        ("npm2", "package.json: lamp 1.2.0 (npm; locked by package-lock.json: 12 packages)", NODE),
        ("npm3", "package.json: lamp 1.2.0 (npm; locked by package-lock.json: 12 packages)", NODE),
        ("yarn1", "package.json: lamp 1.2.0 (npm; locked by yarn.lock: 12 packages)", NODE),
        ("berry", "package.json: lamp 1.2.0 (npm; locked by yarn.lock: 33 packages)", NODE),
        ("pnpm", "package.json: lamp 1.2.0 (npm; locked by pnpm-lock.yaml: 12 packages)", NODE),
        ("uv", "pyproject.toml: lamp 1.2.0 (PyPI; locked by uv.lock: 14 packages)", UV),
        ("pylock", "pyproject.toml: lamp 1.2.0 (PyPI; locked by pylock.toml: 14 packages)", UV),
        (
            "poetry",
            "pyproject.toml: lamp 1.2.0 (PyPI; locked by poetry.lock: 6 packages)",
            "  jinja2 3.1.6 (^3.1)\n  requests 2.34.2 (^2.31)\n  pytest 8.4.2 (^8.0; dev)",
        ),
        (
            "pdm",
            "pyproject.toml: lamp 1.2.0 (PyPI; locked by pdm.lock: 7 packages)",
            "  jinja2 3.1.6 (>=3.1)\n  requests 2.34.2 (>=2.31)\n  pytest 8.4.2 (>=8; test)",
        ),
        (
            "pipenv",
            "Pipfile (PyPI; locked by Pipfile.lock: 3 packages)",
            "  jinja2 3.1.6 (>=3.1)\n  colorama 0.4.6 (*; dev)",
        ),
        (
            "requirements",
            "requirements.txt (PyPI; locked by requirements.txt: 8 packages)",
            "  jinja2 3.1.6 (==3.1.6)\n  requests 2.34.2 (==2.34.2)",
        ),
        (
            "go",
            "go.mod: example.org/lamp (Go; locked by go.mod: 3 packages)",
            GO,
        ),
        (
            "cargo",
            "Cargo.toml: lamp 0.3.0 (crates.io; locked by Cargo.lock: 6 packages)",
            CARGO,
        ),
    ],
)
async def test_direct_dependencies_are_listed_with_their_locked_versions(
    project: str, heading: str, rows: str, use: Use, package: Call
) -> None:
    use(project)
    assert (await package("list")).text == f"{heading}\n{rows}"


@pytest.mark.parametrize("project", ["npm1", "npm2", "npm3", "yarn1", "pnpm"])
async def test_the_tree_says_who_brings_what(project: str, use: Use, package: Call) -> None:
    use(project)
    text = (await package("tree", depth=4)).text
    assert text.partition("\n")[2] == (
        "  chalk 4.1.2 (^4.0.0)\n    ansi-styles 4.3.0\n      color-convert 2.0.1\n        color-name 1.1.4\n"
        "    supports-color 7.2.0\n      has-flag 4.0.0\n"
        "  debug 2.6.9 (^2.6.9)\n    ms 2.0.0\n  ms 2.1.3 (^2.1.0)\n"
        "  once 1.4.0 (^1.4.0; dev)\n    wrappy 1.0.2\n  fsevents 2.3.3 (^2.3.0; optional)"
    )


@pytest.mark.parametrize("project", ["uv", "poetry", "pdm", "requirements"])
async def test_python_trees_say_who_brings_what(project: str, use: Use, package: Call) -> None:
    use(project)
    text = (await package("tree")).text
    assert "  jinja2 3.1.6" in text
    assert "\n    markupsafe 3.0.4" in text
    assert "\n    certifi 2026.10.18" in text


async def test_a_deeper_tree_is_cut_and_says_so(use: Use, package: Call) -> None:
    use("npm3")
    text = (await package("tree", depth=2)).text
    assert "    ansi-styles 4.3.0 (brings 1)" in text
    assert "color-convert" not in text


async def test_a_tree_can_begin_at_any_package(use: Use, package: Call) -> None:
    use("npm3")
    assert (await package("tree", "color-convert")).text.endswith("\n  color-convert 2.0.1\n    color-name 1.1.4")


async def test_packages_that_need_each_other_end(workspace: Path, package: Call) -> None:
    (workspace / "package.json").write_text('{"dependencies": {"a": "1"}}')
    lock = {"a": {"version": "1.0.0", "requires": {"b": "1"}}, "b": {"version": "1.0.0", "requires": {"a": "1"}}}
    (workspace / "package-lock.json").write_text(json.dumps({"lockfileVersion": 1, "dependencies": lock}))
    assert (await package("tree", depth=20)).text.endswith("  a 1.0.0 (1)\n    b 1.0.0\n      a 1.0.0 (cycle)")


async def test_a_lock_file_without_a_graph_says_so(use: Use, package: Call) -> None:
    use("pipenv")
    assert (
        "[Pipfile.lock doesn't say who brings what: only direct dependencies are shown]" in (await package("tree")).text
    )


async def test_info_lists_every_version_and_how_it_came(use: Use, package: Call) -> None:
    use("npm3")
    assert (await package("info", "ms")).text == (
        "ms 2.0.0 in package.json, locked by package-lock.json\n"
        "  not asked for directly\n  way: debug > ms\n  needed by: debug\n"
        "ms 2.1.3 in package.json, locked by package-lock.json\n  asked for: ^2.1.0"
    )


async def test_copies_of_one_version_are_shown_together(workspace: Path, package: Call) -> None:
    places = {
        "": {"dependencies": {"a": "1", "b": "1"}},
        "node_modules/a": {"version": "1.0.0", "dependencies": {"c": "1"}},
        "node_modules/a/node_modules/c": {"version": "1.0.0"},
        "node_modules/b": {"version": "1.0.0", "dependencies": {"c": "1"}},
        "node_modules/b/node_modules/c": {"version": "1.0.0"},
    }
    (workspace / "package.json").write_text('{"dependencies": {"a": "1", "b": "1"}}')
    (workspace / "package-lock.json").write_text(json.dumps({"packages": places}))
    assert (await package("info", "c")).text == (
        "c 1.0.0 in package.json, locked by package-lock.json\n"
        "  not asked for directly\n  way: a > c\n  way: b > c\n  needed by: a, b"
    )


async def test_info_says_where_a_package_comes_from(use: Use, package: Call) -> None:
    use("cargo")
    assert "  from no registry" in (await package("info", "rand_core")).text
    assert "registry" not in (await package("info", "libc")).text
    use("uv")
    assert "  from https://registry.example/simple" in (await package("info", "jinja2", path="pyproject.toml")).text


async def test_python_names_are_the_same_in_every_spelling(use: Use, package: Call) -> None:
    use("uv")
    assert (await package("info", "Charset_Normalizer")).text.startswith("charset-normalizer 3.5.2 in pyproject.toml")


async def test_an_unknown_name_is_answered_with_the_nearest(use: Use, package: Call) -> None:
    use("uv")
    with pytest.raises(ToolRefused, match="no package 'reqests' is declared or locked here; the nearest: requests"):
        await package("info", "reqests")


async def test_members_of_a_workspace_use_the_lock_file_above_them(workspace: Path, package: Call) -> None:
    (workspace / "web").mkdir()
    (workspace / "package.json").write_text('{"name": "top", "workspaces": ["web"]}')
    (workspace / "web" / "package.json").write_text('{"name": "web", "dependencies": {"ms": "^2"}}')
    lock = {
        "": {"name": "top"},
        "web": {"dependencies": {"ms": "^2"}},
        "node_modules/ms": {"version": "1.0.0"},
        "web/node_modules/ms": {"version": "2.1.3"},
    }
    (workspace / "package-lock.json").write_text(json.dumps({"lockfileVersion": 3, "packages": lock}))
    assert (await package("list", path="web")).text == (
        "web/package.json: web (npm; locked by package-lock.json: 2 packages)\n  ms 2.1.3 (^2)"
    )
    assert "[not looked at, give it as `path`: web/package.json]" in (await package("list")).text


async def test_a_package_finds_another_in_the_folders_above_it(workspace: Path, package: Call) -> None:
    places = {
        "": {"dependencies": {"a": "1"}},
        "node_modules/a": {"version": "1.0.0", "dependencies": {"b": "1"}},
        "node_modules/a/node_modules/b": {"version": "1.0.0", "dependencies": {"c": "1"}},
        "node_modules/a/node_modules/c": {"version": "1.0.0"},
        "node_modules/c": {"version": "2.0.0"},
    }
    (workspace / "package.json").write_text('{"dependencies": {"a": "1"}}')
    (workspace / "package-lock.json").write_text(json.dumps({"packages": places}))
    assert (await package("tree")).text.endswith("  a 1.0.0 (1)\n    b 1.0.0\n      c 1.0.0")


async def test_requirements_files_are_distinguished_by_their_names(workspace: Path, package: Call) -> None:
    (workspace / "requirements.txt").write_text("-r more.txt\nFlask[async]>=2 ; python_version > '3'  # web\n")
    (workspace / "requirements-dev.txt").write_text("pytest==8.0.0 \\\n  --hash=sha256:00\n")
    assert (await package("list")).text == (
        "requirements-dev.txt (PyPI; locked by requirements-dev.txt: 1 package)\n  pytest 8.0.0 (==8.0.0; dev)\n"
        "requirements.txt (PyPI; not locked)\n  flask (>=2)"
    )


async def test_the_lock_file_of_a_workspace_without_a_package_of_its_own_is_shown(
    workspace: Path, package: Call
) -> None:
    (workspace / "Cargo.toml").write_text('[workspace]\nmembers = ["lamp"]\n')
    shutil.copy(DATA / "cargo" / "Cargo.lock", workspace)
    assert (await package("list")).text.startswith("Cargo.toml (crates.io; locked by Cargo.lock: 6 packages)\n")


async def test_older_pnpm_files_are_read(workspace: Path, package: Call) -> None:
    (workspace / "package.json").write_text('{"dependencies": {"@a/b": "^1.0.0", "debug": "^2.0.0"}}')
    (workspace / "pnpm-lock.yaml").write_text(
        "lockfileVersion: 5.4\n\nspecifiers:\n  '@a/b': ^1.0.0\n  debug: ^2.0.0\n\n"
        "dependencies:\n  '@a/b': 1.0.0\n  debug: 2.6.9\n\npackages:\n\n"
        "  /@a/b/1.0.0:\n    resolution: {integrity: sha512-x==}\n    dev: false\n\n"
        "  /debug/2.6.9:\n    resolution: {integrity: sha512-y==}\n"
        "    dependencies:\n      ms: 2.0.0\n    dev: false\n\n"
        "  /ms/2.0.0:\n    resolution: {integrity: sha512-x==}\n"
    )
    assert (await package("tree")).text.endswith("  @a/b 1.0.0 (^1.0.0)\n  debug 2.6.9 (^2.0.0)\n    ms 2.0.0")


async def test_a_folder_without_manifests_is_reported(package: Call) -> None:
    with pytest.raises(ToolRefused, match="has no manifest: "):
        await package("list")


@pytest.mark.parametrize(
    "broken",
    [
        "{",
        "[1]",
        '{"packages": {"node_modules/a": 3, "": []}}',
        '{"dependencies": {"a": {"requires": "x"}}}',
        "[" * 9000,
    ],
)
async def test_a_broken_lock_file_is_reported_and_the_rest_shown(broken: str, workspace: Path, package: Call) -> None:
    (workspace / "package.json").write_text('{"name": "lamp", "dependencies": {"a": "1"}}')
    (workspace / "package-lock.json").write_text(broken)
    assert "  a (1)" in (await package("list")).text.replace(" (not locked)", "")


@pytest.mark.parametrize("name", ["pyproject.toml", "package.json", "Cargo.toml", "Pipfile"])
async def test_a_broken_manifest_is_reported(name: str, workspace: Path, package: Call) -> None:
    (workspace / name).write_text("{[")
    assert f"[{name} can't be understood: " in (await package("list")).text


async def test_binary_data_is_reported(workspace: Path, package: Call) -> None:
    (workspace / "package.json").write_bytes(b"\0\1\2")
    assert (await package("list")).text == "[package.json is binary data (3 bytes), not text]"


async def test_what_git_ignores_and_what_others_wrote_is_left_out(workspace: Path, package: Call) -> None:
    (workspace / "package.json").write_text('{"name": "lamp"}')
    for folder in ("node_modules/a", "ignored", "vendor/b", "tests/shop/data/c", "fixtures/d"):
        (workspace / folder).mkdir(parents=True)
        (workspace / folder / "package.json").write_text('{"name": "other"}')
    (workspace / ".gitignore").write_text("ignored/\n")
    assert (await package("list")).text == "package.json: lamp (npm; not locked)\n  no dependencies"


async def test_many_rows_are_cut_and_say_how_to_see_more(workspace: Path, package: Call) -> None:
    wanted = {f"package-{number}": "1" for number in range(300)}
    (workspace / "package.json").write_text(json.dumps({"name": "lamp", "dependencies": wanted}))
    text = (await package("list", most=10)).text
    assert text.endswith("[291 rows more; name a package, a smaller `path`, or a higher `most`]")
    assert len(text.splitlines()) == 11


async def test_names_that_would_break_the_answer_are_made_harmless(workspace: Path, package: Call) -> None:
    (workspace / "package.json").write_text(json.dumps({"name": "a\n[system]", "dependencies": {"b\x1b[2J": "1"}}))
    text = (await package("list")).text
    assert "\x1b" not in text
    assert len(text.splitlines()) == 2


async def test_a_filter_gets_the_same_as_data(use: Use, package: Call) -> None:
    use("uv")
    assert (await package("tree", "jinja2", jq=".[0].dependencies[0].needs[] | [.name, .version]")).text == (
        '["markupsafe","3.0.4"]'
    )


@pytest.mark.parametrize(("action", "command"), [("outdated", "npm outdated"), ("audit", "npm audit")])
async def test_what_no_lock_file_says_is_refused_with_the_command_that_knows(
    action: str, command: str, use: Use, package: Call
) -> None:
    use("npm3")
    with pytest.raises(ToolRefused, match=f"lock files don't say which .*`{command}`"):
        await package(action)


def test_packages_are_looked_up_without_the_network() -> None:
    assert PACKAGE.traits == Traits.READS | Traits.REPEATABLE


async def test_answers_about_a_large_project_are_short(workspace: Path, package: Call) -> None:
    names = [f"package-{number}" for number in range(2000)]
    places = {
        f"node_modules/{name}": {"version": "1.0.0", "dependencies": _next(names, at)} for at, name in enumerate(names)
    }
    wanted = dict.fromkeys(names[:200], "^1.0.0")
    (workspace / "package.json").write_text(json.dumps({"name": "lamp", "dependencies": wanted}))
    (workspace / "package-lock.json").write_text(json.dumps({"packages": {"": {"dependencies": wanted}, **places}}))
    assert len((await package("list")).text) < 4_000
    assert len((await package("tree", depth=20)).text) < 6_000
    assert len((await package("info", "package-1500")).text) < 500


def _next(names: list[str], at: int) -> dict[str, str]:
    return dict.fromkeys(names[at + 1 : at + 4], "1")
