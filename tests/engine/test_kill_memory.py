"""A process with a working memory dies again and again, and asks the same as one that never did."""

import subprocess
import sys
from pathlib import Path

import pytest

DRIVER = Path(__file__).with_name("memory_driver.py")


def drive(folder: Path, step: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, DRIVER, folder, str(step)], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("step", [1, 3])
def test_whatever_step_was_the_last_the_next_process_asks_the_same(tmp_path: Path, step: int) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    finished = drive(whole, 0)
    assert finished.stdout == "It is beta.\n", finished.stderr
    deaths = 0
    while (run := drive(broken, step)).returncode == -9:
        deaths += 1
        assert deaths < 100, "it never came to an end"
    assert run.stdout == "It is beta.\n", run.stderr
    assert deaths > 3
    asked = (whole / "requests").read_text().splitlines()
    assert len(asked) == 4
    assert set((broken / "requests").read_text().splitlines()) == set(asked)
