"""Commands run in the editor's terminals where it has some: confined, bounded and ended as everywhere else."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import acp
import pytest
from acp.schema import ClientCapabilities
from tests.cli.conftest import PROGRAM
from tests.cli.in_editor import Connect, EditorWithTerminals, prompt
from tests.cli.model import Model, call
from tests.cli.test_cancel import wait_until

SECRET = "sk-ant-REDACTED"

InEditor = Callable[..., Awaitable[Any]]


@pytest.fixture(autouse=True)
def structured_calls(home: Path, model: Model) -> None:
    with (home / "denizen.toml").open("a") as file:
        file.write('[agent]\nactions = "native"\n')


@pytest.fixture
def editor() -> EditorWithTerminals:
    return EditorWithTerminals()


@pytest.fixture
def ask(connect: Connect, editor: EditorWithTerminals, repo: Path) -> InEditor:
    """`await ask("Do it", terminals=False)`: in a new session of an editor with terminals, or without."""

    async def asked(text: str, *, terminals: bool = True) -> Any:
        async with connect(editor, terminals=terminals) as agent:
            session = (await agent.new_session(cwd=str(repo))).session_id
            return await prompt(agent, session, text)

    return asked


def running(words: str) -> bool:
    """Whether a process with these words in its command line is alive."""
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found = words.encode() in line.read_bytes().replace(b"\0", b" ")
        except OSError:
            continue
        if found:
            return True
    return False


def shown(editor: EditorWithTerminals) -> Any:
    """What the call shows at last."""
    return [update for update in editor.of("tool_call_update") if update.content][-1].content


def texts(content: Any) -> str:
    return "".join(each.content.text for each in content if each.type == "content")


async def test_a_command_runs_in_a_terminal_that_its_call_shows(
    ask: InEditor, editor: EditorWithTerminals, model: Model
) -> None:
    model.plays(call("bash", command="echo hello; ls"), "Done.")
    await ask("Say hello")
    assert "hello\nhello.py\n[exit code 0]" in model.told()
    assert b"hello.py" in editor.terminal.output
    assert editor.calls == ["create", "wait", "output", "release"]
    assert [each.terminal_id for each in shown(editor)] == ["terminal-1"]
    assert editor.of("tool_call_update")[-1].raw_output["exit_code"] == 0


async def test_a_failure_says_why_beside_the_terminal(ask: InEditor, editor: EditorWithTerminals, model: Model) -> None:
    model.plays(call("bash", command="echo no; exit 3"), "It failed.")
    await ask("Try")
    assert "no\n[exit code 3]" in model.told()
    terminal, why = shown(editor)
    assert terminal.type == "terminal"
    assert texts([why]) == "```\n[exit code 3]\n```"
    assert editor.of("tool_call_update")[-1].status == "failed"


async def test_a_command_is_confined_there(
    ask: InEditor, editor: EditorWithTerminals, model: Model, tmp_path: Path
) -> None:
    editor.environ |= {"EDITOR_API_KEY": SECRET, "LD_PRELOAD": "/nowhere.so"}
    outside = tmp_path / "outside"
    model.plays(call("bash", command=f"touch {outside}; env"), "Done.")
    await ask("Look around")
    assert not outside.exists()
    assert "PAGER=cat" in model.told()
    assert "EDITOR_API_KEY" not in model.told()
    assert "LD_PRELOAD=" not in model.told()
    assert SECRET not in " ".join(editor.created[0])


async def test_a_command_has_no_input_and_cannot_type_into_the_terminal(
    ask: InEditor, editor: EditorWithTerminals, model: Model
) -> None:
    model.plays(call("bash", command="cat; exec 3<>/dev/tty && echo typed >&3", unsandboxed=True), "Done.")
    await ask("Type")
    assert "/dev/tty: No such device or address\n[exit code 1]" in model.told()
    assert b"typed" not in editor.terminal.output


async def test_a_secret_is_taken_out_of_what_the_model_gets(
    ask: InEditor, home: Path, repo: Path, model: Model
) -> None:
    (home / ".env").write_text(f"ANTHROPIC_API_KEY={SECRET}\n")
    (home / ".env").chmod(0o600)
    (repo / "notes").write_text(f"the key: {SECRET}\n")
    model.plays(call("bash", command="cat notes"), "Done.")
    await ask("Read them")
    assert "the key: " in model.told()
    assert SECRET not in model.told()


async def test_what_would_run_by_itself_is_taken_out_and_shown(
    ask: InEditor, editor: EditorWithTerminals, repo: Path, model: Model
) -> None:
    model.plays(call("bash", command="echo 'make' > .envrc"), "Done.")
    await ask("Plant it")
    assert not (repo / ".envrc").exists()
    assert "taken out, because it would run by itself" in model.told()
    assert "taken out, because it would run by itself" in texts(shown(editor))
    assert any(each.type == "terminal" for each in shown(editor))


@pytest.mark.parametrize(
    "command", ["sleep 1061.5", "setsid sleep 1060.5 & sleep 1060.5"], ids=["alone", "with an escape"]
)
async def test_a_command_ends_when_its_time_is_over(
    command: str, ask: InEditor, editor: EditorWithTerminals, model: Model
) -> None:
    model.plays(call("bash", command=f"echo begun; {command}", timeout=0.5), "Too slow.")
    await ask("Wait")
    assert "[ended: it took longer than 0.5 s" in model.told()
    assert editor.calls[-3:] == ["kill", "output", "release"]
    assert not running(command[-12:])


async def test_cancelling_ends_the_command(
    connect: Connect, editor: EditorWithTerminals, repo: Path, model: Model
) -> None:
    model.plays(call("bash", command="setsid sleep 1062.5 & touch begun; sleep 1062.5"))
    async with connect(editor, terminals=True) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        turn = asyncio.create_task(prompt(agent, session, "Wait"))
        await asyncio.to_thread(wait_until, (repo / "begun").exists)
        await agent.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"
        assert not running("sleep 1062.5")
        assert editor.calls[-3:] == ["kill", "output", "release"]


async def test_the_command_ends_when_denizen_is_killed(
    editor: EditorWithTerminals, environ: dict[str, str], repo: Path, model: Model
) -> None:
    model.plays(call("bash", command="touch begun; setsid sleep 1063.5 & sleep 1063.5"))
    started = acp.spawn_agent_process(
        editor,  # pyrefly: ignore[bad-argument-type]
        *PROGRAM,
        "acp",
        env=environ,
        cwd=repo,
    )
    with suppress(ConnectionResetError):  # by the end of the program
        async with started as (agent, program):
            await agent.initialize(protocol_version=1, client_capabilities=ClientCapabilities(terminal=True))
            session = (await agent.new_session(cwd=str(repo))).session_id
            turn = asyncio.create_task(prompt(agent, session, "Wait"))
            await asyncio.to_thread(wait_until, (repo / "begun").exists)
            program.kill()
            await asyncio.to_thread(wait_until, lambda: not running("sleep 1063.5"))
            await editor.terminal.ended()
            turn.cancel()


async def test_a_command_that_the_person_ends_in_the_editor_is_checked_all_the_same(
    ask: InEditor, editor: EditorWithTerminals, repo: Path, model: Model
) -> None:
    model.plays(call("bash", command="echo make > .envrc; touch begun; sleep 1064.5"), "You ended it.")
    turn = asyncio.ensure_future(ask("Wait"))
    await asyncio.to_thread(wait_until, (repo / "begun").exists)
    editor.terminal.program.kill()
    await turn
    assert "(SIGKILL)]" in model.told()
    assert not running("sleep 1064.5")
    assert not (repo / ".envrc").exists()


async def test_a_long_output_is_cut_in_its_middle(ask: InEditor, editor: EditorWithTerminals, model: Model) -> None:
    model.plays(call("bash", command="seq 20000"), "Counted.")
    await ask("Count")
    assert "1\n2\n3\n" in model.told()
    assert "bytes left out; to see them" in model.told()
    assert "19999\n20000\n[exit code 0]" in model.told()
    assert b"10000" in editor.terminal.output


async def test_an_output_of_which_the_editor_keeps_the_end_says_so(ask: InEditor, model: Model) -> None:
    model.plays(call("bash", command="seq 200000"), "Counted.")
    await ask("Count")
    assert "[the beginning of the output is lost" in model.told()
    assert "200000\n[exit code 0]" in model.told()


async def test_a_refused_command_gets_no_terminal(ask: InEditor, editor: EditorWithTerminals, model: Model) -> None:
    editor.option = "no"
    model.plays(call("bash", command="id", unsandboxed=True), "I could not.")
    await ask("Who?")
    assert editor.asked
    assert editor.calls == []


async def test_an_approved_command_outside_the_sandbox_runs_in_a_terminal(
    ask: InEditor, editor: EditorWithTerminals, model: Model, tmp_path: Path
) -> None:
    model.plays(call("bash", command=f"touch {tmp_path}/outside", unsandboxed=True), "Done.")
    await ask("Touch it")
    assert (tmp_path / "outside").exists()
    assert "create" in editor.calls


async def test_a_background_command_gets_no_terminal(ask: InEditor, editor: EditorWithTerminals, model: Model) -> None:
    model.plays(call("bash", command="echo up; sleep 1065.5", background="server"), "It runs.")
    await ask("Serve")
    assert editor.calls == []
    assert not running("sleep 1065.5")


async def test_an_editor_without_terminals_is_not_asked_for_one(
    ask: InEditor, editor: EditorWithTerminals, model: Model
) -> None:
    model.plays(call("bash", command="echo hello"), "Done.")
    await ask("Say hello", terminals=False)
    assert "hello\n[exit code 0]" in model.told()
    assert editor.calls == []
    assert "hello" in texts(shown(editor))


class EditorThatIsSlow(EditorWithTerminals):
    """One that has made the terminal once nobody wants it any more."""

    async def create_terminal(self, command: str, args: list[str], *arguments: Any, **more: Any) -> Any:
        await asyncio.to_thread(wait_until, lambda: not Path(args[3]).exists())
        return await super().create_terminal(command, args, *arguments, **more)


@pytest.mark.parametrize("editor", [EditorThatIsSlow()], ids=[""])
async def test_a_terminal_that_comes_too_late_runs_nothing_and_is_given_back(
    ask: InEditor, editor: EditorWithTerminals, model: Model
) -> None:
    model.plays(call("bash", command="echo one >> log", timeout=1), call("bash", command="cat log"), "Done.")
    await ask("Do both")
    assert "one\n[exit code 0]" in model.told()
    assert editor.thoughts.count("Commands run without the editor's terminals") == 1
    assert editor.calls == ["create", "wait", "kill", "output", "release"]


class EditorThatRunsNothing(EditorWithTerminals):
    """One whose terminals never run what they were made for."""

    async def create_terminal(self, command: str, args: list[str], *arguments: Any, **more: Any) -> Any:
        return await super().create_terminal("/bin/sleep", ["1066.5"], *arguments, **more)


@pytest.mark.parametrize("editor", [EditorThatRunsNothing()], ids=[""])
async def test_a_command_that_its_terminal_does_not_start_in_time_runs_without(
    ask: InEditor, editor: EditorWithTerminals, model: Model
) -> None:
    model.plays(call("bash", command="echo one >> log", timeout=1), call("bash", command="cat log"), "Done.")
    await ask("Do both")
    assert "one\n[exit code 0]" in model.told()
    assert editor.thoughts.count("Commands run without the editor's terminals") == 1
    assert editor.calls.count("create") == 1
    assert not running("sleep 1066.5")


class EditorThatRefuses(EditorWithTerminals):
    async def create_terminal(self, *_: Any, **__: Any) -> Any:
        self.calls.append("create")
        raise acp.RequestError.internal_error({"details": "no more terminals"})


class EditorThatRunsOther(EditorWithTerminals):
    """One whose terminals are on another machine: the program isn't there."""

    async def create_terminal(self, command: str, *arguments: Any, **more: Any) -> Any:
        return await super().create_terminal("/bin/false", *arguments, **more)


@pytest.mark.parametrize("editor", [EditorThatRefuses(), EditorThatRunsOther()], ids=["refuses", "runs other"])
async def test_where_terminals_cannot_be_used_commands_run_without_and_that_is_said_once(
    ask: InEditor, editor: EditorWithTerminals, model: Model
) -> None:
    model.plays(call("bash", command="echo one >> log"), call("bash", command="cat log"), "Done.")
    await ask("Do both")
    assert "one\n[exit code 0]" in model.told()
    assert editor.thoughts.count("Commands run without the editor's terminals") == 1
    assert editor.calls.count("create") == 1
    assert not editor.terminals
    assert texts(shown(editor)) == "```\none\n[exit code 0]\n```"
