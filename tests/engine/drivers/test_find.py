"""Which driver a name means, and what is said of one that can't be."""

import sys
from pathlib import Path

import pytest

from denizen.engine.record import NewDriver
from denizen.errors import ConfigError
from denizen.worlds.drivers import DRIVERS, find_driver

GOOD = """
from denizen.ports import Action, Driver, Iteration, Proceed, View


class Mine:
    def decide(self, view: View) -> Action:
        return Proceed()

    def observe(self, iteration: Iteration) -> None:
        pass
"""


def find(name: str, home: Path) -> NewDriver:
    return find_driver(name, home=home, environ={"HOME": str(home / "user")}).new


@pytest.mark.parametrize("name", DRIVERS)
def test_ours_by_their_names(tmp_path: Path, name: str) -> None:
    assert find(name, tmp_path) is DRIVERS[name].new


@pytest.mark.parametrize("name", ["mine.py", "./mine.py", "~/mine.py", "drivers/mine.py"])
def test_one_in_a_file(tmp_path: Path, name: str) -> None:
    for folder in (tmp_path, tmp_path / "user", tmp_path / "drivers"):
        folder.mkdir(exist_ok=True)
        (folder / "mine.py").write_text(GOOD)
    assert type(find(name, tmp_path)()).__name__ == "Mine"
    assert "mine" not in sys.modules


def test_one_at_an_absolute_path(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(GOOD)
    assert type(find(str(tmp_path / "mine.py"), tmp_path / "home")()).__name__ == "Mine"


def test_a_file_may_hold_dataclasses(tmp_path: Path) -> None:
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\n" + GOOD.replace(
        "class Mine:", "@dataclass\nclass Mine:\n    count: int = 0\n"
    )
    (tmp_path / "mine.py").write_text(text)
    assert find("mine.py", tmp_path)()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "There is no driver in"),
        ("x = 1", "must define one class with decide.. and observe..; it defines none"),
        (GOOD + GOOD.replace("Mine", "Yours"), "it defines Mine, Yours"),
        ("import nowhere_to_be", "can't be loaded: ModuleNotFoundError: No module named 'nowhere_to_be'"),
        ("class Mine", "can't be loaded: SyntaxError"),
    ],
)
def test_a_file_without_one_is_refused(tmp_path: Path, text: str | None, why: str) -> None:
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    with pytest.raises(ConfigError, match=why):
        find("mine.py", tmp_path)


def test_an_unknown_name_is_answered_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"There is no driver 'planing'\. Available: simple, planning, reflective"):
        find("planing", tmp_path)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is installed, with a driver that works and two that don't."""
    info = tmp_path / "site" / "acme-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    entries = "acme = acme_driver:Mine\ngone = nowhere_to_be:Mine\nodd = acme_driver:__name__\n"
    (info / "entry_points.txt").write_text(f"[denizen.drivers]\n{entries}")
    (tmp_path / "site" / "acme_driver.py").write_text(GOOD)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


@pytest.mark.usefixtures("package")
def test_one_of_a_package(tmp_path: Path) -> None:
    assert type(find("acme", tmp_path)()).__name__ == "Mine"


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(("name", "why"), [("gone", "can't be loaded"), ("odd", "isn't a class")])
def test_a_package_that_is_broken_is_named(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"'{name}'.* {why}"):
        find(name, tmp_path)
