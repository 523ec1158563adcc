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
from denizen.checkpoints.stage import stage

OLDEST = timedelta(days=5)
"""How old a copy may be to be gone on with: after some more days systems clear temporary files away, one by one."""

_WHOLE = "copy"
"""The file beside a copy that says what it is of, and which links are in it; it is written last."""

_NOT_LINKED = "*cache*"
"""What is ignored and so called, or in a folder that is, is made anew where it is needed."""


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
        """The project's folders that are here as links, but for links of its own: a command may have made those."""
        places = [self.project / path for path in sorted(self.links)]
        return [place for place in places if place.is_dir() and not place.is_symlink()]

    async def discard(self) -> None:
        """Take it away."""
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


async def copy(git: Git, start: Snapshot, folder: Path) -> Worktree:
    """Make it in `folder`, which is empty. Raises DenizenError."""
    there = _in(git, folder)
    root = there.root
    root.mkdir(parents=True)
    await there.run("read-tree", start.tree)
    await there.run("checkout-index", "--all", "--force", "--index")
    links = [path for path in await _not_kept(git) if not os.path.lexists(root / path)]
    _link(git.root, root, links)
    (root / git.within).mkdir(parents=True, exist_ok=True)
    (folder / _WHOLE).write_bytes(os.fsencode("\0".join([start.id, *links])))
    return _worktree(git, start, folder, links)


def again(git: Git, known: Sequence[Snapshot], folder: Path, now: datetime) -> Worktree | None:
    """The copy that was made in `folder`; None where it isn't there or whole, is too old, or what it is of is gone."""
    try:
        if folder.lstat().st_uid != os.getuid():  # somebody else's, where temporary files were cleared meanwhile
            return None
        made = datetime.fromtimestamp((folder / _WHOLE).stat().st_mtime, UTC)
        name, *links = os.fsdecode((folder / _WHOLE).read_bytes()).split("\0")
    except OSError:
        return None
    start = next((snapshot for snapshot in known if snapshot.id == name), None)
    if start is None or now - made > OLDEST:
        return None
    (folder / "index.lock").unlink(missing_ok=True)  # of a process that was killed
    return _worktree(git, start, folder, links)


def _in(git: Git, folder: Path) -> Git:
    return replace(git, root=folder / "files" / (git.root.name or "root"), index=str(folder / "index"))


def _worktree(git: Git, start: Snapshot, folder: Path, links: Iterable[str]) -> Worktree:
    there = _in(git, folder)
    return Worktree(there.root / there.within, start, folder, there.root, there.index, frozenset(links), git.root)


async def tree_of(git: Git, worktree: Worktree) -> str:
    """The tree that the copy's files are by now. Raises DenizenError."""
    there = replace(git, root=worktree.root, index=worktree.index)
    await stage(there, but=worktree.links)
    return (await there.run("write-tree")).decode().strip()


async def _not_kept(git: Git) -> Sequence[str]:
    """What is in the project and no snapshot holds: what is ignored, folders as a whole, and what can't be kept."""
    scope = ["--", git.within] if git.within else []
    answer = await git.run("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z", *scope)
    ignored = [path.rstrip("/") for path in os.fsdecode(answer).split("\0")[:-1]]
    left_out = (await stage(git)).left_out
    return [path for path in (*ignored, *left_out) if not _is_private(git, path)]


def _is_private(git: Git, path: str) -> bool:
    """Whether it is nothing to link: our own, or a cache."""
    place = git.root / path
    return (
        path == TEMPORARY
        or any(fnmatch.fnmatch(part, _NOT_LINKED) for part in PurePosixPath(path).parts)
        or git.folder.is_relative_to(place)
        or place.is_relative_to(git.folder)
    )


def _link(source: Path, target: Path, paths: Iterable[str]) -> None:
    for path in paths:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).symlink_to(source / path)
