"""`bash`: output, exit codes, and what is left running."""

import asyncio
import dataclasses
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from denizen.config.settings import SandboxSettings
from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import Sandbox, ToolContext, Traits
from denizen.tools.bash import bash_tool
from denizen.tools.sandbox import Bubblewrap, Landlock, LandlockAlone, Unconfined, choose_sandbox, problem_with

ENVIRON = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


def each(tmp_path: Path) -> dict[str, Sandbox]:
    settings, home = SandboxSettings(), tmp_path / "home"
    all_of_them = (
        Bubblewrap(settings, ENVIRON, home),
        Landlock(settings, ENVIRON, home),
        Unconfined(settings, ENVIRON),
    )
    return {sandbox.name: sandbox for sandbox in all_of_them}


@pytest.fixture(params=["bubblewrap", "Landlock", "none"])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    chosen = each(tmp_path)[request.param]
    if problem := problem_with(chosen):
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(problem)
    return chosen


@pytest.fixture
def plain() -> Sandbox:
    return Unconfined(SandboxSettings(), ENVIRON)


async def bash(sandbox: Sandbox, turn: ToolContext, command: str, **args: float) -> ToolResult:
    return await bash_tool(sandbox).run({"command": command, **args}, turn)


async def test_the_model_sees_output_and_exit_code(sandbox: Sandbox, turn: ToolContext) -> None:
    result = await bash(sandbox, turn, "echo hello")
    assert (result.text, result.is_error, result.details) == ("hello\n[exit code 0]", False, {"exit_code": 0})
    assert (result.call_id, result.name) == ("call-1", "bash")


async def test_what_the_sandbox_cannot_do_is_said_before_the_first_command_of_a_session(
    turn: ToolContext, shown: list[str], tmp_path: Path
) -> None:
    alone = LandlockAlone(SandboxSettings(), ENVIRON, tmp_path / "home")
    if problem := problem_with(alone):
        pytest.skip(problem)
    tool = bash_tool(alone)
    other = dataclasses.replace(turn, session_key="another")
    texts = [(await tool.run({"command": "echo hello"}, place)).text for place in (turn, turn, other)]
    notice = f"[{alone.advice}]\n"
    assert texts == [f"{notice}hello\n[exit code 0]", "hello\n[exit code 0]", f"{notice}hello\n[exit code 0]"]
    assert shown == [notice, "hello\n", "hello\n", notice, "hello\n"]


async def test_what_the_sandbox_disarms_is_reported(sandbox: Sandbox, turn: ToolContext, shown: list[str]) -> None:
    if not sandbox.confines:
        pytest.skip("nothing is taken out")
    result = await bash(sandbox, turn, "echo made; echo evil > .envrc")
    note = "[taken out, because it would run by itself outside the sandbox: .envrc (now .envrc.disabled). "
    assert result.text.startswith(f"made\n{note}")
    assert note in "".join(shown)


async def test_a_failure_is_an_error_with_its_exit_code(sandbox: Sandbox, turn: ToolContext) -> None:
    result = await bash(sandbox, turn, "echo no >&2; exit 3")
    assert (result.text, result.is_error) == ("no\n[exit code 3]", True)


async def test_a_command_that_says_nothing_has_only_an_exit_code(sandbox: Sandbox, turn: ToolContext) -> None:
    assert (await bash(sandbox, turn, "true")).text == "[exit code 0]"


async def test_the_signal_that_ended_it_is_named(sandbox: Sandbox, turn: ToolContext) -> None:
    assert (await bash(sandbox, turn, "sh -c 'kill -KILL $$'")).text.endswith("[exit code 137 (SIGKILL)]")


async def test_both_outputs_come_in_the_order_written(sandbox: Sandbox, turn: ToolContext) -> None:
    result = await bash(sandbox, turn, "echo 1; echo 2 >&2; echo 3; echo 4 >&2")
    assert result.text == "1\n2\n3\n4\n[exit code 0]"


async def test_it_runs_in_the_workspace(sandbox: Sandbox, turn: ToolContext) -> None:
    result = await bash(sandbox, turn, "pwd; echo hi > made")
    assert result.text.startswith(f"{turn.workspace}\n")
    assert (turn.workspace / "made").read_text() == "hi\n"


