"""Paths stay in the workspace, whatever links there are, and whoever swaps them meanwhile."""

import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import Tool, ToolContext
from denizen.tools.edit import edit
from denizen.tools.find import find
from denizen.tools.grep import grep_tool
from denizen.tools.ls import ls
from denizen.tools.patch import apply_patch
from denizen.tools.read import read
from denizen.tools.write import write

Call = Callable[..., Awaitable[ToolResult]]
grep = grep_tool(os.environ)
ROUNDS = 300


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder next to the workspace with a secret in it."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("the secret\n")
    return folder


def every_tool(path: str) -> list[tuple[Tool, dict[str, str]]]:
    """A call of each tool on a path."""
    patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-the secret\n+gone\n*** End Patch"
    return [
        (read, {"path": path}),
        (write, {"path": path, "content": "gone"}),
        (edit, {"path": path, "old": "the secret", "new": "gone"}),
        (apply_patch, {"patch": patch}),
        (ls, {"path": path}),
        (find, {"path": path, "pattern": "*"}),
        (grep, {"path": path, "pattern": "secret"}),
    ]


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.txt",
        "sub/../../outside/secret.txt",
        "{outside}/secret.txt",
        "{workspace}/../outside/secret.txt",
        "{workspace}-other/secret.txt",
        "/etc/passwd",
        "/",
        "..",
        "to_file",
        "to_folder/secret.txt",
        "to_folder",
        "relative_link",
        "chain/secret.txt",
        "sub/up_and_out",
        "loop",
        "~/secret.txt",
        "",
        "nul\0.txt",
        "x" * 5000,
        "\ud800",
    ],
)
async def test_no_tool_leaves_the_workspace(path: str, workspace: Path, outside: Path, call: Call) -> None:
    (workspace / "sub").mkdir()
    links = {
        "to_file": outside / "secret.txt",
        "to_folder": outside,
        "relative_link": Path("../outside/secret.txt"),
        "chain": Path("to_folder"),
        "sub/up_and_out": Path("../../outside/secret.txt"),
        "loop": Path("loop"),
    }
    for name, target in links.items():
        (workspace / name).symlink_to(target)
    for tool, args in every_tool(path.format(outside=outside, workspace=workspace)):
        with pytest.raises(ToolRefused) as refused:
            await call(tool, **args)
        assert "the secret" not in str(refused.value)
    assert (outside / "secret.txt").read_text() == "the secret\n"
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]


@pytest.mark.parametrize("path", ["a/b.txt", "./a//b.txt", "a/../a/b.txt", "{workspace}/a/b.txt", "in/b.txt", "abs"])
async def test_paths_and_links_that_stay_inside_are_fine(path: str, workspace: Path, call: Call) -> None:
    (workspace / "a").mkdir()
    (workspace / "a/b.txt").write_text("one\n")
    (workspace / "in").symlink_to("a")
    (workspace / "abs").symlink_to(workspace / "a/b.txt")
    path = path.format(workspace=workspace)
    assert (await call(read, path=path)).text == "1\tone"
    await call(write, path=path, content="two\n")
    await call(edit, path=path, old="two", new="three")
    assert (workspace / "a/b.txt").read_text() == "three\n"
    assert (workspace / "abs").is_symlink()


async def test_a_workspace_that_is_itself_a_link_is_followed(
    tmp_path: Path, workspace: Path, turn: ToolContext
) -> None:
    (tmp_path / "link").symlink_to(workspace)
    (workspace / "a.txt").write_text("one\n")
    turn = replace(turn, workspace=tmp_path / "link")
    for path in ("a.txt", str(tmp_path / "link/a.txt"), str(workspace / "a.txt")):
        assert (await read.run({"path": path}, turn)).text == "1\tone"


async def test_unrestricted_tools_go_where_the_user_may(workspace: Path, outside: Path, turn: ToolContext) -> None:
    turn = replace(turn, restricted=False)
    (workspace / "link").symlink_to(outside)
    for path in ("../outside/secret.txt", str(outside / "secret.txt"), "link/secret.txt"):
        assert (await read.run({"path": path}, turn)).text == "1\tthe secret"
    assert str(outside / "secret.txt") in (await find.run({"path": "..", "pattern": "secret*"}, turn)).text
    assert "the secret" in (await grep.run({"path": str(outside), "pattern": "secret"}, turn)).text
    assert (await ls.run({"path": ".."}, turn)).text.startswith("outside/\nworkspace/")
    await edit.run({"path": "link/secret.txt", "old": "the secret", "new": "told"}, turn)
    assert (outside / "secret.txt").read_text() == "told\n"


