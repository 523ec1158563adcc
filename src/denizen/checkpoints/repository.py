"""The shadow repository's folder: made on first use, and what in the project it must not see."""

import contextlib
import os
import re
import shutil
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from denizen.checkpoints.git import Git, GitError
from denizen.checkpoints.lock import locked
from denizen.checkpoints.tracked import include_tracked
from denizen.clock import Clock
from denizen.config.files import read_file, write_private
from denizen.config.home import private_folder
from denizen.errors import DenizenError

TEMPORARY = ".denizen-restore.tmp"
"""Where in the work tree restored files wait for their place."""

_ATTRIBUTES = b"* -text -eol -crlf -ident -filter !diff !merge !working-tree-encoding\n"
"""Files are kept byte for byte, whatever the project's .gitattributes say."""
_LARGEST = 1_000_000
"""Bytes of a file of patterns that are read."""
_BY_PRODUCTS = (
    *("__pycache__/", "*.py[cod]", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/", "*.egg-info/"),
    *(".tox/", ".nox/", ".venv/", "node_modules/", ".gradle/", ".DS_Store"),
)
"""What programs leave behind and nobody writes: never kept, unless the project's repository tracks it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the shadow repository of `workspace` is; `private` is a folder that snapshots never hold."""

    folder: Path
    workspace: Path
    clock: Clock
    environ: Mapping[str, str]
    private: Path | None = None


@contextlib.asynccontextmanager
async def opened(place: Place) -> AsyncGenerator[Git]:
    """The repository, held until the end; made where it is missing. Raises DenizenError."""
    private_folder(place.folder)
    try:
        async with locked(place.folder, place.clock) as held:
            root = await _root(place, held)
            private = [each for each in (place.folder, place.private) if each and not _holds(each, place.workspace)]
            _write_excludes(place, root, [each for each in private if _holds(root, each)])
            clear(root / TEMPORARY)
            within = place.workspace.relative_to(root).as_posix()
            git = Git(place.folder, root, place.environ, "" if within == "." else within, held=held)
            await include_tracked(git, _own_folder(root), private)
            try:
                yield git
            except GitError as error:
                if error.full:
                    await _make_room(git)
                raise
    except OSError as error:
        raise DenizenError(f"The checkpoints in {place.folder} can't be used: {error.strerror}.") from error


def clear(place: Path) -> None:
    """Take away whatever is there; a link that somebody put there isn't followed."""
    with contextlib.suppress(OSError):
        place.unlink()
    shutil.rmtree(place, ignore_errors=True)


async def _make_room(git: Git) -> None:
    """Take away what was written and then not kept."""
    with contextlib.suppress(GitError):  # the one that says that the disk is full is told
        await git.run("prune", "--expire=now")


async def _root(place: Place, held: int) -> Path:
    """The work tree, chosen once: the project's repository, whose ignore rules hold, or the workspace alone."""
    note = place.folder / "root"
    if kept := read_file(note, _LARGEST):
        return Path(os.fsdecode(kept))
    git = Git(place.folder, place.workspace, place.environ, held=held)
    await git.run("init", "--quiet", "--template=", "--initial-branch=last")
    (place.folder / "info").mkdir(exist_ok=True)
    write_private(place.folder / "info" / "attributes", _ATTRIBUTES)
    root = await _chosen(git)
    write_private(note, os.fsencode(root))
    return root


async def _chosen(git: Git) -> Path:
    workspace = git.root
    folders = [folder for folder in (workspace, *workspace.parents) if not _holds(folder / ".git", workspace)]
    root = next((folder for folder in folders if (folder / ".git").exists()), workspace)
    if root == workspace:
        return workspace
    try:
        above = Git(git.folder, root, git.environ, held=git.held)
        await above.run("check-ignore", "--quiet", "--", str(workspace), also={"GIT_LITERAL_PATHSPECS": "0"})
    except GitError:  # it isn't ignored
        return root
    return workspace


def _write_excludes(place: Place, root: Path, private: Sequence[Path]) -> None:
    """By-products, the project's own unshared patterns, and what is never kept."""
    own = _own_folder(root)
    shared = own / os.fsdecode(_read(own / "commondir")).strip()
    lines = [*map(os.fsencode, _BY_PRODUCTS), _read(shared / "info" / "exclude"), os.fsencode(TEMPORARY)]
    lines += [_pattern(folder.relative_to(root)) for folder in private]
    data, file = b"\n".join(lines) + b"\n", place.folder / "info" / "exclude"
    if _read(file) != data:
        write_private(file, data)


def _holds(folder: Path, other: Path) -> bool:
    return other.is_relative_to(folder)


def _own_folder(root: Path) -> Path:
    """Where the project's own repository is; a `.git` file says where that is."""
    entry = root / ".git"
    told = os.fsdecode(_read(entry))
    return root / told.removeprefix("gitdir:").strip() if told.startswith("gitdir:") and "\0" not in told else entry


def _pattern(path: Path) -> bytes:
    """A pattern for exactly that path; a new line can't be written in one, but any letter can stand for it."""
    escaped = re.sub(r"([\\*?\[ ])", r"\\\1", path.as_posix())
    return os.fsencode(f"/{escaped}".replace("\n", "?"))


def _read(file: Path) -> bytes:
    """A small file; empty where there is none, or it can't be read."""
    with contextlib.suppress(OSError, ValueError):
        return read_file(file, _LARGEST) or b""
    return b""
