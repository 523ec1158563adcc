"""The project keeps its promises about itself: one version, complete pins, nothing that names a machine."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import denizen

ROOT = Path(__file__).parent.parent
LOCKS = [ROOT / "requirements/run.txt", ROOT / "requirements/dev.txt"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RECORDED = ("tests/data/", "benchmarks/results/")

REGISTRIES = re.compile(r"\b(?:pypi|pythonhosted|npmjs|deb\.debian)\.org\b")
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:work|root|farm|Users)/\w|/opt/(?:pypi|wheels)")


def pins(lock: Path) -> list[str]:
    """The lock's requirements, each with the hashes that follow it."""
    text = lock.read_text().replace("\\\n", "")
    return [line for line in text.splitlines() if not line.startswith("#")]


def tracked_texts() -> list[tuple[str, str]]:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = [name for name in names.split("\0") if name and not name.startswith(RECORDED) and (ROOT / name).is_file()]
    return [(name, (ROOT / name).read_text(errors="replace")) for name in paths]


def test_the_package_and_the_project_have_one_version() -> None:
    assert denizen.__version__ == PROJECT["version"]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_pin_is_exact_and_hashed(lock: Path) -> None:
    assert pins(lock)
    for pin in pins(lock):
        assert re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", pin)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_the_pins_satisfy_the_project(lock: Path) -> None:
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", lock.read_text(), re.MULTILINE))
    for wanted in map(Requirement, PROJECT["dependencies"]):
        assert wanted.specifier.contains(pinned[wanted.name.replace("_", "-")])


@pytest.mark.needs("git")
@pytest.mark.parametrize("forbidden", [REGISTRIES, MACHINE_PATHS], ids=["registries", "machine paths"])
def test_no_file_names(forbidden: re.Pattern[str]) -> None:
    assert [name for name, text in tracked_texts() if forbidden.search(text)] == []
