"""The files that make an agent its user's own, and those in which a project says how to work in it."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from denizen.config.files import read_file, write_private
from denizen.config.home import private_folder
from denizen.ports import UNTRUSTED
from denizen.prompt import texts
from denizen.trusted.session_files import NAMES, PROJECT_NAMES, SessionFiles

MEMORY = "MEMORY.md"

MAX_CHARS = 50_000
"""Characters of one file."""

MAX_TOTAL_CHARS = 200_000
"""Characters of all."""

_MEMORY_BYTES = 1_000_000  # of MEMORY.md the last ones, as `recall` searches them


class PromptFile(msgspec.Struct, frozen=True):
    """A file's text as the prompt has it, and the path it is called by; `from_project`: others wrote it."""

    path: str
    text: str
    from_project: bool = False

    @property
    def is_users(self) -> bool:
        """Whether the user, or the agent for them, wrote it: the user's private data."""
        return not self.from_project and self.text != texts.STARTER.strip()


def scaffold(workspace_dir: Path, session_files: SessionFiles) -> None:
    """Write a starter AGENTS.md if none exists; never into a git repository. Raises ConfigError."""
    private_folder(workspace_dir)
    path = workspace_dir / "AGENTS.md"
    if not (path.exists() or path.is_symlink() or (workspace_dir / ".git").exists()):
        with session_files.writing() as carry:
            write_private(path, texts.STARTER.encode())
            carry(path, "", texts.STARTER)


def read_bootstrap(
    workspace_dir: Path,
    workspace: Path,
    *,
    given: Callable[[Path], str | None] = lambda _: None,
) -> tuple[list[PromptFile], list[str]]:
    """The user's files and the project's, within the limits, and notices of what couldn't be read or left no room.

    Files that are missing or empty are left out silently, as is a project's file that says what another said.
    HEARTBEAT.md is for the turns of a heartbeat, which read it themselves. What is `given` for a file stands in for
    what it holds.
    """
    paths = [(workspace_dir / name, False) for name in NAMES if name != "HEARTBEAT.md"]
    if workspace != workspace_dir:
        paths += [(workspace / name, True) for name in PROJECT_NAMES]
    files: list[PromptFile] = []
    notices: list[str] = []
    left = MAX_TOTAL_CHARS
    for path, from_project in paths:
        try:
            limit, name = min(MAX_CHARS, left), path.name
            if (whole := given(path)) is not None:
                whole, size = whole.replace("\0", "\ufffd").strip(), len(whole.encode())
            else:
                whole, size = _read(path, workspace if from_project else None)
            text = _cut_memory(whole, limit, size) if name == MEMORY else _cut(whole, limit, size)
        except OSError as error:
            notices.append(f"{path} is not read: {error.strerror or error}.")
            continue
        if text and not (from_project and any(text == file.text for file in files)):
            files.append(PromptFile(str(path) if from_project else name, text, from_project))
            left -= len(text)
    return files, notices


def trusted_lines(text: str) -> str:
    """What a prompt holds of remembered facts: those marked as untrusted are only counted, `recall` finds them."""
    lines = text.splitlines()
    kept = [line for line in lines if UNTRUSTED not in line]
    if hidden := len(lines) - len(kept):
        kept.append(f"[facts kept in sight of others' text, which only `recall` shows: {hidden}]")
    return "\n".join(kept)


def _read(path: Path, inside: Path | None) -> tuple[str, int]:
    """The part of a file's text that may be needed, empty if the file is missing, and its bytes. Raises OSError."""
    leads_to = Path(os.path.realpath(path))  # Path.resolve() raises RuntimeError for links that lead in circles
    if inside and not leads_to.is_relative_to(os.path.realpath(inside)):
        raise OSError(0, "it is a link to a file outside the project")
    is_memory = path.name == MEMORY and not inside
    data = read_file(path, _MEMORY_BYTES if is_memory else 4 * MAX_CHARS + 4, from_end=is_memory)
    text = (data or b"").decode("utf-8-sig", errors="replace").replace("\0", "\ufffd").strip()
    return text, path.stat().st_size if data else 0


def _cut_memory(text: str, limit: int, size: int) -> str:
    """The facts that are trusted, of which the latest are at the end: the lines there that fit. Raises OSError."""
    text = trusted_lines(text)
    if len(text) <= limit:
        return text
    marker = f"[cut: the file has {size:,} bytes; only its last lines are shown, `recall` finds the others]\n"
    _require_room(limit, marker)
    shown = text[len(marker) - limit :]
    return marker + (shown.partition("\n")[2] or shown)


def _cut(text: str, limit: int, size: int) -> str:
    """The text, cut to `limit` characters where it is longer; it is that of a file of `size` bytes. Raises OSError."""
    if len(text) <= limit:
        return text
    marker = f"\n[cut: the file has {size:,} bytes; of its characters at most {MAX_CHARS:,} are shown]"
    _require_room(limit, marker)
    return text[: limit - len(marker)] + marker


def _require_room(limit: int, marker: str) -> None:
    if limit < 2 * len(marker):
        raise OSError(0, f"the other files use up the limit of {MAX_TOTAL_CHARS:,} characters for all")
