"""Commands can't change the environment that Denizen runs from, also where the project has it."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

import denizen
from denizen.config.settings import SandboxSettings
from denizen.tools.sandbox import Bubblewrap, Landlock, LandlockAlone, problem_with

RUNS = """
import asyncio, os, sys
from pathlib import Path
from denizen.runtime.clock import SystemClock
from denizen.config.settings import SandboxSettings
from denizen.ports import ToolContext
from denizen.tools import sandbox
from denizen.tools.bash import bash_tool
kind, home, workspace, command = sys.argv[1:]
place = getattr(sandbox, kind)(SandboxSettings(), os.environ, Path(home))
turn = ToolContext("session", "call", Path(workspace), SystemClock(), lambda text: None, None)
print(asyncio.run(bash_tool(place).run({"command": command}, turn)).text)
"""

Runs = Callable[[str], str]


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """The project's own environment, which Denizen is installed in."""
    folder = tmp_path / "workspace/.venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    places = [sysconfig.get_path("purelib"), str(Path(denizen.__file__).parents[1])]
    (packages / "denizen.pth").write_text("\n".join(places))
    (packages / "denizen-1.dist-info").mkdir()
    (folder.parent / "src").mkdir()
    return folder


@pytest.fixture(params=[Bubblewrap, Landlock, LandlockAlone])
def runs(request: pytest.FixtureRequest, venv: Path, tmp_path: Path) -> Runs:
    """What `bash` says, in a Denizen that runs from the environment."""
    if problem := problem_with(request.param(SandboxSettings(), os.environ, tmp_path / "home")):
        pytest.skip(problem)

    def said(command: str) -> str:
        argv = [venv / "bin/python", "-c", RUNS, request.param.__name__, tmp_path / "home", venv.parent, command]
        ran = subprocess.run(argv, check=False, capture_output=True, text=True)
        assert not ran.stderr
        return ran.stdout

    return said


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"}


def test_its_packages_and_programs_stay(runs: Runs, venv: Path) -> None:
    before = files(venv)
    said = runs(
        "exec 2>/dev/null; for f in .venv/lib/python*/site-packages/denizen.pth .venv/bin/denizen .venv/pyvenv.cfg; do "
        "echo evil >> $f; rm -f $f; done; mv .venv gone; rm -rf .venv; echo made > src/new; cat src/new"
    )
    assert files(venv) == before
    assert "made\n[exit code 0]" in said


def test_a_command_that_fails_on_it_hears_how_to_install_denizen_apart(runs: Runs, venv: Path) -> None:
    note = "[.venv can't be changed by commands, because Denizen runs from it. Install Denizen separately: `uv tool"
    assert note in runs("mkdir .venv/lib/new")
    assert note not in runs("mkdir /usr/new")


def test_another_environment_can_be_made_and_changed(runs: Runs, venv: Path) -> None:
    runs("cd src; python3 -m venv --without-pip .venv 2>/dev/null || mkdir -p .venv/bin; echo x > .venv/bin/new")
    assert (venv.parent / "src/.venv/bin/new").exists()


def test_an_installation_that_is_edited_in_the_workspace_is_reported(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    shutil.copytree(Path(denizen.__file__).parent, workspace / "src/denizen", ignore=shutil.ignore_patterns("*.pyc"))
    subprocess.run(["git", "init", "-q", workspace], check=True)
    environ = {**os.environ, "DENIZEN_HOME": str(tmp_path / "home"), "PYTHONPATH": str(workspace / "src")}
    words = f"Commands can change Denizen itself: it runs from {workspace}/src/denizen, in the workspace."
    for command in (["doctor"], ["ask", "--model", "offline", "hello"]):
        program = [sys.executable, "-m", "denizen", *command]
        ran = subprocess.run(program, env=environ, cwd=workspace, check=False, capture_output=True, text=True)
        assert "".join(words.split()) in "".join((ran.stdout + ran.stderr).split())
