"""A copy of a snapshot to work in: nothing of it is in the project until it is applied."""

import asyncio
import fnmatch
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

from denizen.checkpoints.git import Git
from denizen.checkpoints.history import Snapshot
from denizen.checkpoints.repository import TEMPORARY
from denizen.checkpoints.staging import stage

MAX_AGE = timedelta(days=5)
"""How old a copy may be to be continued: after some more days systems delete temporary files, one by one."""

_NOTE = "copy"
"""The file next to a copy that says what it is of, and which links are in it; it is written last."""

_NOT_LINKED = "*cache*"
"""Ignored entries of that name, or below such a folder, aren't linked: they are made anew where they are needed."""


@dataclass(frozen=True, slots=True)
class Worktree:
    """A copy of `start` to work in, at `path`. What git ignores in the project is there as links to it.

    `folder` holds it, and what is needed to find it again.
    """

    path: Path
    start: Snapshot
    folder: Path
    root: Path = field(repr=False)
    index: str = field(repr=False)
    links: frozenset[str] = field(repr=False)
    project: Path = field(repr=False)

    @property
    def linked_folders(self) -> list[Path]:
        """The project's folders that are linked here, except its own links: a command may have made those."""
        paths = [self.project / path for path in sorted(self.links)]
        return [path for path in paths if path.is_dir() and not path.is_symlink()]

    async def discard(self) -> None:
        """Take it away."""
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


async def make_copy(git: Git, start: Snapshot, folder: Path) -> Worktree:
    """Make a copy of a snapshot in `folder`, which is empty. Raises DenizenError."""
    made = _worktree(git, start, folder, ())
    there = replace(git, root=made.root, index=made.index)
    made.root.mkdir(parents=True)
    await there.run("read-tree", start.tree)
    await there.run("checkout-index", "--all", "--force", "--index")
    # What no snapshot holds is linked: what is ignored, folders as a whole, and what can't be kept. Not our own data,
    # and no caches.
    question = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z", *git.scope)
    ignored = [path.rstrip("/") for path in await git.items(*question)]
    left_out = (await stage(git)).left_out
    links = [
        path
        for path in (*ignored, *left_out)
        if path != TEMPORARY
        and not any(fnmatch.fnmatch(part, _NOT_LINKED) for part in PurePosixPath(path).parts)
        and not git.folder.is_relative_to(git.root / path)
        and not (git.root / path).is_relative_to(git.folder)
        and not os.path.lexists(made.root / path)
    ]
    for path in links:
        (made.root / path).parent.mkdir(parents=True, exist_ok=True)
        (made.root / path).symlink_to(git.root / path)
    made.path.mkdir(parents=True, exist_ok=True)
    (folder / _NOTE).write_bytes(os.fsencode("\0".join([start.id, *links])))
    return replace(made, links=frozenset(links))


def reopen_copy(git: Git, known: Sequence[Snapshot], folder: Path, now: datetime) -> Worktree | None:
    """The copy that was made in `folder`; None if it isn't there or whole, is too old, or its snapshot is gone."""
    try:
        if folder.lstat().st_uid != os.getuid():  # somebody else's, where temporary files were cleared meanwhile
            return None
        made = datetime.fromtimestamp((folder / _NOTE).stat().st_mtime, UTC)
        name, *links = os.fsdecode((folder / _NOTE).read_bytes()).split("\0")
    except OSError:
        return None
    start = next((snapshot for snapshot in known if snapshot.id == name), None)
    if start is None or now - made > MAX_AGE:
        return None
    (folder / "index.lock").unlink(missing_ok=True)  # of a process that was killed
    return _worktree(git, start, folder, links)


def _worktree(git: Git, start: Snapshot, folder: Path, links: Iterable[str]) -> Worktree:
    root = folder / "files" / (git.root.name or "root")
    return Worktree(root / git.within, start, folder, root, str(folder / "index"), frozenset(links), git.root)


async def tree_of(git: Git, worktree: Worktree) -> str:
    """The tree of the copy's files as they are now. Raises DenizenError."""
    there = replace(git, root=worktree.root, index=worktree.index)
    await stage(there, but=worktree.links)
    return await there.write_tree()
