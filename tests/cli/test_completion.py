"""`denizen completion`: Tab completes commands and options."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("shell", "path"),
    [
        ("bash", ".local/share/bash-completion/completions/denizen"),
        ("fish", ".config/fish/completions/denizen.fish"),
        ("zsh", ".zfunc/_denizen"),
    ],
)
def test_the_script_is_written_where_the_shell_looks(denizen: Run, tmp_path: Path, shell: str, path: str) -> None:
    ran = denizen("completion", SHELL=f"/usr/bin/{shell}")
    assert ran.out == f"{tmp_path / 'user' / path}\n"
    assert "next shell" in ran.err
    assert Path(ran.out.strip()).read_text() == denizen("completion", shell, "--print").out


def test_a_shell_that_is_not_known_is_wrong_use(denizen: Run) -> None:
    ran = denizen("completion", SHELL="/bin/dash")
    assert (ran.status, ran.out) == (2, "")
    assert "Name one: bash, fish, zsh." in ran.err


@pytest.mark.parametrize(
    ("typed", "completed"), [("denizen che", "checkpoints"), ("denizen ask --max-it", "--max-iterations")]
)
def test_bash_completes(denizen: Run, environ: dict[str, str], repo: Path, typed: str, completed: str) -> None:
    program = repo / "denizen"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m denizen "$@"\n')
    program.chmod(0o755)
    script = denizen("completion", "bash", "--print").out
    place = len(typed.split()) - 1
    asks = f'COMP_WORDS=({typed}) COMP_CWORD={place}; _denizen_completion {program}; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script + asks], env=environ, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [completed]
