"""The tutorial's steps work as the page shows them: its commands in a shell, its blocks as one program that grows."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import DOCS, blocks

TUTORIAL = DOCS / "tutorial.md"


@pytest.fixture
def reader(tmp_path: Path, environ: dict[str, str]) -> dict[str, str]:
    """The environment of a reader who has `denizen` on their PATH."""
    program = tmp_path / "bin" / "denizen"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m denizen "$@"\n')
    program.chmod(0o755)
    return environ | {"PATH": f"{program.parent}:{environ['PATH']}"}


def run(*command: str, folder: Path, environ: dict[str, str]) -> str:
    ran = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.needs("git")
def test_its_commands_print_what_the_page_says(tmp_path: Path, reader: dict[str, str]) -> None:
    folder = tmp_path / "clerk"
    folder.mkdir()
    [block] = blocks(TUTORIAL, "console")
    lines = block.text.splitlines()
    commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    shown = [line for line in lines if not line.startswith("$ ")]
    printed = run("bash", "-ec", "\n".join(commands), folder=folder, environ=reader).splitlines()
    assert [line for line in printed if line and line != "```"] == [line for line in shown if line]


@pytest.mark.needs("git")
def test_its_program_runs_as_one_file(tmp_path: Path, reader: dict[str, str]) -> None:
    steps = blocks(TUTORIAL, "python")
    (tmp_path / "clerk.py").write_text("\n\n".join(step.text for step in steps))
    printed = run(sys.executable, "-W", "error", "clerk.py", folder=tmp_path, environ=reader)
    assert printed == "".join(step.output or "" for step in steps)
