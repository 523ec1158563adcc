"""Which sandbox is chosen, and what all of them have in common."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from denizen.config.settings import SandboxSettings
from denizen.ports import Sandbox
from denizen.tools.sandbox import Bubblewrap, Landlock, LandlockAlone, Unconfined, choose_sandbox, problem_with

PATH = os.environ["PATH"]


def choose(path: str, home: Path) -> Sandbox:
    return choose_sandbox(SandboxSettings(), {"PATH": path}, home)


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.mark.needs("bwrap")
def test_bubblewrap_is_chosen_where_it_works(tmp_path: Path) -> None:
    assert isinstance(choose(PATH, tmp_path), Bubblewrap)


def test_bubblewrap_that_does_not_work_is_not_chosen(tmp_path: Path) -> None:
    program(tmp_path / "bin", "bwrap", "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
    path = f"{tmp_path / 'bin'}:{PATH}"
    assert not isinstance(choose(path, tmp_path), Bubblewrap)
    problem = problem_with(Bubblewrap(SandboxSettings(), {"PATH": path}, tmp_path))
    assert problem == "bwrap: No permissions to create new namespace"


def test_landlock_is_chosen_where_bubblewrap_is_missing(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/true").symlink_to(str(shutil.which("true")))
    environ = {"PATH": str(tmp_path / "bin")}
    kinds = (Landlock, LandlockAlone)
    works = [kind for kind in kinds if not problem_with(kind(SandboxSettings(), environ, tmp_path / "home"))]
    assert type(choose(environ["PATH"], tmp_path / "home")) is [*works, Unconfined][0]


def test_without_any_that_works_nothing_is_confined(tmp_path: Path) -> None:
    chosen = choose("/nowhere", tmp_path)
    assert (chosen.name, chosen.confines) == ("none", False)
    assert problem_with(Landlock(SandboxSettings(), {"PATH": "/nowhere"}, tmp_path))


ENVIRON = {
    "PATH": PATH,
    "HOME": "/somewhere",
    "LC_ALL": "C.UTF-8",
    "VIRTUAL_ENV": "/somewhere/venv",
    "ANTHROPIC_API_KEY": "key",
    "AWS_SECRET_ACCESS_KEY": "key",
    "GITHUB_TOKEN": "key",
    "SSH_AUTH_SOCK": "/somewhere",
    "DBUS_SESSION_BUS_ADDRESS": "/somewhere",
    "XDG_RUNTIME_DIR": "/somewhere",
    "LD_PRELOAD": "/somewhere",
    "BASH_ENV": "/somewhere",
    "GIT_DIR": "/somewhere",
    "PYTHONPATH": "/somewhere",
    "TERM": "xterm",
    "CHOSEN": "by the user",
}


SETTINGS = SandboxSettings(environment=["CHOSEN", "MISSING"])
EACH = [
    Bubblewrap(SETTINGS, ENVIRON, Path("/nowhere")),
    Landlock(SETTINGS, ENVIRON, Path("/nowhere")),
    Unconfined(SETTINGS, ENVIRON),
]


@pytest.mark.parametrize("sandbox", EACH, ids=lambda sandbox: sandbox.name)
def test_the_environment_is_scrubbed(sandbox: Sandbox, tmp_path: Path) -> None:
    environ = sandbox.wrap(["true"], workspace=tmp_path).environ
    kept = {name: value for name, value in environ.items() if name in ENVIRON}
    assert kept.pop("TERM") == "dumb"
    assert sorted(kept) == ["CHOSEN", "HOME", "LC_ALL", "PATH", "VIRTUAL_ENV"]


def test_a_signal_that_ends_a_supervised_command_is_told_as_shells_do(tmp_path: Path) -> None:
    command = Unconfined(SandboxSettings(), {"PATH": PATH}).wrap(["sh", "-c", "kill -TERM $$"], workspace=tmp_path)
    assert subprocess.run(command.argv, env=command.environ, check=False).returncode == 143


def test_a_program_that_is_missing_is_told(tmp_path: Path) -> None:
    command = Unconfined(SandboxSettings(), {"PATH": PATH}).wrap(["nothing-of-this-name"], workspace=tmp_path)
    ran = subprocess.run(command.argv, env=command.environ, check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr.count("nothing-of-this-name can't be run: ")) == (126, 1)
