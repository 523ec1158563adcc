"""Checks a project with its own tests, linters and compilers (decisions, "Roles and validators")."""

import asyncio
import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from denizen.config.files import read_file
from denizen.errors import ToolRefused
from denizen.ports import Sandbox
from denizen.tools.programs.process import BoundedOutput, run
from denizen.trusted.programs import find_program

MAX_OUTPUT_BYTES = 50_000
"""Bytes of a command's output that are compared with its earlier output."""
MAX_SHOWN_CHARS = 6_000
"""Characters of a failed command's output that the model gets."""
CHECK_TIMEOUT_S = 900.0
"""How long one may take."""
_MAX_FILE_BYTES = 5_000_000
"""Bytes of a file that is looked into."""
_NO_TESTS = "no test specified"
_NUMBERS = re.compile(r"[\d.,]+")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a command passed, and its output."""

    command: str
    passed: bool
    output: str

    @property
    def shown(self) -> str:
        """The output for the model: of a long one the beginning and the end."""
        half = MAX_SHOWN_CHARS // 2
        long = len(self.output) > MAX_SHOWN_CHARS
        return f"{self.output[:half]}\n[…]\n{self.output[-half:]}" if long else self.output

    def repeats(self, before: str) -> bool:
        """Whether it says nothing that isn't in `before`, numbers and dots aside: times and counts may change."""
        return {*_NUMBERS.sub("0", self.output).splitlines()} <= {*_NUMBERS.sub("0", before).splitlines()}


def validators_of(workspace: Path) -> list[str]:
    """The commands that check the project at `workspace`, as far as what they need is installed.

    pytest, ruff, cargo check, tsc, go build, npm test and make check, in this order.
    """
    commands: list[str] = []
    tools = _table(_read_table(workspace / "pyproject.toml", tomllib.loads).get("tool"))
    tests = (file for glob in ("test_*.py", "tests/**/test_*.py", "test/**/test_*.py") for file in workspace.glob(glob))
    if "pytest" in tools or (workspace / "pytest.ini").is_file() or any(tests):
        commands += [f"{python} -m pytest -q" for python in _pythons_with_pytest(workspace)][:1]
    if "ruff" in tools or (workspace / "ruff.toml").is_file():
        commands.append(f"{_own_or_installed(workspace, '.venv/bin/ruff')} check")
    if (workspace / "Cargo.toml").is_file():
        commands.append("cargo check")
    if (workspace / "tsconfig.json").is_file():
        commands.append(f"{_own_or_installed(workspace, 'node_modules/.bin/tsc')} --noEmit")
    if (workspace / "go.mod").is_file():
        commands.append("go build ./...")
    scripts = _table(_read_table(workspace / "package.json", json.loads).get("scripts"))
    if _NO_TESTS not in str(scripts.get("test", _NO_TESTS)):
        commands.append("npm test")
    makefiles = (workspace / name for name in ("Makefile", "makefile", "GNUmakefile"))
    if any(re.search(r"^check[ \t]*:(?!=)", _text(file), re.MULTILINE) for file in makefiles):
        commands.append("make check")
    programs = {command: command.split(maxsplit=1)[0] for command in commands}
    return [each for each in commands if (workspace / programs[each]).is_file() or shutil.which(programs[each])]


async def validate(
    command: str, *, sandbox: Sandbox, workspace: Path, network: bool = False, seconds: float = CHECK_TIMEOUT_S
) -> Verdict:
    """Run the command in the sandbox. Where it can't be started, it has failed."""
    kept = BoundedOutput(MAX_OUTPUT_BYTES)
    argv = [find_program("bash", os.environ, workspace, otherwise="/bin/sh"), "-c", "--", command]
    wrapped = await asyncio.to_thread(sandbox.wrap, argv, workspace=workspace, network=network)
    try:
        status = await run(wrapped, workspace, seconds=seconds, take=kept.add)
    except ToolRefused as why:
        kept.add(str(why).encode())
        status = 127
    ending = f"took longer than {seconds:g} s" if status is None else f"exit code {status}"
    return Verdict(command, status == 0, f"{kept.text('run it to see them').strip()}\n[{ending}]".strip())


def _pythons_with_pytest(workspace: Path) -> Iterator[str]:
    """The Pythons that have pytest, the project's own first; nothing of them is run to find out."""

    def has_pytest(python: Path) -> bool:
        return python.is_file() and any(python.parent.parent.glob("lib/python*/*-packages/pytest"))

    yield from (name for name in (".venv/bin/python", "venv/bin/python") if has_pytest(workspace / name))
    if shutil.which("pytest") or has_pytest(Path(shutil.which("python3") or "")):
        yield "python3"


def _own_or_installed(workspace: Path, name: str) -> str:
    """The project's own program where it has it, else that on the path."""
    return name if (workspace / name).is_file() else Path(name).name


def _read_table(path: Path, parse: Callable[[str], object]) -> Mapping[str, Any]:
    try:
        return _table(parse(_text(path)))
    except (ValueError, RecursionError):
        return {}


def _text(path: Path) -> str:
    """The text of a file; empty for anything else: reading a pipe would wait."""
    try:
        return (read_file(path, _MAX_FILE_BYTES) or b"").decode("utf-8", "replace")
    except OSError:
        return ""


def _table(value: object) -> Mapping[str, Any]:
    """The value if it is a table, else an empty one: people write all kinds of things into these files."""
    return value if isinstance(value, dict) else {}
