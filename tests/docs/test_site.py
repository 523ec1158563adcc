"""The documentation can be built: every link and every anchor leads somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    options = ["--strict", "--site-dir", str(tmp_path)]  # not --quiet: it hides warnings from --strict, too
    command = [sys.executable, "-m", "mkdocs", "build", *options]
    environ = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert (tmp_path / "index.html").exists()


def test_the_readme_links_to_what_there_is() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if not link.startswith("http")]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
