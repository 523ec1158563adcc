"""A process with a working memory dies again and again, and asks the same as one that never did."""

from pathlib import Path

import pytest
from tests.conftest import Drive

DRIVER = Path(__file__).with_name("memory_driver.py")


@pytest.mark.parametrize("step", [1, 3])
def test_whatever_step_was_the_last_the_next_process_asks_the_same(drive: Drive, tmp_path: Path, step: int) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    finished = drive(DRIVER, whole, 0)
    assert finished.stdout == "It is beta.\n", finished.stderr
    deaths = 0
    while (run := drive(DRIVER, broken, step)).returncode == -9:
        deaths += 1
        assert deaths < 100, "it never came to an end"
    assert run.stdout == "It is beta.\n", run.stderr
    assert deaths > 3
    asked = (whole / "requests").read_text().splitlines()
    assert len(asked) == 4
    assert set((broken / "requests").read_text().splitlines()) == set(asked)
