"""The kill matrix of the ledger: a real process dies before and after each transaction, and the next one goes on."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Drive

DRIVER, HEARD_DRIVER = (Path(__file__).with_name(name) for name in ("kill_driver.py", "kill_heard_driver.py"))


def kill_at_every_step(drive: Drive, place_of: Callable[[int], object]) -> None:
    for step in itertools.count(1):
        place, name = place_of(step), f"ann{step}"
        first = drive(DRIVER, place, name, step)
        if first.returncode == 0:
            break
        assert first.returncode == -9, first.stderr
        again = drive(DRIVER, place, name, 0)
        replies = [f"1 {name}-1 re 1 pending", f"2 {name}-2 re 2 pending", f"1 {name}s-1 re 1 pending"]
        assert again.stdout.splitlines() == replies, f"killed at step {step}: {again.stderr}"
    assert step > 15


def test_every_transaction_can_be_the_last_and_each_message_is_answered_once_in_order(
    drive: Drive, tmp_path: Path
) -> None:
    def new_folder(step: int) -> Path:
        (folder := tmp_path / str(step)).mkdir()
        return folder

    kill_at_every_step(drive, new_folder)


def test_every_transaction_on_a_server_can_be_the_last(drive: Drive, postgres_url: str) -> None:
    kill_at_every_step(drive, lambda _: postgres_url)


@pytest.mark.parametrize("moment", ["answered", "over"])
def test_message_that_a_turn_has_heard_is_answered_with_it_though_the_process_dies_at_its_end(
    drive: Drive, home: Path, moment: str
) -> None:
    first = drive(HEARD_DRIVER, home, moment)
    assert first.returncode == -9, first.stderr
    again = drive(HEARD_DRIVER, home, "never")
    assert again.stdout.splitlines() == ["first second → both"], again.stderr
