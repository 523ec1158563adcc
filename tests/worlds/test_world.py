"""Worlds that other packages bring."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from denizen.config.load import load
from denizen.errors import ConfigError
from denizen.worlds.world import find_world

Install = Callable[[str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a package whose module `garden_world` holds that text and brings the world `garden`."""

    def install(module: str) -> None:
        info = tmp_path / "site" / "garden-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: garden\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[denizen.worlds]\ngarden = garden_world:WORLD\n")
        (info.parent / "garden_world.py").write_text(module)
        monkeypatch.syspath_prepend(str(info.parent))
        monkeypatch.delitem(sys.modules, "garden_world", raising=False)

    return install


BROKEN = [
    ("raise SystemExit(3)", "can't be loaded: SystemExit 3; update or remove it"),
    ("import sys; sys.exit()", "can't be loaded: SystemExit; update or remove it"),
    ("raise OSError('no spade')", "can't be loaded: no spade; update or remove it"),
    ("WORLD = 'Eden'", "isn't a world"),
]


@pytest.mark.parametrize(("module", "why"), BROKEN)
def test_a_world_that_cannot_be_used_is_named(install: Install, module: str, why: str) -> None:
    install(module)
    with pytest.raises(ConfigError, match=f"'garden' of garden {why}"):
        find_world("gardener")


@pytest.mark.parametrize(("module", "why"), BROKEN[:3])
def test_a_world_whose_table_cannot_be_read_is_named(install: Install, tmp_path: Path, module: str, why: str) -> None:
    install(module)
    (tmp_path / "denizen.toml").write_text("[garden]\nbeds = 3\n")
    with pytest.raises(ConfigError, match=f"'garden' of garden {why}"):
        load(tmp_path / "denizen.toml", environ={"HOME": str(tmp_path)})
