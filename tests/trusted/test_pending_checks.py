"""Whatever runs next looks first at what a command did, where Denizen was killed while it ran."""

import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.engine.scene import Host, call, say

from denizen import Agent, Config
from denizen.config.settings import SandboxSettings
from denizen.events import Notice
from denizen.testing import ScriptedModel
from denizen.tools import tool
from denizen.tools.sandbox import Bubblewrap, Landlock, LandlockAlone, problem_with

DENIZEN = """
import asyncio, os, sys
from pathlib import Path
from denizen.config.settings import SandboxSettings
from denizen.tools import sandbox
from denizen.tools.programs.process import run
kind, home, workspace, command = sys.argv[1:]
place = getattr(sandbox, kind)(SandboxSettings(), os.environ, Path(home))
wrapped = place.wrap(["sh", "-c", command], workspace=Path(workspace))
asyncio.run(run(wrapped, Path(workspace), seconds=None, take=lambda data: os.write(1, data)))
"""
PLANTS = "git init -q lib && cd lib && echo evil > .git/hooks/pre-commit && echo planted; "
WAITS = "sleep 1000"
GOES_ON = "trap '' TERM; while true; do echo evil > .git/hooks/post-commit; done"

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def start(home: Path, workspace: Path) -> Generator[Start]:
    """Starts a Denizen that runs a command, and waits for the first line that this prints."""
    with ExitStack() as running:

        def started(command: str, kind: type = Landlock) -> "subprocess.Popen[bytes]":
            if problem := problem_with(kind(SandboxSettings(), os.environ, home)):
                pytest.skip(problem)
            argv = [sys.executable, "-c", DENIZEN, kind.__name__, str(home), str(workspace), command]
            process = running.enter_context(subprocess.Popen(argv, stdout=subprocess.PIPE))
            running.callback(process.kill)
            assert process.stdout
            assert process.stdout.readline() == b"planted\n"
            return process

        yield started


def kill(denizen: "subprocess.Popen[bytes]") -> None:
    denizen.kill()
    denizen.wait()


def hooks(workspace: Path) -> list[str]:
    return sorted(path.name for path in (workspace / "lib/.git/hooks").iterdir() if "." not in path.name)


@pytest.mark.parametrize("kind", [Bubblewrap, Landlock, LandlockAlone])
@pytest.mark.parametrize("then", [WAITS, GOES_ON])
def test_the_next_command_finds_what_the_last_one_planted(
    then: str, kind: type, start: Start, home: Path, workspace: Path
) -> None:
    kill(start(PLANTS + then, kind))
    notice = Landlock(SandboxSettings(), os.environ, home).wrap(["true"], workspace=workspace).notice
    assert f"A command that ran in {workspace} when Denizen was killed: taken out, because it would run" in notice
    assert "lib/.git/hooks/pre-commit (now pre-commit.disabled)" in notice
    assert hooks(workspace) == []


def test_the_next_start_of_the_program_finds_it_whatever_it_does(start: Start, home: Path, workspace: Path) -> None:
    kill(start(PLANTS + WAITS))
    environ = {**os.environ, "DENIZEN_HOME": str(home)}
    program = [sys.executable, "-m", "denizen", "sessions", "list"]
    ran = subprocess.run(program, env=environ, cwd=workspace, capture_output=True, text=True, check=True)
    assert "pre-commit.disabled" in "".join(ran.stderr.split())
    assert hooks(workspace) == []


async def test_an_agent_that_works_there_finds_it_before_its_next_call(
    start: Start, home: Path, workspace: Path
) -> None:
    @tool
    def hooks_there() -> str:
        """Which hooks there are."""
        return f"hooks: {hooks(workspace)}"

    @tool
    def meanwhile() -> str:
        """What happens while the agent works."""
        kill(start(PLANTS + WAITS))
        return "killed"

    model, host = ScriptedModel([call(("meanwhile", {})), call(("hooks_there", {})), say("done")]), Host()
    agent = Agent(Config(home=home, workspace=workspace), model=model, tools=[meanwhile, hooks_there])
    result = await agent.run("go on", io=host)
    assert "hooks: []" in str(result.messages)
    assert ["pre-commit.disabled" in notice.text for notice in host.of(Notice)] == [True]


def test_a_command_of_a_denizen_that_lives_is_left_to_it(start: Start, home: Path, workspace: Path) -> None:
    start(PLANTS + WAITS)
    notice = Landlock(SandboxSettings(), os.environ, home).wrap(["true"], workspace=workspace).notice
    assert "killed" not in notice
    assert hooks(workspace) == ["pre-commit"]


def test_a_command_whose_denizen_was_killed_before_it_began_never_runs(home: Path, workspace: Path) -> None:
    sandbox = Landlock(SandboxSettings(), os.environ, home)
    if problem := problem_with(sandbox):
        pytest.skip(problem)
    command = sandbox.wrap(["sh", "-c", "echo x > new"], workspace=workspace)
    argv, environ = command.argv, command.environ
    del command  # as when the process dies: nobody holds the look's lock any more
    assert subprocess.run(argv, env=environ, cwd=workspace, check=False).returncode == 126
    assert not (workspace / "new").exists()


def test_nothing_is_owed_after_commands(home: Path, workspace: Path) -> None:
    sandbox = Landlock(SandboxSettings(), os.environ, home)
    if problem := problem_with(sandbox):
        pytest.skip(problem)
    command = sandbox.wrap(["true"], workspace=workspace)
    subprocess.run(command.argv, env=command.environ, cwd=workspace, check=True)
    assert [*(home / "commands").glob("*.json")] != []
    assert command.afterwards
    assert command.afterwards() == ""
    assert [*(home / "commands").iterdir()] == []


@pytest.mark.parametrize("folder", ["commands", "looks"])
@pytest.mark.parametrize("note", ["", '{"workspace": "WORKSPACE", "before": {}}'])
def test_a_note_that_is_damaged_is_removed_and_stops_nothing(
    note: str, folder: str, home: Path, workspace: Path
) -> None:
    (home / folder).mkdir(parents=True)
    (home / folder / "a.json").write_text(note.replace("WORKSPACE", str(workspace)))
    (workspace / "AGENTS.md").write_text("as it was\n")
    environ = {**os.environ, "DENIZEN_HOME": str(home)}
    for said in (folder == "commands", False):
        program = [sys.executable, "-m", "denizen", "ask", "--model", "offline", "hello"]
        ran = subprocess.run(program, env=environ, cwd=workspace, capture_output=True, text=True, check=True)
        assert ("look before you work there" in " ".join(ran.stderr.split())) is said
    assert [*(home / folder).iterdir()] == []
