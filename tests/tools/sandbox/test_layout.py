"""Which places a command sees, whatever the settings and the environment say."""

import os
from pathlib import Path

import pytest

from denizen.config.settings import SandboxSettings
from denizen.tools.sandbox.layout import Layout, layout
from denizen.trusted.guard import Guard


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A home directory with a workspace, Denizen's home, and a few folders."""
    user = tmp_path / "user"
    for name in ("work/.git", ".denizen", ".pyenv/versions/3.13/bin", "venvs/mine/bin", ".cargo"):
        (user / name).mkdir(parents=True)
    return user


def laid_out(user: Path, *toolchains: str, network: bool = False, **environ: str) -> Layout:
    settings = SandboxSettings(toolchains=[*toolchains])
    return layout(user / "work", settings, {"HOME": str(user), **environ}, user / ".denizen", network=network)


def protected(user: Path) -> tuple[Path, ...]:
    guard = Guard(user / "work", set(), {"HOME": str(user), "PATH": os.environ["PATH"]})
    guard.before()
    return guard.protected


def shown(places: Layout, user: Path) -> list[str]:
    return [str(place.relative_to(user)) for place in places.shown if place.is_relative_to(user)]


def test_toolchains_that_are_there_are_shown(user: Path) -> None:
    assert shown(laid_out(user, ".pyenv", ".rustup", ".cargo"), user) == [".pyenv", ".cargo"]


def test_a_toolchain_that_is_a_link_is_shown_under_its_name(user: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (user / ".nvm").symlink_to(tmp_path / "elsewhere")
    assert shown(laid_out(user, ".nvm"), user) == [".nvm"]


@pytest.mark.parametrize("toolchain", ["", ".", "..", "/", "link", ".denizen", "work/../.."])
def test_no_toolchain_shows_the_home_or_denizens_own(user: Path, toolchain: str) -> None:
    (user / "link").symlink_to(user)
    assert shown(laid_out(user, toolchain), user) == []


def test_the_python_environment_is_shown_with_its_interpreter(user: Path) -> None:
    (user / ".pyenv/versions/3.13/bin/python").touch()
    (user / "venvs/mine/bin/python").symlink_to(user / ".pyenv/versions/3.13/bin/python")
    places = laid_out(user, VIRTUAL_ENV=str(user / "venvs/mine"))
    assert shown(places, user) == ["venvs/mine", ".pyenv/versions/3.13"]


def test_an_environment_in_the_workspace_shows_nothing_else(user: Path) -> None:
    (user / "work/.venv/bin").mkdir(parents=True)
    (user / "work/.venv/bin/python").symlink_to(user / ".pyenv/versions/3.13/bin/python")
    assert shown(laid_out(user, VIRTUAL_ENV=str(user / "work/.venv")), user) == []


@pytest.mark.parametrize("place", ["", "relative", "/", "/nowhere"])
def test_an_environment_that_is_none_shows_nothing(user: Path, place: str) -> None:
    assert shown(laid_out(user, CONDA_PREFIX=place), user) == []


def test_keys_in_toolchains_are_secret(user: Path) -> None:
    (user / ".cargo/credentials.toml").touch()
    assert laid_out(user, ".cargo").secret == (user / ".cargo/credentials.toml",)


def test_the_home_and_denizens_own_are_hidden_and_so_are_other_peoples(user: Path) -> None:
    hidden = laid_out(user).hidden
    assert {user, user / ".denizen", Path("/tmp"), Path("/run")} <= set(hidden)
    assert all(place in hidden for place in (Path("/home"), Path("/root")) if place.is_dir())


def test_a_home_that_is_the_root_of_everything_hides_only_the_usual(user: Path) -> None:
    places = layout(user / "work", SandboxSettings(), {"HOME": "/"}, user / ".denizen")
    assert Path("/") not in places.hidden


def test_what_is_protected_is_what_is_there(user: Path) -> None:
    assert protected(user) == (user / "work/.git",)
    (user / "work/denizen.toml").touch()
    (user / "work/.denizen").mkdir()
    assert protected(user) == tuple(user / "work" / name for name in (".denizen", ".git", "denizen.toml"))


def test_gits_data_under_another_name_in_the_workspace_is_protected(user: Path) -> None:
    (user / "work/.git").rmdir()
    (user / "work/.git").write_text("gitdir: ./.bare\n")
    (user / "work/.bare").mkdir()
    assert protected(user) == (user / "work/.bare", user / "work/.git")


def test_hooks_in_the_workspace_are_protected_like_gits_own(user: Path) -> None:
    (user / "work/.git/config").write_text('[core]\n\tbare = false\n\thooksPath = ".githooks"\n')
    (user / "work/.githooks").mkdir()
    assert protected(user) == (user / "work/.git", user / "work/.githooks")


def test_what_only_reads_sees_programs_and_the_workspace(user: Path) -> None:
    places = layout(user / "work", SandboxSettings(), {"HOME": str(user)}, user / ".denizen", read_only=True)
    assert not places.writable
    assert places.hides(Path("/etc/passwd"))
    assert places.hides(user / "notes")
    assert not places.hides(Path("/usr/bin"))
    assert not places.hides(user / "work/src")


def test_of_what_holds_each_other_the_inner_one_counts(user: Path) -> None:
    places = laid_out(user, ".cargo")
    assert not places.hides(user / ".cargo/bin")
    assert places.hides(user / ".local/bin")
    assert not places.hides(Path("/opt/bin"))
