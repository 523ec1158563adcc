"""The generated pages of the documentation say what the code says."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "reference.py"


def test_the_reference_pages_are_those_of_the_code() -> None:
    check = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stdout + check.stderr
