"""A task whose process is killed goes on with `--continue`: nothing is done twice, and it ends as it was to end."""

import functools
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import PROGRAM, Run
from tests.cli.model import Model, stalls
from tests.cli.screen import PATIENCE
from tests.cli.test_cancel import wait_until
from tests.cli.test_code import IDENTITY, git

End = Callable[..., str]
Kill = Callable[..., str]


@pytest.fixture
def ended(repo: Path, environ: dict[str, str]) -> End:
    """`ended(SIGHUP, when, "--commit", "Do it")`: begin a task, and send the signal when that is so."""

    def run(number: signal.Signals, when: Callable[[], bool], *arguments: str) -> str:
        program = subprocess.Popen(
            [*PROGRAM, "code", *arguments],
            cwd=repo,
            env={**environ, **IDENTITY},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(when)
        program.send_signal(number)
        _, told = program.communicate(timeout=PATIENCE)
        assert program.returncode == (-number if number == signal.SIGKILL else 130)
        return told

    return run


@pytest.fixture
def killed(ended: End) -> Kill:
    """`killed(when, "--commit", "Do it")`: the same with a signal that leaves no time."""
    return functools.partial(ended, signal.SIGKILL)


def test_killed_between_the_edit_and_the_answer(denizen: Run, model: Model, repo: Path, killed: Kill) -> None:
    git(repo, "add", "--all")
    model.plays("$(write log begun,)\n$(run echo edited >> log)", stalls("I am "))
    job = ("--commit", "--validate", "test -e log", "Write a log")
    killed(lambda: len(model.server.requests) == 2, *job)
    model.plays("$(done Written.\n\n## Commit\nAdd a log)")
    ran = denizen("code", "--continue", **IDENTITY)
    assert (ran.out.splitlines()[0], ran.status) == ("Written.", 0), ran.err
    assert (repo / "log").read_text() == "begun,edited\n"
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
    assert "Continuing in the copy" in ran.err
    assert "with all your changes" not in str(model.requests[2]["messages"])
    assert ((repo / "made.txt").read_text(), (repo / "mine.txt").exists()) == ("before", True)
    assert not left.exists()


def test_killed_in_a_copy_that_is_gone_it_begins_a_new_one(denizen: Run, model: Model, repo: Path, left: Path) -> None:
    shutil.rmtree(left)
    model.plays("$(write made.txt again)", "Made.")
    ran = denizen("code", "--session", "s")
    assert ran.status == 0, ran.err
    assert "with all your changes" in str(model.requests[2]["messages"])
    assert (repo / "made.txt").read_text() == "again"


def test_what_is_said_next_in_the_session_is_done_there(denizen: Run, model: Model, repo: Path, left: Path) -> None:
    model.plays("$(write more.txt more)", "Made.")
    ran = denizen("code", "--shadow", "--session", "s", "--validate", "test -e made.txt", "Another one, too")
    assert ran.status == 0, ran.err
    assert ((repo / "made.txt").read_text(), (repo / "more.txt").read_text()) == ("before", "more")
    assert not left.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_task_in_a_copy_that_is_stopped_goes_on_there(
    denizen: Run, model: Model, ended: End, temporary: Path, number: signal.Signals
) -> None:
    repo = temporary.parent / "repo"
    model.plays("$(write made.txt before)", stalls("I am "))
    told = ended(number, lambda: len(model.server.requests) == 2, *IN_A_COPY)
    (copy,) = temporary.glob("denizen-*")
    assert f"The work so far is in {copy / 'files' / 'repo'}. Continue there: denizen code --session s\n" in told
    assert not (repo / "made.txt").exists()
    model.plays("$(write more.txt more)", stalls("I am "))
    ended(number, lambda: len(model.server.requests) == 4, "--session", "s")
    model.plays("Made.")
    ran = denizen("code", "--session", "s")
    assert ran.status == 0, ran.err
    assert "checking: test -e made.txt" in ran.err
    assert model.told(2).count("Make a file") == model.told(4).count("Make a file") == 1
    assert model.told(4).count("begun before and stopped") == 1
    assert ((repo / "made.txt").read_text(), (repo / "more.txt").read_text()) == ("before", "more")
    assert [*temporary.glob("denizen-*")] == []


def test_a_stopped_task_that_goes_on_may_ask(denizen: Run, model: Model, repo: Path, ended: End) -> None:
    model.plays("$(write made.txt before)", stalls("I am "))
    ended(signal.SIGHUP, lambda: len(model.server.requests) == 2, *IN_A_COPY)
    model.plays("$(ask Is that all?)")
    assert denizen("code", "--session", "s").status == 4
    model.plays("Made.")
    ran = denizen("answer", "s", "yes")
    assert (ran.status, (repo / "made.txt").read_text()) == (0, "before"), ran.err
    assert "checking: test -e made.txt" in ran.err


def test_a_stopped_task_that_is_taken_back_is_not_gone_on_with(
    denizen: Run, model: Model, repo: Path, ended: End, temporary: Path
) -> None:
    model.plays("$(write made.txt before)", stalls("I am "))
    ended(signal.SIGHUP, lambda: len(model.server.requests) == 2, *IN_A_COPY)
    denizen("chat", "--session", "s", piped="/undo\n")
    assert "nothing left to do" in denizen("code", "--session", "s").err
    model.plays("Nothing to do.")
    ran = denizen("code", "--shadow", "--session", "s", "--validate", "true", "Look around")
    assert (ran.status, (repo / "made.txt").exists()) == (0, False), ran.err
    assert [*temporary.glob("denizen-*")] == []


def test_killed_while_its_changes_are_applied_it_can_be_undone(
    denizen: Run, model: Model, repo: Path, killed: Kill, temporary: Path
) -> None:
    model.plays("$(write made.txt before)", "Made.")
    killed((repo / "made.txt").exists, *IN_A_COPY)
    denizen("chat", "--session", "s", piped="/undo\n")
    assert not (repo / "made.txt").exists()
    assert [*temporary.glob("denizen-*")], "it may be redone"


def test_a_fork_leaves_the_copy_alone(denizen: Run, model: Model, left: Path) -> None:
    denizen("sessions", "fork", "s", "other")
    model.plays("$(write made.txt anew)", "Made.")
    ran = denizen("code", "--shadow", "--session", "other", "--validate", "test -e made.txt", "Make a file")
    assert ran.status == 0, ran.err
    assert left.exists()


@pytest.mark.parametrize(("check", "commits"), [("test -e log", 1), ("test -e other", 0)], ids=["passes", "fails"])
def test_killed_between_its_end_and_its_commit(
    denizen: Run, model: Model, repo: Path, check: str, commits: int
) -> None:
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "-m", "begin")
    model.plays("$(write log edited)", "$(done Written.\n\n## Commit\nAdd a log)")
    lock = repo / ".git" / "index.lock"
    lock.touch()  # so that it ends before anything is committed
    denizen("code", "--commit", "--tries", "1", "--validate", check, "Write a log", **IDENTITY)
    lock.unlink()
    ran = denizen("code", "--continue", **IDENTITY)
    assert (ran.status, len(model.requests)) == (1 - commits, 2), ran.err
    assert ran.out.startswith("Written.")
    assert git(repo, "log", "--format=%s").split("\n")[:-2] == ["Add a log"] * commits


def test_killed_after_its_commit(denizen: Run, model: Model, repo: Path) -> None:
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "-m", "begin")
    model.plays("$(write log edited)", "$(done Written.)")
    denizen("code", "--commit", "Write a log", **IDENTITY)
    ran = denizen("code", "--continue", **IDENTITY)
    assert (ran.out, ran.status) == ("Written.\n", 0), ran.err
    assert "are already committed" in ran.err
