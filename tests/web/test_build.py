"""The page that is part of the package is the one that `web/` is built into."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from denizen.worlds.chat.http.page_files import FOLDER

WEB = Path(__file__).parents[2] / "web"
MAX_BYTES = 150_000


def test_the_page_is_small() -> None:
    packed = [each.stat().st_size for each in FOLDER.rglob("*.br")]
    assert len(packed) > 5
    assert sum(packed) < MAX_BYTES


def test_the_lock_names_no_addresses() -> None:
    assert not re.search("https?:", (WEB / "package-lock.json").read_text())


def test_no_module_is_too_long_to_be_read() -> None:
    modules = [each for each in (WEB / "src").rglob("*.ts*") if each.name != "openapi.ts"]
    lengths = {each.name: len(each.read_text().splitlines()) for each in modules}
    assert [name for name, length in lengths.items() if length > 300] == []
    assert sum(lengths.values()) <= 7000


def test_a_new_build_is_the_same(tmp_path: Path) -> None:
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True) if _has_node() else None
    if version is None or not _is_new_enough(version.stdout):
        pytest.skip(
            f"building the page needs node {_needed()}: {version.stdout.strip() if version else 'there is none'}"
        )
    if not (WEB / "node_modules").is_dir():
        pytest.skip("the page's tools aren't installed: cd web && npm ci")
    command = ["node_modules/.bin/vite", "build", "--outDir", str(tmp_path / "page"), "--logLevel", "error"]
    subprocess.run(command, cwd=WEB, check=True)
    built, kept = contents(tmp_path / "page"), contents(FOLDER)
    assert sorted(built) == sorted(kept)
    assert [name for name, data in built.items() if data != kept[name]] == []


def contents(folder: Path) -> dict[str, bytes]:
    """The files, by name. Versions of node pack differently, so packed files count by their names."""
    files = [each for each in folder.rglob("*") if each.is_file()]
    return {str(each.relative_to(folder)): b"" if each.suffix == ".br" else each.read_bytes() for each in files}


def _has_node() -> bool:
    return shutil.which("node") is not None


def _needed() -> str:
    return json.loads((WEB / "package.json").read_text())["engines"]["node"]


def _is_new_enough(version: str) -> bool:
    major, minor = (int(each) for each in version.strip().removeprefix("v").split(".")[:2])
    return (major, minor) >= (22, 12) or (major == 20 and minor >= 19)
