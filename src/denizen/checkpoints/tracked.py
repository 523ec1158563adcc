"""Files that the project's own repository tracks although its rules, or ours, ignore them: they are part of it."""

import contextlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from denizen.checkpoints.git import Git, GitError
from denizen.checkpoints.stage import can_be_kept, include
from denizen.config.files import write_private


async def include_tracked(git: Git, folder: Path, private: Sequence[Path]) -> None:
    """Take them into our index, where the one in `folder`, the project's own, has changed since; none is `private`.

    The project's repository is only read. Where it can't be, they count as ignored.
    """
    stamp, note = _stamp(folder / "index"), git.folder / "project-index"
    if not stamp or (note.is_file() and note.read_bytes() == stamp):
        return
    with contextlib.suppress(GitError):
        paths = [path for path in await _tracked(git, folder) if _is_there(git.root, path, private)]
        if paths:
            await include(git, paths)
    write_private(note, stamp)


async def _tracked(git: Git, folder: Path) -> Sequence[str]:
    scope = ["--", git.within] if git.within else []
    ours = f"--exclude-from={git.folder / 'info' / 'exclude'}"
    question = ("ls-files", "--cached", "--ignored", "--exclude-standard", ours, "-z")
    answer = await replace(git, folder=folder).run(*question, *scope, also={"GIT_OPTIONAL_LOCKS": "0"})
    return os.fsdecode(answer).split("\0")[:-1]


def _is_there(root: Path, path: str, private: Sequence[Path]) -> bool:
    hidden = any((root / path).is_relative_to(each) for each in private)
    return not hidden and os.path.lexists(root / path) and can_be_kept(root, path)


def _stamp(index: Path) -> bytes:
    """Which version of an index it is; empty for none."""
    try:
        found = index.stat()
    except OSError:
        return b""
    return f"{found.st_ino} {found.st_mtime_ns} {found.st_size}".encode()
