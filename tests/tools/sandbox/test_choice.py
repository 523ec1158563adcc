"""Which sandbox is chosen, and what all of them have in common."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

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


SECRET = "r4nd0m-and-long"
KEPT_OUT = {
    "ANTHROPIC_API_KEY": SECRET,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "GITHUB_TOKEN": SECRET,
    "DATABASE_URL": "postgres://shop:s3cr3t-word@db/shop",
    "MAILER": "sk-ant-" + "a1" * 20,
    "COPY": f"--auth={SECRET}",
    "OF_THE_CONFIGURATION": "another-l0ng-secret",
    "INTERNAL_HOST": "example.org",
    "SSH_AUTH_SOCK": "/somewhere",
    "DBUS_SESSION_BUS_ADDRESS": "/somewhere",
    "XDG_RUNTIME_DIR": "/somewhere",
    "LD_PRELOAD": "/somewhere",
    "BASH_ENV": "/somewhere",
    "GIT_DIR": "/somewhere",
}
PASSED = {
    "HOME": "/somewhere",
    "LC_ALL": "C.UTF-8",
    "VIRTUAL_ENV": "/somewhere/venv",
    "PYTHONPATH": "/somewhere:src",
    "NODE_ENV": "test",
    "DJANGO_SETTINGS_MODULE": "shop.settings",
    "KEYCLOAK_URL": "http://localhost:8080",
    "MAX_TOKENS": "123456789",
    "GIT_AUTHOR_NAME": "Ann",
    "CHOSEN_TOKEN": "by the us3r",
}
ENVIRON = {"PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "xterm", "EDITOR": "vi", **KEPT_OUT, **PASSED}
SETTINGS = SandboxSettings(environment=["CHOSEN_TOKEN", "MISSING"], withhold=["INTERNAL_*"])
SECRETS = {"openai.main": "another-l0ng-secret"}


@pytest.mark.parametrize("kind", [Bubblewrap, Landlock, Unconfined])
def test_commands_get_the_environment_without_secrets_and_what_leads_out(kind: Any, tmp_path: Path) -> None:
    home = [] if kind is Unconfined else [tmp_path / "home"]
    command = kind(SETTINGS, ENVIRON, *home, SECRETS).wrap(["true"], workspace=tmp_path)
    assert {name: value for name, value in command.environ.items() if name in PASSED} == PASSED
    assert [name for name in KEPT_OUT if name in command.environ] == []
    assert command.environ["PATH"] == ENVIRON["PATH"]
    assert (command.environ["TERM"], command.environ["EDITOR"]) == ("dumb", "true")
    assert f"Commands don't get these environment variables: {', '.join(sorted(KEPT_OUT))}." in command.notice


@pytest.mark.parametrize("kind", [Bubblewrap, Landlock, Unconfined])
def test_nothing_is_said_where_nothing_is_left_out(kind: Any, tmp_path: Path) -> None:
    sandbox = kind(SandboxSettings(), {"PATH": PATH}, *([] if kind is Unconfined else [tmp_path / "home"]))
    assert sandbox.wrap(["true"], workspace=tmp_path).notice == ""


def test_a_signal_that_ends_a_supervised_command_gives_the_exit_status_of_shells(tmp_path: Path) -> None:
    command = Unconfined(SandboxSettings(), {"PATH": PATH}).wrap(["sh", "-c", "kill -TERM $$"], workspace=tmp_path)
    assert subprocess.run(command.argv, env=command.environ, check=False).returncode == 143


def test_a_missing_program_is_reported(tmp_path: Path) -> None:
    command = Unconfined(SandboxSettings(), {"PATH": PATH}).wrap(["nothing-of-this-name"], workspace=tmp_path)
    ran = subprocess.run(command.argv, env=command.environ, check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr.count("nothing-of-this-name can't be run: ")) == (126, 1)


def test_any_number_of_places_may_be_protected(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    for number in range(1500):
        folder = workspace / f"{'folder' * 10}-{number}"
        folder.mkdir(parents=True)
        (folder / ".envrc").touch()
    sandbox = LandlockAlone(SandboxSettings(), {"PATH": PATH}, tmp_path / "home")
    if problem := problem_with(sandbox):
        pytest.skip(problem)
    command = sandbox.wrap(["echo", "ran"], workspace=workspace)
    ran = subprocess.run(command.argv, env=command.environ, check=False, capture_output=True, text=True, cwd=workspace)
    assert (ran.stdout, ran.stderr) == ("ran\n", "")
