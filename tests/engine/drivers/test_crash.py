"""What steers a turn is the same after a crash: it follows from the iterations, and nothing is said twice."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.conftest import Drive

from denizen.entries import AnyEntry, CheckpointEntry, NoteEntry, SystemEntry
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore

PROGRAM = Path(__file__).with_name("mortal.py")


def run(drive: Drive, folder: Path, step: int) -> subprocess.CompletedProcess[str]:
    if not (folder / "poems").exists():
        (folder / "poems").mkdir(parents=True)
        subprocess.run(["git", "init", "--quiet"], cwd=folder / "poems", check=True)
        (folder / "poems" / "poem.txt").write_text("Roses are red\n")
    return drive(PROGRAM, folder, step)


async def steered(folder: Path) -> Sequence[str]:
    """What the model read, and where the files were returned."""
    entries = await JsonlStore(folder / "sessions", clock=SystemClock()).read("kill")
    return [line for entry in entries if (line := _steers(entry))]


def _steers(entry: AnyEntry) -> str:
    match entry:
        case SystemEntry(text=text) | NoteEntry(text=text):
            return f"{type(entry).__name__}: {text}"
        case CheckpointEntry(label="returned"):
            return "returned"
        case _:
            return ""


@pytest.mark.needs("git")
async def test_a_turn_is_steered_the_same_wherever_its_process_dies(drive: Drive, tmp_path: Path) -> None:
    whole = run(drive, tmp_path / "whole", 0)
    assert whole.stdout.splitlines()[1:] == ["I can't."], whole.stderr
    expected = await steered(tmp_path / "whole")
    assert [line.partition(" ")[0] for line in expected] == [
        "SystemEntry:",  # make a plan
        "SystemEntry:",  # you are stuck
        "SystemEntry:",  # remember the plan
        "returned",
        "NoteEntry:",
        "SystemEntry:",  # this led nowhere
        "SystemEntry:",  # nobody can be asked
    ]
    steps = int(whole.stdout.splitlines()[0].removeprefix("steps="))
    for step in range(1, steps + 1):
        folder = tmp_path / str(step)
        assert run(drive, folder, step).returncode == -9, f"step {step}"
        again = run(drive, folder, 0)
        assert again.stdout.splitlines()[1:] == ["I can't."], f"step {step}: {again.stderr}"
        assert await steered(folder) == expected, f"killed at step {step}"
        assert (folder / "poems" / "poem.txt").read_text() == (tmp_path / "whole" / "poems" / "poem.txt").read_text()
