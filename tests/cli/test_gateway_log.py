"""The log of a gateway whose disk is full, or that has the same to say again and again."""

import subprocess
import sys
from pathlib import Path

LOGS = """
import logging, sys
from pathlib import Path
from denizen.cli.gateway.logs import log_to
from denizen.config.redact import Redactor
from tests.full_disk import file_size_limit

log_to(Path(sys.argv[1]), "gateway", Redactor())
log = logging.getLogger("test")
"""
FULL_DISK = """
with file_size_limit(0):
    for number in range(20):
        log.error("error %d", number)
log.error("there is room")
"""
REPEATED = """
for number in range(20):
    log.error("The disk is full.")
    log.error("error %d", number)
"""


def logged(home: Path, script: str) -> str:
    """What the script writes to standard error."""
    program = [sys.executable, "-c", LOGS + script, str(home)]
    return subprocess.run(program, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2]).stderr


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    shown = logged(tmp_path, FULL_DISK)
    assert "Traceback" not in shown
    assert len(shown.splitlines()) == 22
    assert shown.count("gateway.jsonl can't be written: File too large") == 1
    assert "there is room" in (tmp_path / "logs" / "gateway.jsonl").read_text()


def test_a_line_that_repeats_is_logged_once_a_minute(tmp_path: Path) -> None:
    shown = logged(tmp_path, REPEATED)
    assert shown.count("The disk is full.") == 1
    assert len(shown.splitlines()) == 21
    assert len((tmp_path / "logs" / "gateway.jsonl").read_text().splitlines()) == 21