async def test_there_is_no_input_no_terminal_and_no_pager(sandbox: Sandbox, turn: ToolContext) -> None:
    command = 'cat; test -t 0 || test -t 1 || echo none; echo "$TERM $PAGER $GIT_PAGER $NO_COLOR $CI"'
    assert (await bash(sandbox, turn, command)).text == "none\ndumb cat cat 1 1\n[exit code 0]"


async def test_no_editor_is_waited_for(sandbox: Sandbox, turn: ToolContext) -> None:
    command = 'git var GIT_EDITOR; "$EDITOR" file; "$VISUAL" file; echo gone on'
    assert (await bash(sandbox, turn, command)).text == "true\ngone on\n[exit code 0]"


async def test_a_broken_pipe_ends_a_command_quietly(sandbox: Sandbox, turn: ToolContext) -> None:
    assert (await bash(sandbox, turn, "yes | head -1")).text == "y\n[exit code 0]"


async def test_a_command_may_begin_with_a_dash(sandbox: Sandbox, turn: ToolContext) -> None:
    assert "-x: command not found" in (await bash(sandbox, turn, "-x")).text


async def test_bytes_that_are_no_text_are_replaced(sandbox: Sandbox, turn: ToolContext, shown: list[str]) -> None:
    result = await bash(sandbox, turn, r"printf 'a\377b\303\251\n'")
    assert result.text == "a\ufffdbé\n[exit code 0]"
    assert "".join(shown) == "a\ufffdbé\n"


async def test_a_sign_is_whole_although_its_bytes_come_apart(
    sandbox: Sandbox, turn: ToolContext, shown: list[str]
) -> None:
    result = await bash(sandbox, turn, r"printf '\342'; printf '\202' >&2; printf '\254\n'")
    assert result.text.startswith("€\n")
    assert "".join(shown) == "€\n"


async def test_signs_for_a_terminal_are_left_out(sandbox: Sandbox, turn: ToolContext, shown: list[str]) -> None:
    result = await bash(sandbox, turn, r"printf '\033[31mred\033[0m \033]0;title\007\b\n10%%\r100%%\r\n'")
    assert result.text == "red \n100%\n[exit code 0]"
    assert "".join(shown) == "red \n100%\n"


def listening(turn: ToolContext, word: str) -> tuple[ToolContext, asyncio.Event]:
    """The turn, and whether `word` was shown."""
    heard, shown = asyncio.Event(), []

    def emit(piece: str) -> None:
        shown.append(piece)
        if word in "".join(shown):
            heard.set()

    return dataclasses.replace(turn, emit=emit), heard


async def test_output_is_shown_as_it_comes(sandbox: Sandbox, turn: ToolContext) -> None:
    os.mkfifo(turn.workspace / "go")
    turn, heard = listening(turn, "first")
    running = asyncio.create_task(bash(sandbox, turn, "echo first; cat go; echo last"))
    await heard.wait()
    assert not running.done()
    await asyncio.to_thread((turn.workspace / "go").write_text, "second\n")
    assert (await running).text == "first\nsecond\nlast\n[exit code 0]"


async def test_a_flood_keeps_its_beginning_and_its_end(plain: Sandbox, turn: ToolContext, shown: list[str]) -> None:
    tool = bash_tool(plain, most=1000)
    result = await tool.run({"command": "seq 1 1000000"}, turn)
    head, marker, tail = result.text.partition("\n[… 6,887,")
    assert head.startswith("1\n2\n")
    assert marker
    assert "bytes left out; to see them, run it again with the output in a file, then grep" in tail
    assert tail.endswith("999999\n1000000\n[exit code 0]")
    assert len(result.text) < 1300
    assert sum(map(len, shown)) < 70_000
    assert shown[-1].endswith("[more is not shown as it comes]")


async def test_what_is_left_out_of_a_flood_is_counted_exactly(plain: Sandbox, turn: ToolContext) -> None:
    for size in (999, 1000, 1001, 1500, 1501, 2000, 5000):
        result = await bash_tool(plain, most=1000).run({"command": f"head -c {size} /dev/zero | tr '\\0' x"}, turn)
        kept = result.text.count("x") - result.text.count("exit")
        left_out = int(result.text.split("… ")[1].split(" bytes")[0].replace(",", "")) if "…" in result.text else 0
        assert kept + left_out == size
        assert kept <= 1000


