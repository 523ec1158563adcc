"""The commands with which people move their files from another agent, run on such files."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import DOCS, blocks

CLAUDE_CODE, OPENCLAW, HERMES, NANOBOT = (block.text for block in blocks(DOCS / "coming-from.md", "console"))
SKILL = "---\nname: {name}\ndescription: Writes release notes.\n---\n\n1. Read the log.\n"


@pytest.fixture
def mover(tmp_path: Path, environ: dict[str, str]) -> dict[str, str]:
    """Somebody who has used another agent until now, with `denizen` on their PATH and its usual home."""
    program = tmp_path / "bin" / "denizen"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m denizen "$@"\n')
    program.chmod(0o755)
    (tmp_path / "home").rename(tmp_path / ".denizen")
    moved = {name: value for name, value in environ.items() if name != "DENIZEN_HOME"}
    return moved | {"PATH": f"{program.parent}:{environ['PATH']}"}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def run(block: str, *, folder: Path, environ: dict[str, str]) -> str:
    """Run a block's commands; the gateway would serve on."""
    lines = [line.removeprefix("$ ") for line in block.splitlines() if not line.startswith("$ denizen gateway")]
    command = ["bash", "-euc", "\n".join(lines)]
    ran = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout + ran.stderr


@pytest.mark.needs("git")
def test_files_of_claude_code_are_read(tmp_path: Path, project: Path, mover: dict[str, str]) -> None:
    write(tmp_path / ".claude" / "CLAUDE.md", "Use tabs.")
    write(tmp_path / ".claude" / "skills" / "notes" / "SKILL.md", SKILL.format(name="notes"))
    write(project / ".claude" / "skills" / "tags" / "SKILL.md", SKILL.format(name="tags"))
    write(project / ".mcp.json", '{"mcpServers": {"time": {"command": "true"}}}')
    printed = run(CLAUDE_CODE, folder=project, environ=mover)
    assert [name for name in ("notes", "tags", "time") if name not in printed] == []
    assert (tmp_path / ".denizen" / "workspace" / "AGENTS.md").read_text() == "Use tabs."


@pytest.mark.needs("git")
def test_workspace_of_openclaw_is_read_and_its_notes_are_recalled(tmp_path: Path, mover: dict[str, str]) -> None:
    workspace = tmp_path / ".openclaw" / "workspace"
    write(workspace / "SOUL.md", "Be dry.")
    write(workspace / "BOOTSTRAP.md", "Ask who you are.")
    write(workspace / "memory" / "2026-11-02.md", "- The roof leaks above the kitchen.\n")
    write(workspace / "skills" / "notes" / "SKILL.md", SKILL.format(name="notes"))
    (tmp_path / ".denizen" / "denizen.toml").unlink()
    printed = run(agreeing(OPENCLAW).replace("denizen doctor", "denizen config check"), folder=tmp_path, environ=mover)
    moved = tmp_path / ".denizen" / "workspace"
    assert (moved / "SOUL.md").read_text() == "Be dry."
    assert not (moved / "BOOTSTRAP.md").exists()
    assert (moved / "memory" / "202611" / "20261102.md").exists()
    assert "Writes release notes." in printed
    assert "roof" in run('$ denizen memory search "roof"', folder=tmp_path, environ=mover)


@pytest.mark.parametrize(
    ("block", "memory"), [(HERMES, ".hermes/memories/MEMORY.md"), (NANOBOT, ".nanobot/workspace/memory/MEMORY.md")]
)
def test_memory_of_other_assistants_is_recalled(block: str, memory: str, tmp_path: Path, mover: dict[str, str]) -> None:
    write(tmp_path / memory, "- The roof leaks above the kitchen.\n")
    run(agreeing(block), folder=tmp_path, environ=mover)
    assert "roof" in run('$ denizen memory search "roof"', folder=tmp_path, environ=mover)


def agreeing(block: str) -> str:
    """The block's commands with the yes of somebody at a terminal."""
    return re.sub(r"(denizen import \w+)", r"\1 --yes", block)
