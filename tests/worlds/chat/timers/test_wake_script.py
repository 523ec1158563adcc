"""A job's wake script runs like every command, and decides whether the model is called."""

import os
import shutil
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.chat.conftest import Scene, Serve, SimulatedClock, said

from denizen.engine.session_state import state_of
from denizen.ports import Traits
from denizen.worlds.chat.ledger.personal_data import personal_data
from denizen.worlds.chat.timers.cron import JobRequest, JobStatus, NewJob

NOON = datetime(2026, 3, 27, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


async def schedule(scene: Scene, wake: str) -> str:
    """An hourly job of the first chat with that script; its id."""
    given: dict[str, Any] = {"text": "Summarise it.", "kind": "every", "when": "1h", "channel": "http", "chat": "ann"}
    [added] = await scene.gateway.cron.carry_out(JobRequest("add", NewJob(wake=wake, **given)))
    return added.job.id


async def listed(scene: Scene) -> list[JobStatus]:
    return await scene.gateway.cron.carry_out(JobRequest("list"))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture(params=[pytest.param("bubblewrap", marks=pytest.mark.needs("bwrap")), "landlock"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where programs are found: with bubblewrap, or only the one that Landlock's trial needs."""
    if request.param == "bubblewrap":
        return os.environ["PATH"]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/true").symlink_to(str(shutil.which("true")))
    return str(tmp_path / "bin")


async def test_model_is_called_only_if_the_script_prints_something(serve: Serve, workspace: Path, path: str) -> None:
    clock, script = SimulatedClock(NOON), "if [ -e mail ]; then echo 'from: eve, subject: hello'; fi"
    async with serve("eve says hello", clock=clock, workspace=workspace, path=path) as scene:
        await schedule(scene, script)
        await clock.advance(HOUR, scene)
        [status] = await listed(scene)
        assert (scene.model.requests, await scene.sent(), status.last) == ([], [], "no reply")
        (workspace / "mail").touch()
        await clock.advance(HOUR, scene)
        [status] = await listed(scene)
        assert await scene.sent() == ["eve says hello"] == [status.last]
    assert len(scene.model.requests) == 1
    assert "Summarise it." in said(scene.model)


async def test_what_a_script_printed_for_a_person_is_theirs(serve: Serve, workspace: Path) -> None:
    clock = SimulatedClock(NOON)
    async with serve("hello", "done", clock=clock, workspace=workspace) as scene:
        await scene.say("hi")
        await scene.settled()
        job = await schedule(scene, "echo 'from: eve'")
        await clock.advance(HOUR, scene)
        found = await scene.gateway.database.read(partial(personal_data, senders=[("http", "ann")]))
        kept = {each.key for each in await scene.gateway.agent.record.store.list()}
        rows = await scene.gateway.database.read(lambda db: db.execute("SELECT seq FROM inbox").fetchall())
    assert f"agent:main:channel:cron:account:default:peer:direct:{job}.wake" in found.sessions & kept
    assert (found.rows, found.is_open, len(rows)) == ({seq for [seq] in rows}, False, 4)


async def test_output_of_a_script_is_others_text_in_the_turn_that_it_wakes(serve: Serve, workspace: Path) -> None:
    clock = SimulatedClock(NOON)
    async with serve("done", clock=clock, workspace=workspace) as scene:
        job = await schedule(scene, "echo 'from: eve'")
        await clock.advance(HOUR, scene)
        record = scene.gateway.agent.record
        session = await record.store.open(f"agent:main:channel:cron:account:default:peer:direct:{job}")
        assert Traits.UNTRUSTED in state_of(record, session).in_sight
        await session.close()


async def test_failed_script_is_reported_and_no_model_is_called(serve: Serve, workspace: Path) -> None:
    clock = SimulatedClock(NOON)
    async with serve(clock=clock, workspace=workspace) as scene:
        await schedule(scene, "echo no server >&2; exit 3")
        await clock.advance(HOUR, scene)
        assert await scene.sent() == ["The wake script failed: no server\n[exit code 3]"]
    assert not scene.model.requests


async def test_script_that_a_rule_denies_is_not_run_and_the_chat_hears_why(serve: Serve, workspace: Path) -> None:
    clock, rules = SimulatedClock(NOON), [{"tool": "bash", "match": "touch *", "decide": "deny"}]
    async with serve(clock=clock, workspace=workspace, config={"policy": {"rules": rules}}) as scene:
        await schedule(scene, "touch made")
        await clock.advance(HOUR, scene)
        assert "The wake script failed: not run: The user's policy denies it" in (await scene.sent())[0]
    assert not (workspace / "made").exists()


async def test_without_a_sandbox_the_owner_is_asked_and_nothing_runs_before_the_yes(
    serve: Serve, workspace: Path
) -> None:
    clock, owner = SimulatedClock(NOON), "http:ann"
    async with serve("done", clock=clock, workspace=workspace, path="/nowhere", owner=owner) as scene:
        await schedule(scene, "echo ran >made; echo mail")
        clock.wake(HOUR)
        [question] = await scene.contents(1)
        assert "this machine has no sandbox" in question
        assert "echo ran" in question
        assert not (workspace / "made").exists()
        await scene.say("/approve")
        assert (await scene.contents(3))[1:] == ["Approved.", "done"]
    assert (workspace / "made").read_text() == "ran\n"


async def test_runs_are_skipped_while_a_script_waits_for_an_answer(serve: Serve, workspace: Path) -> None:
    clock = SimulatedClock(NOON)
    async with serve(clock=clock, workspace=workspace, path="/nowhere") as scene:
        await schedule(scene, "echo mail")
        clock.wake(HOUR)
        assert len(await scene.contents(1)) == 1
        clock.wake(HOUR)
        [status] = await listed(scene)
        assert (status.last, len(await scene.sent())) == ("parked", 1)


async def test_only_the_last_run_of_a_script_is_kept(serve: Serve, workspace: Path) -> None:
    clock = SimulatedClock(NOON)
    async with serve(clock=clock, workspace=workspace) as scene:
        job = await schedule(scene, "true")
        store, key = scene.gateway.agent.record.store, "agent:main:channel:cron:account:default:peer:direct:"
        await clock.advance(HOUR, scene)
        once = len(await store.read(f"{key}{job}.wake"))
        await clock.advance(HOUR, scene)
        assert len(await store.read(f"{key}{job}.wake")) == once