async def test_a_line_without_end_is_cut_between_signs(plain: Sandbox, turn: ToolContext) -> None:
    result = await bash_tool(plain, most=101).run({"command": "printf '€%.0s' $(seq 1000)"}, turn)
    assert "\ufffd" not in result.text


async def test_a_flood_of_a_gigabyte_takes_no_memory(plain: Sandbox, turn: ToolContext, shown: list[str]) -> None:
    before = peak_memory()
    result = await bash(plain, turn, "head -c 1000000000 /dev/zero")
    assert "bytes left out" in result.text
    assert peak_memory() - before < 50_000_000


def peak_memory() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


async def test_a_command_that_takes_too_long_is_ended(sandbox: Sandbox, turn: ToolContext) -> None:
    result = await bash(sandbox, turn, "echo started; sleep 1000", timeout=0.5)
    assert "[ended: it took longer than 0.5 s; give it a longer timeout or less to do]" in result.text
    assert result.is_error
    assert result.details == {"exit_code": None}


# Each of these leaves a process running that has the file `held` open for reading: a writer sees when it is gone.
LEFT_BEHIND = {
    "in the background": "{ exec 9<held; echo; sleep 1000; } &",
    "without its output": "{ exec 9<held; echo >&8; sleep 1000; } 8>&1 >/dev/null 2>&1 8>&- &",
    "in a session of its own": "setsid sh -c 'exec 9<held; sleep 1000' &",
    "as an orphan": "(setsid sh -c '(exec 9<held; sleep 1000) &' &)",
    "without its environment": "env -i setsid -f sh -c 'exec 9<held; exec >&- 2>&-; exec /bin/sleep 1000'",
    "deaf to signals": "setsid -f sh -c 'trap \"\" TERM HUP INT; exec 9<held; while :; do sleep 1000; done'",
}


@pytest.fixture
def held(workspace: Path) -> Iterator[int]:
    """The writing end of the pipe `held`, once a command has it open."""
    os.mkfifo(workspace / "held")
    reader = os.open(workspace / "held", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(workspace / "held", os.O_WRONLY)
    os.close(reader)
    yield writer
    os.close(writer)


def let_go(writer: int) -> bool:
    """Whether nobody holds the pipe for reading, or soon nobody does."""
    poll = select.poll()
    poll.register(writer, 0)
    return bool(poll.poll(5000))


OPENED = "until ls -l /proc/[0-9]*/fd 2>/dev/null | grep -q held; do sleep 0.01; done; echo opened"


@pytest.mark.parametrize("how", LEFT_BEHIND)
async def test_nothing_is_left_running_when_the_shell_exits(
    sandbox: Sandbox, turn: ToolContext, held: int, how: str
) -> None:
    result = await bash(sandbox, turn, f"{LEFT_BEHIND[how]}\n{OPENED}")
    assert result.text.endswith("opened\n[exit code 0]")
    assert let_go(held)


@pytest.mark.parametrize("how", LEFT_BEHIND)
async def test_a_time_out_ends_the_whole_tree(sandbox: Sandbox, turn: ToolContext, held: int, how: str) -> None:
    result = await bash(sandbox, turn, f"{LEFT_BEHIND[how]}\nsleep 1000", timeout=0.5)
    assert "[ended: it took longer" in result.text
    assert let_go(held)


async def test_a_command_that_is_cancelled_has_a_moment_to_end_by_itself(
    plain: Sandbox, turn: ToolContext, workspace: Path
) -> None:
    turn, heard = listening(turn, "ready")
    command = "trap 'echo bye >left; exit' TERM; echo ready; while :; do sleep 0.01; done"
    running = asyncio.create_task(bash(plain, turn, command))
    await heard.wait()
    running.cancel()
    await asyncio.wait([running])
    assert (workspace / "left").read_text() == "bye\n"


@pytest.mark.parametrize("how", LEFT_BEHIND)
async def test_cancelling_ends_the_whole_tree(sandbox: Sandbox, turn: ToolContext, held: int, how: str) -> None:
    turn, heard = listening(turn, "opened")
    running = asyncio.create_task(bash(sandbox, turn, f"{LEFT_BEHIND[how]}\n{OPENED}; sleep 1000"))
    await heard.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert let_go(held)


def test_the_death_of_denizen_ends_the_whole_tree(sandbox: Sandbox, turn: ToolContext, held: int) -> None:
    script = f"{LEFT_BEHIND['as an orphan']}; {OPENED}; sleep 1000"
    command = sandbox.wrap(["sh", "-c", script], workspace=turn.workspace)
    started = subprocess.Popen(
        [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])", *command.argv],
        cwd=turn.workspace,
        env=command.environ,
        stdout=subprocess.PIPE,
    )
    with started:
        assert started.stdout
        assert started.stdout.readline() == b"opened\n"
        started.kill()
    assert let_go(held)


