"""Which folders are trusted, and what is asked about."""

import subprocess
import sys
from pathlib import Path

import pytest

from denizen.config.home import located
from denizen.config.settings import Config
from denizen.config.trust import awaiting_trust, is_trusted, trust
from denizen.errors import ConfigError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / "inner").mkdir(parents=True)
    (tmp_path / "project" / "denizen.toml").write_text('model = "a:b"')
    return tmp_path / "project"


def config_for(home: Path, project: Path) -> Config:
    return located(Config(home=home, workspace=project), environ={}, cwd=project)


def test_nothing_is_trusted_at_first(home: Path, project: Path) -> None:
    assert not is_trusted(home, project)


def test_a_folder_is_trusted_alone(home: Path, project: Path) -> None:
    trust(home, project)
    assert is_trusted(home, project)
    assert not is_trusted(home, project.parent)
    assert not is_trusted(home, project / "inner")


def test_a_folder_is_the_same_by_whatever_path(home: Path, project: Path) -> None:
    link = project.parent / "link"
    link.symlink_to(project)
    trust(home, link)
    assert is_trusted(home, project)
    assert is_trusted(home, project / "inner" / "..")


def test_a_link_that_was_turned_elsewhere_is_not_trusted(home: Path, project: Path, tmp_path: Path) -> None:
    link = project.parent / "link"
    link.symlink_to(project)
    trust(home, link)
    link.unlink()
    link.symlink_to(project / "inner")
    assert not is_trusted(home, link)


@pytest.mark.parametrize("change", ["changed", "came", "went"])
def test_other_settings_want_the_users_word_again(home: Path, project: Path, change: str) -> None:
    settings = project / "denizen.toml"
    if change == "came":
        settings.unlink()
    trust(home, project)
    settings.unlink() if change == "went" else settings.write_text('model = "c:d"')
    assert not is_trusted(home, project)


def test_a_refusal_is_remembered_until_the_settings_change(home: Path, project: Path) -> None:
    trust(home, project, trusted=False)
    assert not is_trusted(home, project)
    assert awaiting_trust(config_for(home, project)) == []
    (project / "denizen.toml").write_text('model = "c:d"')
    assert awaiting_trust(config_for(home, project)) == ["denizen.toml"]


def test_trust_is_asked_for_what_could_run_something(home: Path, project: Path) -> None:
    (project / ".claude" / "skills" / "deploy").mkdir(parents=True)
    (project / ".claude" / "skills" / "deploy" / "SKILL.md").write_text("")
    (project / "skills").mkdir()  # a folder of that name without any skill
    assert awaiting_trust(config_for(home, project)) == ["denizen.toml", ".claude/skills"]
    trust(home, project)
    assert awaiting_trust(config_for(home, project)) == []


def test_trust_is_not_asked_for_a_folder_with_nothing_to_run(home: Path, project: Path) -> None:
    assert awaiting_trust(config_for(home, project / "inner")) == []


def test_the_users_own_skills_want_no_trust(home: Path) -> None:
    (home / "workspace" / "skills" / "mine").mkdir(parents=True)
    (home / "workspace" / "skills" / "mine" / "SKILL.md").write_text("")
    assert awaiting_trust(config_for(home, home / "workspace")) == []


def test_the_record_is_private(home: Path, project: Path) -> None:
    trust(home, project)
    assert (home / "trust.json").stat().st_mode & 0o777 == 0o600


def test_a_damaged_record_trusts_nothing_and_says_so(home: Path, project: Path) -> None:
    trust(home, project)
    (home / "trust.json").write_text('{"')
    with pytest.raises(ConfigError, match=r"trust\.json is damaged.*Remove it"):
        is_trusted(home, project)


def test_only_a_folder_can_be_trusted(home: Path, project: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder"):
        trust(home, project / "denizen.toml")


def test_processes_that_trust_at_once_lose_nothing(home: Path, tmp_path: Path) -> None:
    folders = [tmp_path / f"project {number}" for number in range(12)]
    for folder in folders:
        folder.mkdir()
    script = (
        "import sys, pathlib\n"
        "from denizen.config.trust import trust\n"
        "for folder in sys.argv[2:]: trust(pathlib.Path(sys.argv[1]), pathlib.Path(folder))\n"
    )
    halves = [[sys.executable, "-c", script, home, *folders[first::2]] for first in (0, 1)]
    running = [subprocess.Popen(half) for half in halves]
    assert [process.wait(60) for process in running] == [0, 0]
    assert all(is_trusted(home, folder) for folder in folders)


def test_other_servers_want_the_users_word_again(home: Path, project: Path) -> None:
    trust(home, project)
    (project / ".mcp.json").write_text("{}")
    assert not is_trusted(home, project)
    assert awaiting_trust(config_for(home, project)) == ["denizen.toml", ".mcp.json"]
    trust(home, project)
    assert is_trusted(home, project)
