"""A task in a copy of the project that is stopped: what becomes of its changes."""

import asyncio
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.scene import Host

from denizen import Agent, Config
from denizen.checkpoints import Conflict
from denizen.engine import TurnOptions
from denizen.engine.undo import redo, undo
from denizen.events import Notice
from denizen.messages import Text, UserMessage
from denizen.ports import Answer, Control
from denizen.testing import FakeClock, ScriptedModel
from denizen.worlds.code.work import CodeTask, Outcome, TaskSpec
from denizen.worlds.code.work_in_copy import work_in_copy

MAKES = ["$(write made.txt new) $(write old.txt newer)", "Made."]
Make = Callable[[Path], Agent]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    for setting, value in (("user.name", "A Person"), ("user.email", "person@example.org")):
        subprocess.run(["git", "-C", folder, "config", setting, value], check=True)
    (folder / "old.txt").write_text("old")
    return folder


@pytest.fixture
def coder(tmp_path: Path) -> Make:
    """An agent that works in a folder; all of them share a script."""
    model = ScriptedModel(MAKES)
    return lambda folder: Agent(
        Config(home=tmp_path / "home", workspace=folder), profile="coder", model=model, clock=FakeClock()
    )


async def do(agent: Agent, host: Host, coder: Make) -> Outcome:
    session = await agent.open("s")
    try:
        said = UserMessage([Text("Make a file")])
        spec = TaskSpec(shadow=True, commits=True, repository=str(agent.workspace))
        return await work_in_copy(CodeTask(agent, session, said, host, spec, TurnOptions()), again="denizen code")
    finally:
        await session.close()


def notices(host: Host) -> Sequence[str]:
    return [notice.text for notice in host.of(Notice)]


async def test_what_is_being_applied_when_it_is_stopped_is_applied_and_can_be_undone(
    coder: Make, project: Path, host: Host
) -> None:
    async with coder(project) as agent:
        working = asyncio.create_task(do(agent, host, coder))
        while not (project / "made.txt").exists():  # noqa: ASYNC110 (nothing else tells that files are being moved)
            await asyncio.sleep(0)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert (project / "made.txt").read_text() == "new"
        *_, applied, uncommitted = notices(host)
        assert applied == "The changes are applied: made.txt, old.txt."
        assert "uncommitted" in uncommitted
        session = await agent.open("s")
        assert await undo(agent.record, session) == "Make a file"
        await session.close()
    assert not (project / "made.txt").exists()


@pytest.mark.parametrize("half", [False, True], ids=["applied", "half applied"])
async def test_killed_while_its_changes_were_applied_it_can_be_undone(
    coder: Make, project: Path, host: Host, tmp_path: Path, *, half: bool
) -> None:
    """What a crash leaves is the beginning of the transcript; some files may not be there yet."""
    async with coder(project) as agent:
        await do(agent, host, coder)
        killed_while_applying(tmp_path)
        if half:
            (project / "old.txt").write_text("old")
        session = await agent.open("s")
        assert await undo(agent.record, session) == "Make a file"
        assert (project / "old.txt").read_text() == "old"
        assert not (project / "made.txt").exists()
        assert await redo(agent.record, session) == "Make a file"
        assert (project / "made.txt").exists()
        await session.close()


async def test_killed_while_its_changes_were_applied_what_the_user_changes_later_stays(
    coder: Make, project: Path, host: Host, tmp_path: Path
) -> None:
    async with coder(project) as agent:
        await do(agent, host, coder)
        killed_while_applying(tmp_path)
        session = await agent.open("s")
        (project / "mine.txt").write_text("mine")
        assert await undo(agent.record, session) == "Make a file"
        await session.close()
    assert (project / "mine.txt").exists()


async def test_a_change_that_is_in_the_way_leaves_nothing_to_undo(coder: Make, project: Path, host: Host) -> None:
    class Typing(Host):
        """The user changes the same file as soon as there is a copy."""

        def controls(self) -> Sequence[Control]:
            (project / "old.txt").write_text("mine")
            return super().controls()

    async with coder(project) as agent:
        with pytest.raises(Conflict):
            await do(agent, Typing(), coder)
        (project / "later.txt").write_text("mine, too")
        session = await agent.open("s")
        await undo(agent.record, session)
        await session.close()
    assert (project / "old.txt").read_text() == "mine"
    assert (project / "later.txt").exists()


def killed_while_applying(folder: Path) -> None:
    """Cut the transcript off after what was kept before the changes were applied."""
    [file] = (folder / "home" / "sessions").rglob("*.jsonl")
    lines = file.read_text().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if '"label":"before"' in line)
    file.write_text("".join(lines[: last + 1]))


async def test_a_program_goes_on_with_a_task_in_its_copy(coder: Make, project: Path, host: Host) -> None:
    model = ScriptedModel(["$(write made.txt new)", "$(ask Is that all?)", "Made."])
    agent = coder(project)
    agent.record = replace(agent.record, model=model)
    outcome = await do(agent, host, coder)
    host.answer = lambda ask: Answer(ask.call_id, allow=True)
    result = await agent.run(None, session_key="s", io=host)
    assert (outcome.result.stop_reason, result.stop_reason) == ("parked", "answered")
    assert (project / "made.txt").read_text() == "new"
