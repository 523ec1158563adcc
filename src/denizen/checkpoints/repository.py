"""The shadow repository's folder: made on first use, and what of the project it must, and must not, keep."""

import contextlib
import os
import re
import shutil
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path

from denizen.checkpoints.git import Git, GitError, locked
from denizen.checkpoints.staging import can_be_kept, include
from denizen.config.files import read_file, write_private
from denizen.config.home import private_folder
from denizen.errors import DenizenError
from denizen.runtime.clock import Clock

TEMPORARY = ".denizen-restore.tmp"
"""Where in the work tree restored files wait to be moved."""

_ATTRIBUTES = b"* -text -eol -crlf -ident -filter !diff !merge !working-tree-encoding\n"
"""Files are kept byte for byte, whatever the project's .gitattributes say."""
_MAX_PATTERN_BYTES = 1_000_000
"""Bytes of a file of patterns that are read."""
_BY_PRODUCTS = (
    *("__pycache__/", "*.py[cod]", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/", "*.egg-info/"),
    *(".tox/", ".nox/", ".venv/", "node_modules/", ".gradle/", ".DS_Store"),
)
"""By-products of programs: never kept, unless the project's repository tracks them."""


@contextlib.asynccontextmanager
async def open_repository(git: Git, clock: Clock, private: Path | None) -> AsyncGenerator[Git]:
    """The shadow repository of the workspace `git.root`, held until the end; made if it is missing.

    `private` is a folder that snapshots never hold. Raises DenizenError.
    """
    workspace, folder = git.root, git.folder
    private_folder(folder)
    try:
        async with locked(folder, clock) as held:
            root = await _root(replace(git, held=held))
            hidden = [each for each in (folder, private) if each and not workspace.is_relative_to(each)]
            project = root / ".git"
            text = os.fsdecode(_read(project))
            if text.startswith("gitdir:") and "\0" not in text:  # a file that says where the repository is
                project = root / text.removeprefix("gitdir:").strip()
            _write_excludes(folder, project, [each.relative_to(root) for each in hidden if each.is_relative_to(root)])
            clear(root / TEMPORARY)
            within = workspace.relative_to(root).as_posix()
            git = replace(git, root=root, within="" if within == "." else within, held=held)
            await _include_tracked(git, project, hidden)
            try:
                yield git
            except GitError as error:
                if error.disk_full:
                    with contextlib.suppress(GitError):  # what was written and then not kept goes
                        await git.run("prune", "--expire=now")
                raise
    except OSError as error:
        raise DenizenError(f"The checkpoints in {folder} can't be used: {error.strerror}.") from error


def clear(path: Path) -> None:
    """Take away whatever is there; a link that somebody put there isn't followed."""
    with contextlib.suppress(OSError):
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)


async def _root(git: Git) -> Path:
    """The work tree, chosen once: the project's repository, whose ignore rules hold, or the workspace alone."""
    workspace, note = git.root, git.folder / "root"
    if kept := read_file(note, _MAX_PATTERN_BYTES):
        return Path(os.fsdecode(kept))
    await git.run("init", "--quiet", "--template=", "--initial-branch=last")
    (git.folder / "info").mkdir(exist_ok=True)
    write_private(git.folder / "info" / "attributes", _ATTRIBUTES)
    folders = [each for each in (workspace, *workspace.parents) if not workspace.is_relative_to(each / ".git")]
    root = next((each for each in folders if (each / ".git").exists()), workspace)
    if root != workspace:
        question = ("check-ignore", "--quiet", "--", str(workspace))
        with contextlib.suppress(GitError):  # which says that it isn't ignored
            await replace(git, root=root).run(*question, env={"GIT_LITERAL_PATHSPECS": "0"})
            root = workspace
    write_private(note, os.fsencode(root))
    return root


def _write_excludes(folder: Path, project: Path, private: Sequence[Path]) -> None:
    """By-products, the project's own unshared patterns, and what is never kept."""
    shared = project / os.fsdecode(_read(project / "commondir")).strip()
    lines = [*map(os.fsencode, _BY_PRODUCTS), _read(shared / "info" / "exclude"), os.fsencode(TEMPORARY)]
    for path in private:  # a new line can't be written in a pattern, but any character can stand for it
        escaped = re.sub(r"([\\*?\[ ])", r"\\\1", path.as_posix())
        lines.append(os.fsencode(f"/{escaped}".replace("\n", "?")))
    data, file = b"\n".join(lines) + b"\n", folder / "info" / "exclude"
    if _read(file) != data:
        write_private(file, data)


async def _include_tracked(git: Git, project: Path, private: Sequence[Path]) -> None:
    """Take in what the project's own repository tracks although its rules, or ours, ignore it: it is part of it.

    Done if the project's index has changed since; nothing `private` is taken in. The project's repository is only
    read. Where it can't be, these files count as ignored.
    """
    try:
        index = (project / "index").stat()
    except OSError:
        return
    stamp, note = f"{index.st_ino} {index.st_mtime_ns} {index.st_size}".encode(), git.folder / "project-index"
    if note.is_file() and note.read_bytes() == stamp:
        return
    excludes = f"--exclude-from={git.folder / 'info' / 'exclude'}"
    question = ("ls-files", "--cached", "--ignored", "--exclude-standard", excludes, "-z", *git.scope)
    with contextlib.suppress(GitError):
        tracked = await replace(git, folder=project).items(*question, env={"GIT_OPTIONAL_LOCKS": "0"})
        paths = [
            path
            for path in tracked
            if not any((git.root / path).is_relative_to(each) for each in private)
            and os.path.lexists(git.root / path)
            and can_be_kept(git.root, path)
        ]
        if paths:
            await include(git, paths)
    write_private(note, stamp)


def _read(file: Path) -> bytes:
    """A small file; empty if there is none, or it can't be read."""
    with contextlib.suppress(OSError, ValueError):
        return read_file(file, _MAX_PATTERN_BYTES) or b""
    return b""
