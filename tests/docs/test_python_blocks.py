"""Every Python example of the documentation runs, and prints what the page says."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, blocks, name


@pytest.mark.needs("git")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_the_examples_of_a_page_run_from_top_to_bottom(page: Path, project: Path, environ: dict[str, str]) -> None:
    command = [sys.executable, "-W", "error", "-m", "tests.docs.play", str(page)]
    ran = subprocess.run(command, cwd=project, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
