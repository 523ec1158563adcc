"""Ctrl-C, SIGTERM and a terminal that goes away: the turn is cancelled, its processes die, the session goes on."""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import PROGRAM, OnTerminal, Run
from tests.cli.model import Model, call, stalls
from tests.cli.screen import PATIENCE

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the tests look at processes in /proc")


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what a program, or the kernel, is about to do."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_cancels_the_turn_and_its_processes(
    denizen: Run, model: Model, repo: Path, environ: dict[str, str], number: signal.Signals
) -> None:
    model.plays(call("bash", command="sleep 1000 & echo started > started; wait"))
    program = subprocess.Popen(
        [*PROGRAM, "ask", "--yes", "--session", "s", "hi"],
        cwd=repo,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_until((repo / "started").exists)
    children = descendants(program.pid)
    program.send_signal(number)
    out, err = program.communicate(timeout=PATIENCE)
    assert (program.returncode, out) == (130, b"")
    assert b"cancelled" in err
    assert children
    wait_until(lambda: not any(map(alive, children)))
    model.plays("Going on.")
    assert denizen("ask", "--session", "s", "go on").out == "Going on.\n"


def test_ctrl_c_leaves_no_empty_line(on_terminal: OnTerminal, model: Model) -> None:
    model.plays(stalls("A long answ"))
    screen = on_terminal("ask", "tell me everything")
    screen.expect("A long answ")
    screen.type("\x03")
    assert screen.end() == 130
    assert screen.text.rstrip(" ").endswith("s\n")
    assert not screen.text.endswith("\n\n")


def descendants(pid: int) -> list[int]:
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return children + [grandchild for child in children for grandchild in descendants(child)]


def test_ctrl_c_keeps_what_had_streamed(on_terminal: OnTerminal, denizen: Run, model: Model) -> None:
    model.plays(stalls("Only the beginning"))
    screen = on_terminal("ask", "--session", "s", "hi")
    screen.expect("Only the beginning")
    screen.type("\x03")
    assert screen.end() == 130
    assert "Only the beginning" in denizen("sessions", "show", "s").out


def test_ctrl_c_in_a_conversation_ends_the_turns_processes(on_terminal: OnTerminal, model: Model, repo: Path) -> None:
    model.plays(call("bash", command="sleep 1000 & echo started > started; wait"), "Still here.")
    screen = on_terminal("chat", "--yes", warm=False)
    screen.expect("\n>")
    screen.enter("hi")
    wait_until((repo / "started").exists)
    children = descendants(screen.process.pid)
    screen.type("\x03")
    screen.expect("✗ bash sleep 1000")
    screen.expect("cancelled")
    screen.expect("\n>")
    wait_until(lambda: not any(map(alive, children)))
    screen.enter("and now?")
    screen.expect("Still here.")


def test_a_conversation_that_is_ended_leaves_the_terminal_as_it_was(on_terminal: OnTerminal, model: Model) -> None:
    screen = on_terminal("chat")
    screen.expect("\n>")
    assert not screen.echoes
    screen.process.terminate()
    assert screen.end() == 130
    assert screen.echoes


def test_ctrl_c_at_a_question_cancels(
    on_terminal: OnTerminal, model: Model, repo: Path, asks_about_writes: None
) -> None:
    model.plays(call("write", path="new.txt", content="x"))
    screen = on_terminal("ask", "hi")
    screen.expect("or say what to do instead: ")
    screen.type("\x03")
    assert screen.end() == 130
    assert not (repo / "new.txt").exists()


def test_ctrl_c_while_a_pipe_is_read(model: Model, repo: Path, environ: dict[str, str]) -> None:
    program = subprocess.Popen(
        [*PROGRAM, "ask", "hi"], cwd=repo, env=environ, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert program.stdin
    program.stdin.write(b"x" * 1_000_000)  # more than a pipe holds: it reads
    program.stdin.flush()
    program.send_signal(signal.SIGINT)
    assert program.wait(PATIENCE) == 130
    program.communicate()
