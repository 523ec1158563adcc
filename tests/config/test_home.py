"""Where the home and the workspace are, and how files are kept there."""

from pathlib import Path

import pytest

from denizen.config.home import (
    ensure_home,
    find_home,
    located,
    places,
    private_folder,
    workspace_for,
)
from denizen.config.settings import AgentSettings, Config
from denizen.errors import ConfigError


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture
def user(tmp_path: Path) -> Path:
    (tmp_path / "user").mkdir()
    return tmp_path / "user"


def config_in(user: Path) -> Config:
    return located(Config(), environ={"HOME": str(user)}, cwd=user)


def repository(folder: Path) -> Path:
    (folder / ".git").mkdir(parents=True)
    return folder


# The home


@pytest.mark.parametrize(
    ("chosen", "variable", "found"),
    [
        (None, None, "user/.denizen"),
        (None, "", "user/.denizen"),
        (None, "~/there", "user/there"),
        (None, "there", "there"),
        ("~/here", "~/there", "user/here"),
    ],
)
def test_the_home_is_the_chosen_one_else_the_variables_else_the_default(
    tmp_path: Path, user: Path, chosen: str | None, variable: str | None, found: str
) -> None:
    environ = {"HOME": str(user)} | ({} if variable is None else {"DENIZEN_HOME": variable})
    assert find_home(environ, tmp_path, Path(chosen) if chosen else None) == tmp_path / found


def test_the_home_is_made_for_the_user_alone(tmp_path: Path) -> None:
    home = tmp_path / "a" / "home"
    ensure_home(home)
    assert [mode(home), mode(home / "workspace")] == [0o700, 0o700]
    ensure_home(home)


def test_a_folder_that_exists_keeps_its_rights(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    private_folder(tmp_path)
    assert mode(tmp_path) == 0o755


def test_a_file_in_place_of_the_home_is_reported(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(ConfigError, match="home can't be created"):
        ensure_home(tmp_path / "home")


def test_paths_of_a_bare_configuration_are_found(user: Path) -> None:
    config = config_in(user)
    assert places(config) == (user / ".denizen", user / ".denizen" / "workspace")
    assert located(config, environ={"HOME": "/elsewhere"}, cwd=Path("/")) == config


def test_missing_places_are_reported() -> None:
    with pytest.raises(ConfigError, match="no home and no workspace"):
        places(Config())


# The workspace


@pytest.mark.parametrize("below", [".", "src", "src/deep/er"])
def test_inside_a_git_repository_the_workspace_is_its_root(user: Path, below: str) -> None:
    root = repository(user / "project")
    (root / below).mkdir(parents=True, exist_ok=True)
    assert workspace_for(root / below, config_in(user), border=user) == root


def test_a_worktree_and_a_submodule_are_repositories(user: Path) -> None:
    (user / "tree").mkdir()
    (user / "tree" / ".git").write_text("gitdir: /somewhere")
    assert workspace_for(user / "tree", config_in(user), border=user) == user / "tree"


def test_a_repository_inside_another_is_its_own(user: Path) -> None:
    inner = repository(repository(user / "outer") / "inner")
    assert workspace_for(inner, config_in(user), border=user) == inner


def test_elsewhere_it_is_the_agents_own(user: Path) -> None:
    config = config_in(user)
    assert workspace_for(user, config, border=user) == config.agent.workspace_dir


def test_the_users_whole_home_directory_is_never_the_workspace(user: Path) -> None:
    repository(user)  # as those have it who keep their dotfiles in git
    (user / "notes").mkdir()
    config = config_in(user)
    assert workspace_for(user / "notes", config, border=user) == config.agent.workspace_dir
    assert workspace_for(user, config, border=user) == config.agent.workspace_dir


def test_the_home_is_never_the_workspace(user: Path) -> None:
    home = repository(user / ".denizen")
    (home / "workspace").mkdir()
    config = config_in(user)
    assert workspace_for(home / "workspace", config, border=user) == config.agent.workspace_dir
    with pytest.raises(ConfigError, match="that is the home"):
        workspace_for(user, config, home)


def test_a_workspace_that_is_named_wins(user: Path) -> None:
    root = repository(user / "project")
    (user / "other").mkdir()
    assert workspace_for(root, config_in(user), Path("../other")) == user / "other"


def test_a_workspace_that_is_not_a_folder_is_refused(user: Path) -> None:
    with pytest.raises(ConfigError, match="missing is not a folder"):
        workspace_for(user, config_in(user), Path("missing"))


def test_a_workspace_in_the_configuration_is_kept(user: Path) -> None:
    config = Config(workspace=user, agent=AgentSettings(workspace_dir=user / "own"))
    assert located(config, environ={"HOME": str(user)}, cwd=user).workspace == user
