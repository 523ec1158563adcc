"""A task in a copy of the project that is stopped: what becomes of its changes."""

import asyncio
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.engine.scene import Host

from denizen import Agent, Config
from denizen.engine.undo import undo
from denizen.events import Notice
from denizen.messages import Text, UserMessage
from denizen.testing import FakeClock, ScriptedModel
from denizen.worlds.code.aside import work_aside
from denizen.worlds.code.work import Job, Outcome

MAKES = ["$(write made.txt new)", "Made."]
Make = Callable[[Path], Agent]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", folder], check=True)
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
        job = Job(shadow=True, commits=True)
        return await work_aside(agent, session, said, host, job, beside=coder, again="denizen code")
    finally:
        await session.close()


def told(host: Host) -> Sequence[str]:
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
        *_, applied, uncommitted = told(host)
        assert applied == "The changes passed and are applied: made.txt."
        assert "uncommitted" in uncommitted
        session = await agent.open("s")
        assert await undo(agent, session) == "Make a file"
        await session.close()
    assert not (project / "made.txt").exists()