@pytest.fixture
def home(tmp_path: Path, turn: ToolContext) -> tuple[Path, ToolContext]:
    """A turn in a workspace that holds Denizen's own folder, in which a skill may be read."""
    for name in ("home/.denizen/token", "home/.denizen/workspace/skills/trip/SKILL.md", "home/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("the secret\n")
    (tmp_path / "home/link").symlink_to(".denizen")
    own = tmp_path / "home/.denizen"
    return own, replace(turn, workspace=tmp_path / "home", readable=[own / "workspace/skills/trip"], private=own)


@pytest.mark.parametrize("restricted", [True, False])
async def test_denizens_own_folder_is_closed(restricted: bool, home: tuple[Path, ToolContext]) -> None:
    own, turn = home
    turn = replace(turn, restricted=restricted)
    for path in (".denizen/token", ".denizen", "link/token", str(own / "token"), ".denizen/workspace", ".denizen/new"):
        for tool, args in every_tool(path):
            with pytest.raises(ToolRefused, match="Denizen's own"):
                await tool.run(args, turn)
    assert (await find.run({"pattern": "*"}, turn)).text == "link\nnotes.txt"
    assert "token" not in (await grep.run({"pattern": "secret"}, turn)).text
    assert "[hidden: .denizen/]" in (await ls.run({}, turn)).text
    assert (own / "token").read_text() == "the secret\n"


@pytest.mark.parametrize("restricted", [True, False])
async def test_skills_in_it_can_be_read(restricted: bool, home: tuple[Path, ToolContext]) -> None:
    own, turn = home
    turn = replace(turn, restricted=restricted)
    skill = str(own / "workspace/skills/trip")
    assert (await read.run({"path": f"{skill}/SKILL.md"}, turn)).text == "1\tthe secret"
    assert "SKILL.md" in (await ls.run({"path": skill}, turn)).text
    assert "1:the secret" in (await grep.run({"path": skill, "pattern": "secret"}, turn)).text
    with pytest.raises(ToolRefused, match=r"leads out of|Denizen's own"):
        await read.run({"path": f"{skill}/../../../token"}, turn)


async def test_skills_can_be_read_only(home: tuple[Path, ToolContext]) -> None:
    own, turn = home
    for tool, args in every_tool(str(own / "workspace/skills/trip/SKILL.md"))[1:4]:
        with pytest.raises(ToolRefused, match="can only be read"):
            await tool.run(args, turn)


async def test_a_workspace_inside_of_it_is_open(home: tuple[Path, ToolContext]) -> None:
    own, turn = home
    turn = replace(turn, workspace=own / "workspace", readable=())
    await write.run({"path": "new.txt", "content": "x"}, turn)
    assert (own / "workspace/new.txt").read_text() == "x"
    with pytest.raises(ToolRefused, match="leads out of"):
        await read.run({"path": "../token"}, turn)


@pytest.mark.parametrize("restricted", [True, False])
@pytest.mark.parametrize("path", [".git/config", "sub/.GIT/hooks/new", "link/config", "denizen.toml", "DENIZEN.toml"])
async def test_git_and_the_configuration_are_not_written(
    path: str, restricted: bool, workspace: Path, turn: ToolContext
) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".git/config").write_text("[core]\n")
    (workspace / "denizen.toml").write_text("model = 'x'\n")
    (workspace / "link").symlink_to(".git")
    before = sorted(workspace.rglob("*"))
    with pytest.raises(ToolRefused, match=r"git's own data|configuration"):
        await write.run({"path": path, "content": "x"}, replace(turn, restricted=restricted))
    assert sorted(workspace.rglob("*")) == before
    assert (workspace / ".git/config").read_text() == "[core]\n"


async def test_gits_data_under_another_name_is_not_written(workspace: Path, call: Call) -> None:
    subprocess.run(["git", "init", "--separate-git-dir", "data"], cwd=workspace, check=True, capture_output=True)
    for path in ("data/config", "data/hooks/pre-commit", "data/new/file"):
        with pytest.raises(ToolRefused, match="git's own data"):
            await call(write, path=path, content="x")
    await call(write, path="data.txt", content="x")


async def test_no_repository_can_be_assembled_from_files(workspace: Path, call: Call) -> None:
    for path in ("data/HEAD", "data/objects/x", "data/config"):
        await call(write, path=path, content="x")
    with pytest.raises(ToolRefused, match="git's own data"):
        await call(write, path="data/refs/x", content="x")
    subprocess.run(["git", "init", "--bare", "bare"], cwd=workspace, check=True, capture_output=True)
    with pytest.raises(ToolRefused, match="git's own data"):
        await call(write, path="bare/config", content="x")


@pytest.mark.parametrize("path", ["denizen.toml", ".git/config"])
async def test_they_may_be_read(path: str, workspace: Path, call: Call) -> None:
    (workspace / path).parent.mkdir(exist_ok=True)
    (workspace / path).write_text("words\n")
    assert (await call(read, path=path)).text == "1\twords"


