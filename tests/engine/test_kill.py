"""The kill matrix: a real process dies at each durable step, and the next run goes on (decisions, "The loop")."""

from collections import Counter
from pathlib import Path

import pytest
from tests.conftest import Drive

from denizen.entries import AnyEntry, AssistantEntry, EndEntry, ToolEntry, UserEntry
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore

DRIVER = Path(__file__).with_name("kill_driver.py")
INTERRUPTED = "[Tool result missing — session was interrupted]"


async def transcript(folder: Path) -> list[AnyEntry]:
    return [*await JsonlStore(folder / "sessions", clock=SystemClock()).read("kill")]


async def test_every_step_can_be_the_last_and_the_next_run_goes_on(drive: Drive, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    finished = drive(DRIVER, whole, 0)
    assert finished.returncode == 0, finished.stderr
    steps = int(finished.stdout.splitlines()[0].removeprefix("steps="))
    assert steps > 20
    for step in range(1, steps + 1):
        folder = tmp_path / str(step)
        folder.mkdir()
        assert drive(DRIVER, folder, step).returncode == -9, f"step {step}"
        again = drive(DRIVER, folder, 0)
        assert again.returncode == 0, f"step {step}: {again.stderr}"
        await _nothing_lost_nothing_repeated(folder, again.stdout.splitlines()[-1], f"killed at step {step}")


async def test_a_process_killed_again_and_again_gets_there(drive: Drive, tmp_path: Path) -> None:
    for _ in range(200):
        run = drive(DRIVER, tmp_path, 4)
        if run.returncode == 0:
            break
    else:
        pytest.fail("it never came to an end")
    await _nothing_lost_nothing_repeated(tmp_path, run.stdout.splitlines()[-1], "killed at each fourth step")


async def _nothing_lost_nothing_repeated(folder: Path, reply: str, when: str) -> None:
    entries = await transcript(folder)
    assert sum(isinstance(entry, UserEntry) for entry in entries) == 1, when
    assert isinstance(entries[-1], EndEntry), when
    results = Counter(entry.message.call_id for entry in entries if isinstance(entry, ToolEntry))
    asked = [call.id for e in entries if isinstance(e, AssistantEntry) for call in e.message.tool_calls]
    assert sum(isinstance(entry, AssistantEntry) for entry in entries) == 3, when
    assert results == Counter(asked) == Counter({*asked}), when
    assert len(asked) == 3, when
    marks = (folder / "marks").read_text().split() if (folder / "marks").exists() else []
    assert len(marks) == len(set(marks)), f"{when}: an effect happened twice"
    for mark in ("first", "second"):
        told = f"marked {mark}" in reply
        assert told <= (mark in marks), f"{when}: told of an effect that did not happen"
    assert reply.count("marked") + reply.count(INTERRUPTED) == 2, when
