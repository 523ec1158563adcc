"""A workspace and its shadow repository, outside of it."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from denizen.checkpoints import Shadow, shadow_of
from denizen.testing import FakeClock

Make = Callable[[Path], Shadow]
Tree = dict[str, tuple[str, bytes | str]]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def shadow(workspace: Path, home: Path, clock: FakeClock) -> Shadow:
    return shadow_of(workspace, home, clock=clock, environ=os.environ)


def tree(folder: Path) -> Tree:
    """Every file below a folder: what it is, and its content or where it leads; repositories' own data left out."""
    found: Tree = {}
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in [*files, *(name for name in folders if (Path(place) / name).is_symlink())]:
            path = Path(place) / name
            found[os.path.relpath(path, folder)] = _file(path)
    return found


def _file(path: Path) -> tuple[str, bytes | str]:
    if path.is_symlink():
        return "link", str(path.readlink())
    return ("executable" if path.stat().st_mode & stat.S_IXUSR else "file"), path.read_bytes()