async def test_configuration_name_in_a_subfolder_is_an_ordinary_file(workspace: Path, call: Call) -> None:
    await call(write, path="examples/denizen.toml", content="x")
    await call(write, path=".github/workflows/x.yml", content="x")
    assert (workspace / "examples/denizen.toml").read_text() == "x"


async def test_special_files_are_refused_at_once(workspace: Path, call: Call) -> None:
    os.mkfifo(workspace / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        folder = os.open(workspace, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{folder}/socket" if Path("/proc/self/fd").exists() else str(workspace / "socket"))
        os.close(folder)
    for name, what in (("pipe", "a named pipe"), ("socket", "a socket")):
        for tool, args in every_tool(name)[:4]:
            with pytest.raises(ToolRefused, match=f"{name} is {what}"):
                await call(tool, **args)
    assert (await call(grep, pattern="x")).text == "[no matches]"


async def test_devices_are_refused_without_opening_them(turn: ToolContext) -> None:
    with pytest.raises(ToolRefused, match="is a device"):
        await read.run({"path": "/dev/tty"}, replace(turn, restricted=False))


async def test_a_missing_file_names_the_nearest(workspace: Path, call: Call) -> None:
    (workspace / "src").mkdir()
    (workspace / "src/Settings.py").touch()
    with pytest.raises(ToolRefused, match=r"src/setings.py doesn't exist; the nearest: src/Settings.py"):
        await call(read, path="src/setings.py")
    with pytest.raises(ToolRefused, match=r"scr doesn't exist; the nearest: src"):
        await call(read, path="scr/settings.py")


EXCHANGE = """
import ctypes, sys
rename, (one, other) = ctypes.CDLL(None).renameat2, map(str.encode, sys.argv[1:])
print("ready", flush=True)
while rename(-100, one, -100, other, 2) == 0:  # from the current folder, and both at once
    pass
"""


@contextmanager
def exchanging(one: Path, other: Path) -> Generator[None]:
    """Another process lets two things change places, again and again, as fast as it goes."""
    command = [sys.executable, "-c", EXCHANGE, str(one), str(other)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        try:
            yield
            assert process.poll() is None
        finally:
            process.kill()


@pytest.fixture
def raced(workspace: Path, outside: Path) -> Iterator[None]:
    """`sub` is now a folder of the workspace, now a link that leads out of it; so is `file.txt`, among files."""
    if sys.platform != "linux":
        pytest.skip("exchanges files by a call of Linux")
    (workspace / "sub").mkdir()
    (workspace / "sub/secret.txt").write_text("harmless\n")
    (workspace / "sub_link").symlink_to(outside)
    (workspace / "file.txt").write_text("harmless\n")
    (workspace / "file_link").symlink_to(outside / "secret.txt")
    with exchanging(workspace / "sub", workspace / "sub_link"):
        yield


@pytest.mark.usefixtures("raced")
async def test_folder_swapped_for_a_link_never_lets_a_read_out(workspace: Path, call: Call) -> None:
    seen: set[str] = set()
    with exchanging(workspace / "file.txt", workspace / "file_link"):
        for _ in range(ROUNDS):
            for path in ("sub/secret.txt", "file.txt"):
                with suppress(ToolRefused):
                    seen.add((await call(read, path=path)).text)
    assert seen == {"1\tharmless"}


@pytest.mark.skipif(sys.platform != "linux", reason="exchanges files by a call of Linux")
async def test_file_swapped_for_a_pipe_is_never_read(workspace: Path, call: Call) -> None:
    (workspace / "file.txt").write_text("harmless\n")
    os.mkfifo(workspace / "pipe")
    seen: set[str] = set()
    with exchanging(workspace / "file.txt", workspace / "pipe"):
        for _ in range(ROUNDS):
            with suppress(ToolRefused):
                seen.add((await call(read, path="file.txt")).text)
    assert seen == {"1\tharmless"}


@pytest.mark.usefixtures("raced")
async def test_folder_swapped_for_a_link_never_lets_a_write_out(outside: Path, call: Call) -> None:
    for number in range(ROUNDS):
        with suppress(ToolRefused):
            await call(write, path="sub/secret.txt", content="written")
        with suppress(ToolRefused):
            await call(write, path=f"sub/deeper/{number}.txt", content="written")
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == "the secret\n"


@pytest.mark.usefixtures("raced")
async def test_folder_swapped_for_a_link_never_lets_a_search_out(call: Call) -> None:
    for _ in range(30):
        for tool, args in ((grep, {"pattern": "secret|harmless"}), (grep, {"pattern": ".", "path": "sub"})):
            with suppress(ToolRefused):
                assert "the secret" not in (await call(tool, **args)).text