@pytest.mark.parametrize(
    ("command", "why"),
    [("echo a\0b", "null"), ("true " + "x" * 200_000, "Argument list too long"), ("echo \ud800", "surrogates")],
)
async def test_a_command_that_cannot_be_given_to_a_program_is_refused(
    plain: Sandbox, turn: ToolContext, command: str, why: str
) -> None:
    with pytest.raises(ToolRefused, match=why):
        await bash(plain, turn, command)


async def test_a_missing_workspace_is_reported(plain: Sandbox, turn: ToolContext) -> None:
    turn.workspace.rmdir()
    with pytest.raises(ToolRefused, match="No such file or directory"):
        await bash(plain, turn, "true")


@pytest.mark.parametrize("timeout", [0, -1, 4000])
async def test_a_time_out_must_make_sense(plain: Sandbox, turn: ToolContext, timeout: float) -> None:
    with pytest.raises(ToolRefused, match="timeout"):
        await bash(plain, turn, "true", timeout=timeout)


async def test_the_description_says_what_the_sandbox_holds(sandbox: Sandbox, plain: Sandbox) -> None:
    assert (sandbox.promises in bash_tool(sandbox).schema.description) == sandbox.confines


async def test_a_refusal_of_the_sandbox_is_named_as_one(turn: ToolContext, tmp_path: Path) -> None:
    sandbox = choose_sandbox(SandboxSettings(), ENVIRON, tmp_path / "home")
    (turn.workspace / ".git").mkdir()
    result = await bash(sandbox, turn, "echo x > .git/config")
    assert ("[the sandbox may have refused something" in result.text) == sandbox.confines


@pytest.mark.parametrize(
    "command", ["mv other .envrc", "git checkout other", "ls .envrc.old; cat ./.envrc; mv other .envrc"]
)
async def test_a_held_file_that_a_command_meets_is_named(sandbox: Sandbox, turn: ToolContext, command: str) -> None:
    (turn.workspace / ".envrc").write_text("use flake\n")
    (turn.workspace / "other").write_text("x")
    (turn.workspace / ".idea" / "runConfigurations").mkdir(parents=True)
    (turn.workspace / ".idea" / "runConfigurations" / "a.xml").touch()
    git = (
        "git init -qb main && git add . && git -c user.name=a -c user.email=a commit -qm one && git checkout -qb other "
        "&& git rm -q .envrc && git -c user.name=a -c user.email=a commit -qm two && git checkout -q main"
    )
    subprocess.run(["sh", "-c", git], cwd=turn.workspace, check=True)
    result = await bash(sandbox, turn, command)
    assert ("[commands can't change .envrc: " in result.text) == (sandbox.confines and command.endswith(".envrc"))
    assert ("[commands can't change .git: " in result.text) == (sandbox.confines and "checkout" in command)


def test_it_executes_and_is_never_run_again(plain: Sandbox) -> None:
    tool = bash_tool(plain)
    assert (tool.name, tool.shell_names, tool.traits) == ("bash", ("run",), Traits.EXECUTES)


async def test_what_the_user_lets_out_of_the_sandbox_may_write_what_is_protected_in_it(
    tmp_path: Path, turn: ToolContext
) -> None:
    sandboxes = each(tmp_path)
    confined = next((each for each in sandboxes.values() if each.confines and not problem_with(each)), None)
    if confined is None:
        pytest.skip("no sandbox works here")
    (turn.workspace / ".git").mkdir()
    tool = bash_tool(confined, outside=sandboxes["none"])
    inside = await tool.run({"command": "echo x > .git/config"}, turn)
    assert inside.is_error
    outside = await tool.run({"command": "echo x > .git/config", "unsandboxed": True}, turn)
    assert not outside.is_error
    assert (turn.workspace / ".git" / "config").read_text() == "x\n"
