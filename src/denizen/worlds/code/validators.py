"""What says whether a project still works: its own tests, linters and compilers (seed 001, validators)."""

import asyncio
import json
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from denizen.config.files import read_file
from denizen.errors import ToolRefused
from denizen.ports import Sandbox
from denizen.tools.programs.process import Kept, run

MOST = 50_000
"""Bytes of a command's output that are compared with what it wrote before."""
SHOWN = 6_000
"""Characters of a failed command's output that the model gets."""
SECONDS = 900.0
"""How long one may take."""
_LARGEST = 5_000_000
"""Bytes of a file that is looked into."""
_TESTS = ("tests", "test")
_NO_TESTS = "no test specified"
_NUMBERS = re.compile(r"[\d.,]+")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a command passed, and what it wrote."""

    command: str
    passed: bool
    output: str

    @property
    def shown(self) -> str:
        """The output for the model: of a long one the beginning and the end."""
        half = SHOWN // 2
        long = len(self.output) > SHOWN
        return f"{self.output[:half]}\n[…]\n{self.output[-half:]}" if long else self.output

    def repeats(self, before: str) -> bool:
        """Whether it says nothing that isn't in `before`, numbers and dots aside: times and counts may change."""
        return {*_NUMBERS.sub("0", self.output).splitlines()} <= {*_NUMBERS.sub("0", before).splitlines()}


def validators_of(workspace: Path) -> list[str]:
    """The commands that check the project at `workspace`, as far as what they need is installed.

    pytest, ruff, cargo check, tsc, go build, npm test and make check, in this order.
    """
    return [command for command in _found(workspace) if _installed(command, workspace)]


async def validate(
    command: str, *, sandbox: Sandbox, workspace: Path, network: bool = False, seconds: float = SECONDS
) -> Verdict:
    """Run the command in the sandbox. Where it can't be started, it has failed."""
    kept = Kept(MOST)
    shell = shutil.which("bash") or "sh"
    argv = [shell, "-c", "--", command]
    wrapped = await asyncio.to_thread(sandbox.wrap, argv, workspace=workspace, network=network)
    try:
        status = await run(wrapped, workspace, seconds=seconds, take=kept.add)
    except ToolRefused as why:
        kept.add(str(why).encode())
        status = 127
    ending = f"took longer than {seconds:g} s" if status is None else f"exit code {status}"
    return Verdict(command, status == 0, f"{kept.text('run it to see them').strip()}\n[{ending}]".strip())


def _found(workspace: Path) -> Iterator[str]:
    settings = _table(_toml(workspace / "pyproject.toml").get("tool"))
    if _has_python_tests(workspace, settings) and (python := _python(workspace)):
        yield f"{python} -m pytest -q"
    if "ruff" in settings or (workspace / "ruff.toml").is_file():
        yield f"{_own(workspace, '.venv/bin/ruff') or 'ruff'} check"
    if (workspace / "Cargo.toml").is_file():
        yield "cargo check"
    if (workspace / "tsconfig.json").is_file():
        yield f"{_own(workspace, 'node_modules/.bin/tsc') or 'tsc'} --noEmit"
    if (workspace / "go.mod").is_file():
        yield "go build ./..."
    test = _table(_json(workspace / "package.json").get("scripts")).get("test", _NO_TESTS)
    if _NO_TESTS not in str(test):
        yield "npm test"
    if any(_has_check(workspace / name) for name in ("Makefile", "makefile", "GNUmakefile")):
        yield "make check"


def _installed(command: str, workspace: Path) -> bool:
    program = command.split(maxsplit=1)[0]
    return (workspace / program).is_file() or shutil.which(program) is not None


def _has_python_tests(workspace: Path, tools: Mapping[str, Any]) -> bool:
    settings = "pytest" in tools or (workspace / "pytest.ini").is_file()
    files = [*workspace.glob("test_*.py"), *(file for name in _TESTS for file in (workspace / name).rglob("test_*.py"))]
    return settings or bool(files)


def _python(workspace: Path) -> str:
    """The Python that has pytest: the project's own, else the one on the path; nothing of it is run to find out."""
    for name in (".venv/bin/python", "venv/bin/python"):
        if _has_pytest(workspace / name):
            return name
    return "python3" if shutil.which("pytest") or _has_pytest(Path(shutil.which("python3") or "")) else ""


def _has_pytest(python: Path) -> bool:
    return python.is_file() and any(python.parent.parent.glob("lib/python*/*-packages/pytest"))


def _own(workspace: Path, name: str) -> str:
    return name if (workspace / name).is_file() else ""


def _has_check(makefile: Path) -> bool:
    return re.search(r"^check[ \t]*:(?!=)", _text(makefile), re.MULTILINE) is not None


def _toml(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(_text(path))
    except (ValueError, RecursionError):
        return {}


def _json(path: Path) -> Mapping[str, Any]:
    try:
        return _table(json.loads(_text(path)))
    except (ValueError, RecursionError):
        return {}


def _text(path: Path) -> str:
    """What a file holds; nothing of what is none: a pipe would keep it waiting."""
    try:
        return (read_file(path, _LARGEST) or b"").decode("utf-8", "replace")
    except OSError:
        return ""


def _table(value: object) -> Mapping[str, Any]:
    """The value where it is one with names; people, and their tools, write all kinds of things."""
    return value if isinstance(value, dict) else {}
