"""What was spent, in a file that several processes share."""

import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from denizen.sessions.spend_file import SpendFile

FIRST_WRITERS = Path(__file__).parents[1] / "first_writers.py"


def test_several_that_make_the_file_at_once_all_add_their_sum(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, FIRST_WRITERS, "spend", tmp_path], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [sum_of(path) for path in tmp_path.glob("*.db")] == [{"day": 4.0}] * 20


def sum_of(path: Path) -> Mapping[str, float]:
    with closing(SpendFile(path)) as spent:
        return spent.read(["day"])
