"""A reader of the documentation: a home of their own, no keys, and a small project to try things on."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.docs.pages import ROOT

SHOP = '''\
"""A shop."""

PRICES = {"lamp": 40, "desk": 250}


def total(articles):
    """What some articles cost together."""
    return sum(PRICES[article] for article in articles)
'''


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """The reader's environment: no keys, and no model server of this machine either."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "denizen.toml").write_text('model = "offline"\n')
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "DENIZEN_HOME": str(tmp_path / "home"),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'docs' / 'examples'}",
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A git repository with a few files that the pages speak of."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (tmp_path / "borrowed").mkdir()
    (folder / "shop.py").write_text(SHOP)
    (folder / "README.md").write_text("# Shop\n\nPrices of furniture.\n")
    (folder / "schema.json").write_text('{"type": "object"}')
    (folder / "screenshot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    return folder
