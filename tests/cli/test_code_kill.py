"""A task whose process is killed goes on with `--continue`: nothing is done twice, and it ends as it was to end."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import PROGRAM, Run
from tests.cli.model import Model, stalls
from tests.cli.test_cancel import wait_until
from tests.cli.test_code import IDENTITY, git

Kill = Callable[..., None]


@pytest.fixture
def killed(repo: Path, environ: dict[str, str]) -> Kill:
    """`killed(when, "--commit", "Do it")`: begin a task, and kill the process when that is so."""

    def run(when: Callable[[], bool], *arguments: str) -> None:
        program = subprocess.Popen(
            [*PROGRAM, "code", *arguments],
            cwd=repo,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(when)
        os.kill(program.pid, signal.SIGKILL)
        assert program.wait() == -signal.SIGKILL

    return run


def test_killed_between_the_edit_and_the_answer(denizen: Run, model: Model, repo: Path, killed: Kill) -> None:
    git(repo, "add", "--all")
    model.plays("$(run echo edited >> log)", stalls("I am "))
    job = ("--commit", "--validate", "test -e log", "Write a log")
    killed(lambda: len(model.server.requests) == 2, *job)
    model.plays("$(done Written.\n\n## Commit\nAdd a log)")
    ran = denizen("code", "--continue", **IDENTITY)
    assert (ran.out.splitlines()[0], ran.status) == ("Written.", 0), ran.err
    assert (repo / "log").read_text() == "edited\n"
    assert "edited >> log" in str(model.requests[2]["messages"])
    assert "checking: test -e log" in ran.err
    assert git(repo, "log", "--format=%s", "--name-only").split("\n") == ["Add a log", "", "log", ""]


def test_killed_while_a_command_runs(denizen: Run, model: Model, repo: Path, killed: Kill) -> None:
    model.plays("$(run echo edited >> log; sleep 1000)")
    killed((repo / "log").exists, "--rollback", "Write a log")
    model.plays("$(write more.txt more)", "It was interrupted.")
    ran = denizen("code", "--continue", "--validate", "false", "--tries", "1")
    assert ran.status == 1
    assert (repo / "log").exists() is (repo / "more.txt").exists() is False
    assert "session was interrupted" in str(model.requests[1]["messages"])


IN_A_COPY = ("--shadow", "--session", "s", "--validate", "test -e made.txt", "Make a file")


@pytest.fixture
def temporary(tmp_path: Path, environ: dict[str, str]) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    environ["TMPDIR"] = str(folder)
    return folder


@pytest.fixture
def left(model: Model, repo: Path, killed: Kill, temporary: Path) -> Path:
    """The copy that a task was killed in, when it had written a file."""
    model.plays("$(write made.txt before)", stalls("I am "))
    killed(lambda: len(model.server.requests) == 2, *IN_A_COPY)
    assert not (repo / "made.txt").exists()
    (copy,) = temporary.glob("denizen-*")
    return copy


def test_killed_in_a_copy_it_goes_on_there(denizen: Run, model: Model, repo: Path, left: Path) -> None:
    (repo / "mine.txt").write_text("meanwhile")
    model.plays("Made.")
    ran = denizen("code", "--session", "s")
    assert ran.status == 0, ran.err
    assert "goes on in it" in ran.err
    assert "every change of yours" not in str(model.requests[2]["messages"])
    assert ((repo / "made.txt").read_text(), (repo / "mine.txt").exists()) == ("before", True)
    assert not left.exists()


def test_killed_in_a_copy_that_is_gone_it_begins_a_new_one(denizen: Run, model: Model, repo: Path, left: Path) -> None:
    shutil.rmtree(left)
    model.plays("$(write made.txt again)", "Made.")
    ran = denizen("code", "--session", "s")
    assert ran.status == 0, ran.err
    assert "every change of yours" in str(model.requests[2]["messages"])
    assert (repo / "made.txt").read_text() == "again"


def test_another_task_of_the_session_clears_the_copy_away(
    denizen: Run, model: Model, repo: Path, left: Path, temporary: Path
) -> None:
    model.plays("$(write made.txt anew)", "Made.")
    ran = denizen("code", *IN_A_COPY)
    assert (ran.status, (repo / "made.txt").read_text()) == (0, "anew"), ran.err
    assert "is removed" in ran.err
    assert [*temporary.glob("denizen-*")] == []


def test_a_fork_leaves_the_copy_alone(denizen: Run, model: Model, left: Path) -> None:
    denizen("sessions", "fork", "s", "other")
    model.plays("$(write made.txt anew)", "Made.")
    ran = denizen("code", "--shadow", "--session", "other", "--validate", "test -e made.txt", "Make a file")
    assert ran.status == 0, ran.err
    assert left.exists()
