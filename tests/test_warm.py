"""Programs that are started warm are as those that `python` starts."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Drive

PROGRAM = """
import os, signal, sys

print(sys.argv[1:], os.getcwd(), os.environ["WORD"], sys.stdin.read())
print("told", file=sys.stderr)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "waits":
    sys.stdout.flush()
    signal.pause()
sys.exit(sys.argv[2])
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize("arguments", [["ends", "with a reason"], ["killed", ""]])
def test_it_has_the_same_surroundings_and_ends_the_same(
    program: Path, warm_python: list[str], arguments: list[str]
) -> None:
    cold, *warm = (
        subprocess.run(
            [*python, str(program), *arguments],
            input="piped",
            capture_output=True,
            text=True,
            cwd=program.parent,
            env={"WORD": "täglich"},
            check=False,
        )
        for python in ([sys.executable], warm_python, warm_python)
    )
    for each in warm:
        assert (each.returncode, each.stdout, each.stderr) == (cold.returncode, cold.stdout, cold.stderr)


def test_it_hears_signals_and_dies_with_its_command(program: Path, warm_python: list[str], drive: Drive) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with subprocess.Popen(
            [*warm_python, str(program), "waits"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={"WORD": "x"}
        ) as process:
            assert process.stdout
            process.stdout.readline()
            process.send_signal(number)
            assert process.wait() == -number
            assert process.stdout.read() == b""  # its end of the pipe is closed


def test_one_that_is_killed_at_once_keeps_no_other_from_starting(
    program: Path, warm_python: list[str], drive: Drive
) -> None:
    for _ in range(20):
        with subprocess.Popen([*warm_python, str(program), "waits"], stderr=subprocess.DEVNULL) as process:
            process.kill()
    (program.parent / "other.py").write_text("print('here')")
    assert drive(program.parent / "other.py").stdout == "here\n"
