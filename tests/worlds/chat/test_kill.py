"""The kill matrix of the ledger: a real process dies before and after each transaction, and the next one goes on."""

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import postgres

DRIVER = Path(__file__).with_name("kill_driver.py")
ALL = ["1 ann-1 re 1 pending", "2 ann-2 re 2 pending", "1 ben-1 re 1 pending"]


def drive(place: str, step: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, DRIVER, place, str(step)], capture_output=True, text=True, check=False, timeout=120
    )


def kill_at_every_step(new_place: Callable[[], str]) -> None:
    for step in itertools.count(1):
        place = new_place()
        first = drive(place, step)
        if first.returncode == 0:
            break
        assert first.returncode == -9, first.stderr
        again = drive(place, 0)
        assert again.stdout.splitlines() == ALL, f"killed at step {step}: {again.stderr}"
    assert step > 15


def test_every_transaction_can_be_the_last_and_each_message_is_answered_once_in_order(tmp_path: Path) -> None:
    numbers = itertools.count()

    def new_folder() -> str:
        (folder := tmp_path / str(next(numbers))).mkdir()
        return str(folder)

    kill_at_every_step(new_folder)


def test_every_transaction_on_a_server_can_be_the_last(postgres_server: str, request: pytest.FixtureRequest) -> None:
    def new_database() -> str:
        url = postgres.new_database(postgres_server)
        request.addfinalizer(lambda: postgres.drop_database(url))
        return url

    kill_at_every_step(new_database)
