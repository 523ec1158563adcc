"""The kill matrix of the ledger: a real process dies before and after each transaction, and the next one goes on."""

import itertools
import subprocess
import sys
from pathlib import Path

DRIVER = Path(__file__).with_name("kill_driver.py")
ALL = ["1 ann-1 re 1 pending", "2 ann-2 re 2 pending", "1 ben-1 re 1 pending"]


def drive(folder: Path, step: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, DRIVER, folder, str(step)], capture_output=True, text=True, check=False, timeout=120
    )


def test_every_transaction_can_be_the_last_and_each_message_is_answered_once_in_order(tmp_path: Path) -> None:
    for step in itertools.count(1):
        folder = tmp_path / str(step)
        folder.mkdir()
        first = drive(folder, step)
        if first.returncode == 0:
            break
        assert first.returncode == -9, first.stderr
        again = drive(folder, 0)
        assert again.stdout.splitlines() == ALL, f"killed at step {step}: {again.stderr}"
    assert step > 15
