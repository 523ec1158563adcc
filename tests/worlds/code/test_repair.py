"""A real project is repaired: a test fails, code is edited, the checks pass, the change is committed; all of it under
both action formats, undone, and gone on with after a crash."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engine.scene import Host

from denizen import Agent, Config
from denizen.config.settings import AgentSettings, SandboxSettings
from denizen.engine import TurnOptions
from denizen.engine.undo import redo, undo
from denizen.messages import AssistantMessage, AssistantPart, Text, ToolCall, UserMessage
from denizen.ports import Answer, Ask, Parked
from denizen.testing import FakeClock, ScriptedModel
from denizen.worlds.code.commit import commit, message_of
from denizen.worlds.code.work import CodeTask, Outcome, TaskSpec, work

BROKEN = Path(__file__).parents[2] / "data" / "repair" / "iniconfig"
CHECK = "PYTHONPATH=src python3 check.py"
TASK = "test_parse_strips_inline_comments fails. Fix it."
OLD = "        value = value.strip()\n"
NEW = (
    "        value = value.strip()\n"
    "        if strip_inline_comments:\n"
    "            for c in COMMENTCHARS:\n"
    "                value = value.split(c)[0].rstrip()\n"
)
ANSWER = (
    "Values keep no comments now.\n\n## Commit\nStrip inline comments from values\n\n"
    "parse() promises it, and only did it for continuations."
)

SHELL = [
    f"Let me see what fails, and where.\n$(run {CHECK})\n$(text-search strip_inline_comments --in src)",
    (
        "$(note _parseline in src/iniconfig/_parse.py doesn't strip comments from values)\n"
        "$(view src/iniconfig/_parse.py/_parseline)"
    ),
    f"$(replace src/iniconfig/_parse.py '{OLD}' '{NEW}')",
    f"$(done {ANSWER})",
]


def native(*calls: tuple[str, dict[str, Any]]) -> AssistantMessage:
    parts: list[AssistantPart] = [ToolCall(f"{name}-{number}", name, args) for number, (name, args) in enumerate(calls)]
    return AssistantMessage(parts, stop_reason="tool_calls")


NATIVE = [
    native(("bash", {"command": CHECK}), ("grep", {"pattern": "strip_inline_comments", "path": "src"})),
    native(
        ("note", {"text": "_parseline in src/iniconfig/_parse.py doesn't strip comments from values"}),
        ("view", {"path": "src/iniconfig/_parse.py/_parseline"}),
    ),
    native(("edit", {"path": "src/iniconfig/_parse.py", "old": OLD, "new": NEW})),
    AssistantMessage([Text(ANSWER)]),
]
SCRIPTS = {"shell": SHELL, "native": NATIVE}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "iniconfig"
    shutil.copytree(BROKEN, folder)
    shutil.copy(BROKEN.parent / "check.py", folder)
    (folder / ".gitignore").write_text("__pycache__/\n")
    # the python3 of the checks may be in another user's home, which sandboxed commands don't see
    monkeypatch.setenv("PATH", f"{sys.base_prefix}/bin", prepend=os.pathsep)
    for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"):
        monkeypatch.setenv(name, "A Person")
    for name in ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "person@example.org")
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "As it was")
    return folder


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def coder(tmp_path: Path, project: Path) -> Callable[..., Agent]:
    def make(replies: Sequence[Any], actions: str = "shell") -> Agent:
        settings = AgentSettings(actions=actions)  # pyrefly: ignore[bad-argument-type]
        sandbox = SandboxSettings(toolchains=[sys.base_prefix])
        config = Config(home=tmp_path / "home", workspace=project, agent=settings, sandbox=sandbox)
        return Agent(config, profile="coder", model=ScriptedModel(replies), clock=FakeClock())

    return make


async def repair(agent: Agent, host: Host, message: str | None = TASK, **how: Any) -> Outcome:
    spec = TaskSpec(validators=[CHECK], **how)
    session = await agent.open("repair")
    try:
        said = UserMessage([Text(message)]) if message else None
        return await work(CodeTask(agent, session, said, host, spec, TurnOptions()))
    finally:
        await session.close()


def passes(project: Path) -> bool:
    return subprocess.run(CHECK, shell=True, cwd=project, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("actions", SCRIPTS)
async def test_a_failing_test_is_fixed_checked_and_committed(
    coder: Callable[..., Agent], project: Path, host: Host, actions: str
) -> None:
    assert not passes(project)
    async with coder(SCRIPTS[actions], actions) as agent:
        outcome = await repair(agent, host, commits=True)
        assert outcome.done, outcome.failed
        assert outcome.result.iterations == 4
        assert outcome.changed == ["src/iniconfig/_parse.py"]
        message = message_of(TASK, outcome.result.reply)
        await commit(project, outcome.changed, message, agent.record.environ, repository=project)
    assert passes(project)
    assert git(project, "log", "-1", "--format=%B").strip() == (
        "Strip inline comments from values\n\nparse() promises it, and only did it for continuations."
    )
    assert git(project, "show", "--stat", "--format=").count("|") == 1
    assert git(project, "status", "--porcelain") == ""


@pytest.mark.parametrize("actions", SCRIPTS)
async def test_the_repair_is_undone_and_done_again(
    coder: Callable[..., Agent], project: Path, host: Host, actions: str
) -> None:
    async with coder(SCRIPTS[actions], actions) as agent:
        await repair(agent, host)
        fixed = (project / "src/iniconfig/_parse.py").read_text()
        session = await agent.open("repair")
        assert await undo(agent.record, session) == TASK
        assert git(project, "status", "--porcelain") == ""
        await redo(agent.record, session)
        assert (project / "src/iniconfig/_parse.py").read_text() == fixed
        await session.close()


@pytest.mark.parametrize("actions", SCRIPTS)
async def test_what_fails_the_check_goes_back_to_the_model(
    coder: Callable[..., Agent], host: Host, actions: str
) -> None:
    script = SCRIPTS[actions]
    async with coder([script[0], "It is done.", *script[1:]], actions) as agent:
        outcome = await repair(agent, host)
        assert outcome.done
        seen = str(agent.model.requests[2].messages)  # pyrefly: ignore[missing-attribute]
    assert "Fix the cause." in seen
    assert "test_parse_strips_inline_comments" in seen


async def test_a_task_that_never_passes_is_rolled_back(coder: Callable[..., Agent], project: Path, host: Host) -> None:
    spoils = "$(write src/iniconfig/_parse.py 'not python(')\n$(write made.txt x)\n$(done I rewrote it.)"
    async with coder([spoils, "Done.", "Done."], "shell") as agent:
        outcome = await repair(agent, host, rollback=True)
    assert not outcome.done
    assert outcome.rolled_back
    assert outcome.failed
    assert git(project, "status", "--porcelain") == ""


async def test_a_task_that_is_gone_on_with_and_fails_its_check_ends_with_an_error(
    coder: Callable[..., Agent], host: Host
) -> None:
    def answer(request: Ask) -> Answer | Parked:
        return Parked() if request.question == "Which one?" else Answer(request.call_id, allow=True, text="the first")

    async with coder(["$(ask Which one?)", "$(done Fixed.)"]) as agent:
        host.answer = answer
        assert (await repair(agent, host, tries=1)).result.stop_reason == "parked"
        host.answer = lambda request: Answer(request.call_id, allow=True, text="the first")
        result = await agent.run(None, session_key="repair", io=host)
    assert (result.reply, result.stop_reason) == ("Fixed.", "error")
    assert f"{CHECK} fails" in result.error


@pytest.mark.parametrize("actions", SCRIPTS)
async def test_a_repair_that_a_crash_cut_off_goes_on_where_it_was(
    coder: Callable[..., Agent], project: Path, host: Host, actions: str
) -> None:
    script = SCRIPTS[actions]
    async with coder(script[:2], actions) as agent:  # the model dies after two replies, and the process with it
        session = await agent.open("repair")
        killed = agent.store.path(session.key)  # pyrefly: ignore[missing-attribute]
        await session.close()
        with pytest.raises(Exception, match=r"."):
            await repair(agent, host)
        lines = killed.read_bytes().splitlines(keepends=True)
    killed.write_bytes(b"".join(line for line in lines if b'"type":"end"' not in line))
    async with coder(script[2:], actions) as agent:
        outcome = await repair(agent, host, None)
        assert outcome.done
        seen = str(agent.model.requests[0].messages)  # pyrefly: ignore[missing-attribute]
    assert "doesn't strip comments from values" in seen
    assert passes(project)
