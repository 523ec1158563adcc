"""Which commands check a project, and what they say of it."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from denizen.ports import Sandboxed
from denizen.worlds.code.validators import Verdict, validate, validators_of


class OpenSandbox:
    """Runs commands as they are."""

    name = "open"
    promises = "Nothing."
    confines = False

    def wrap(
        self, argv: Sequence[str], *, workspace: Path, network: bool = False, read_only: bool = False
    ) -> Sandboxed:
        return Sandboxed(argv, os.environ)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every program that a validator may be is installed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("python3", "ruff", "cargo", "tsc", "go", "npm", "make"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    (tmp_path / "lib" / "python3.11" / "site-packages" / "pytest").mkdir(parents=True)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, []),
        ({"tests/test_a.py": ""}, ["python3 -m pytest -q"]),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n[tool.ruff]\n"}, ["python3 -m pytest -q", "ruff check"]),
        ({"Cargo.toml": ""}, ["cargo check"]),
        ({"tsconfig.json": "{}"}, ["tsc --noEmit"]),
        ({"tsconfig.json": "{}", "node_modules/.bin/tsc": ""}, ["node_modules/.bin/tsc --noEmit"]),
        ({"go.mod": "module m"}, ["go build ./..."]),
        ({"package.json": '{"scripts": {"test": "jest"}}'}, ["npm test"]),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, []),
        ({"package.json": "not json"}, []),
        ({"package.json": '{"scripts": ["test"]}'}, []),
        ({"pyproject.toml": "tool = 3\n"}, []),
        (
            {"tests/test_a.py": "", ".venv/bin/python": "", ".venv/lib/python3.12/site-packages/pytest/a.py": ""},
            [".venv/bin/python -m pytest -q"],
        ),
        ({"tests/test_a.py": "", ".venv/bin/python": ""}, ["python3 -m pytest -q"]),
        ({"Makefile": "all:\n\ncheck: all\n\ttrue\n"}, ["make check"]),
        ({"Makefile": "check := yes\n"}, []),
    ],
)
def test_they_are_found_from_the_project(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    assert validators_of(project) == expected


def test_what_is_not_installed_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "go.mod").write_text("module m")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert validators_of(tmp_path) == []


async def test_a_failure_says_why(tmp_path: Path) -> None:
    passed = await validate("true", sandbox=OpenSandbox(), workspace=tmp_path)
    failed = await validate("echo broken; exit 3", sandbox=OpenSandbox(), workspace=tmp_path)
    assert (passed.passed, failed.passed) == (True, False)
    assert failed.output == "broken\n[exit code 3]"


async def test_one_that_takes_too_long_has_failed(tmp_path: Path) -> None:
    command = "read never < /dev/tty || sleep 60"
    verdict = await validate(command, sandbox=OpenSandbox(), workspace=tmp_path, seconds=0.2)
    assert not verdict.passed
    assert "took longer" in verdict.output


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        (".F.\n1 failed, 2 passed in 0.12s", "..F..\n1 failed, 4 passed in 1,003.4s", True),
        ("FAILED a\nFAILED b", "FAILED b", True),
        ("FAILED a", "FAILED a\nFAILED b", False),
        ("", "FAILED a", False),
    ],
)
def test_a_failure_that_says_nothing_new_repeats_an_earlier_one(before: str, now: str, same: bool) -> None:
    assert Verdict("pytest", passed=False, output=now).repeats(before) is same


def test_the_model_gets_the_beginning_and_the_end_of_a_long_output() -> None:
    shown = Verdict("make", passed=False, output="first\n" + "x" * 50_000 + "\nlast").shown
    assert (shown[:5], shown[-4:], len(shown) < 7_000) == ("first", "last", True)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("name", ["pyproject.toml", "package.json", "Makefile"])
def test_what_is_no_file_keeps_nobody_waiting(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    assert validators_of(tmp_path) == []
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/dev/zero")
    assert validators_of(tmp_path) == []
