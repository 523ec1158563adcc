"""What was spent, in a file that several processes share."""

import gc
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from denizen.errors import DenizenError
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


def test_file_that_nobody_closes_warns_about_nothing(tmp_path: Path) -> None:
    """Python 3.13 and later warn of SQLite connections that are collected while they are open."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        SpendFile(tmp_path / "spend.db").add({"day": 1.0})
        gc.collect()
    assert found == []


def test_threads_count_while_another_closes_the_file(tmp_path: Path) -> None:
    sums, problems = SpendFile(tmp_path / "spend.db"), list[Exception]()

    def count() -> None:
        for _ in range(300):
            try:
                sums.add({"day": 1.0})
            except DenizenError as error:
                problems.append(error)

    def close() -> None:
        for _ in range(300):
            sums.close()

    threads = [threading.Thread(target=work) for work in (count, count, close)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (sums.read(["day"]), problems) == ({"day": 600.0}, [])
    sums.close()
