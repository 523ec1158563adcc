"""Programs that Denizen starts itself never come from a folder that a sandboxed command can write."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from denizen.checkpoints import shadow_of
from denizen.config.settings import HookSettings, McpServer, SandboxSettings
from denizen.errors import DenizenError, ToolRefused
from denizen.ports import Answer, ToolContext
from denizen.testing import FakeClock
from denizen.tools.git import git_tool
from denizen.tools.grep import grep_tool
from denizen.tools.mcp import McpServers
from denizen.tools.sandbox import Bubblewrap, problem_with
from denizen.trusted.programs import find_program, trusted_environ
from denizen.trusted.session_files import SessionFiles
from denizen.worlds.code.commit import commit
from denizen.worlds.hooks import CommandHooks

NAMES = ("git", "bwrap", "rg", "bash", "npm", "server")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    (folder / "notes.txt").write_text("a note\n")
    return folder


def plant(folder: Path, script: str) -> None:
    folder.mkdir(parents=True)
    for name in NAMES:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)


@pytest.fixture(params=[".venv/bin", "node_modules/.bin", "relative"])
def environ(request: pytest.FixtureRequest, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """An environment whose PATH begins with a folder of planted programs; each of them says that it ran."""
    relative = request.param == "relative"
    folder = "bin" if relative else request.param
    plant(workspace / folder, f'echo "${{0##*/}}" >> {workspace}/ran')
    monkeypatch.chdir(workspace)
    path = f"{folder if relative else workspace / folder}:{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    return {"PATH": path, "HOME": str(workspace.parent)}


def turn_in(workspace: Path) -> ToolContext:
    async def nobody(question: str) -> Answer:
        return Answer("call", allow=False)

    return ToolContext("session", "call", workspace, FakeClock(), lambda _: None, nobody)


def ran(folder: Path) -> list[str]:
    """The planted programs that ran."""
    return (folder / "ran").read_text().split() if (folder / "ran").exists() else []


async def test_checkpoints_start_no_planted_git(workspace: Path, environ: Mapping[str, str], tmp_path: Path) -> None:
    await shadow_of(workspace, tmp_path / "home", clock=FakeClock(), environ=environ).snapshot()
    assert ran(workspace) == []


async def test_tools_start_no_planted_program(workspace: Path, environ: Mapping[str, str]) -> None:
    turn = turn_in(workspace)
    await git_tool(environ).run({"args": "status"}, turn)
    assert "notes.txt" in (await grep_tool(environ).run({"pattern": "note"}, turn)).text
    assert ran(workspace) == []


async def test_a_commit_starts_no_planted_git(workspace: Path, environ: Mapping[str, str]) -> None:
    named = {f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    await commit(workspace, ["notes.txt"], "Note", {**environ, **named}, repository=workspace)
    assert ran(workspace) == []


def test_no_planted_bwrap_is_tried(workspace: Path, environ: Mapping[str, str], tmp_path: Path) -> None:
    sandbox = Bubblewrap(SandboxSettings(), environ, tmp_path / "home", workspace=workspace)
    problem_with(sandbox)
    wrapped = sandbox.wrap(["true"], workspace=workspace)
    subprocess.run(wrapped.argv, env=wrapped.environ, check=False, capture_output=True)
    assert wrapped.afterwards
    wrapped.afterwards()
    assert ran(workspace) == []


@pytest.mark.needs("bwrap")
def test_a_new_repository_is_looked_at_by_no_planted_git(
    workspace: Path, environ: Mapping[str, str], tmp_path: Path
) -> None:
    sandbox = Bubblewrap(SandboxSettings(), environ, tmp_path / "home", workspace=workspace)
    if problem := problem_with(sandbox):
        pytest.skip(problem)
    git = str(shutil.which("git", path=os.defpath))
    wrapped = sandbox.wrap([git, "init", "src"], workspace=workspace)
    subprocess.run(wrapped.argv, env=wrapped.environ, check=True, capture_output=True, cwd=workspace)
    assert wrapped.afterwards
    wrapped.afterwards()
    assert ran(workspace) == []


async def test_hooks_and_servers_find_no_planted_program(
    workspace: Path, environ: Mapping[str, str], tmp_path: Path
) -> None:
    hooks = CommandHooks(
        [HookSettings(event="turn_start", command="git --version")], workspace, environ, SessionFiles(tmp_path)
    )
    answer = await hooks.call("turn_start", {})
    assert not answer.refusal
    server = McpServer(command="server", start_timeout=5)
    servers = McpServers(
        {"a": server},
        SessionFiles(tmp_path),
        workspace=workspace,
        environ=environ,
        clock=FakeClock(),
        most_tools=0,
    )
    (why,) = await servers.meet()
    assert "there is no program server" in why
    assert "in the workspace by its path" in why
    await servers.close()
    assert ran(workspace) == []


def test_a_link_into_the_workspace_is_passed_over(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    plant(workspace / "tools", "exit 1")
    (tmp_path / "bin/git").symlink_to(workspace / "tools/git")
    environ = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    assert find_program("git", environ, workspace) == shutil.which("git")


def test_a_path_of_planted_programs_alone_leaves_those_of_the_system(workspace: Path) -> None:
    environ = {"PATH": f"{workspace}/bin::.:/tmp"}
    assert trusted_environ(environ, workspace)["PATH"] == os.defpath
    assert Path(find_program("sh", environ, workspace)).is_absolute()


async def test_a_missing_program_is_named_with_the_reason(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    environ = {"PATH": str(tmp_path / "bin")}
    with pytest.raises(DenizenError, match=r"no git in a folder of PATH that commands can't change. Install it"):
        await shadow_of(workspace, tmp_path / "home", clock=FakeClock(), environ=environ).snapshot()
    with pytest.raises(ToolRefused, match="no git in a folder of PATH"):
        await git_tool(environ).run({"args": "status"}, turn_in(workspace))


def test_python_m_denizen_imports_nothing_from_the_current_folder(workspace: Path) -> None:
    for name in ("aiohttp", "click", "rich", "msgspec", "typing", "re", "difflib"):
        (workspace / f"{name}.py").write_text(f"open('ran', 'a').write('{name}\\n')\nraise SystemExit(9)\n")
    command = [sys.executable, "-m", "denizen", "--version"]
    done = subprocess.run(command, cwd=workspace, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert ran(workspace) == []
