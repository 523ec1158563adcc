"""From the files to the index: what has changed is taken in, and what can't be kept is named."""

import asyncio
import os
import stat
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from denizen.checkpoints.git import Git, GitError

LARGEST_FILE = 100_000_000
"""Bytes of a file that snapshots hold; larger ones are left out."""

_TRIES = 3
_MANY = 200
_ONE_PACK = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.bigFileThreshold",
    "GIT_CONFIG_VALUE_0": "1",
}
"""Has git write what it takes in to one file, not to one for each: a third of the time, and of the room."""
_SEED = ".denizen-seed"
_EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
"""What git calls the empty file."""


@dataclass(frozen=True, slots=True)
class Staged:
    """The last snapshot ("" for none), whether the files differ from it, and those that no snapshot can hold."""

    last: str
    changed: bool
    left_out: Sequence[str]


async def stage(git: Git, but: Collection[str] = ()) -> Staged:
    """Take into the index what has changed in the work tree, except for the paths `but`. Raises DenizenError."""
    for _ in range(_TRIES - 1):
        try:
            return await _stage(git, but)
        except GitError as error:
            if error.full:
                raise  # otherwise a file may have become something else while it was read
    return await _stage(git, but)


async def include(git: Git, paths: Sequence[str]) -> None:
    """Take paths into the index, ignored or not; those that are gone are taken out."""
    into = _ONE_PACK if len(paths) >= _MANY else {}
    await git.run("update-index", "--add", "--remove", "--replace", "-z", "--stdin", data=_listed(paths), also=into)


async def _stage(git: Git, but: Collection[str]) -> Staged:
    status = await _status(git)
    entered: set[str] = set()
    while new := status.repositories - entered:
        await _enter(git, new)
        entered |= new
        status = await _status(git)
    paths = [path for path in (*status.changed, *status.new) if path not in but]
    left_out = await asyncio.to_thread(lambda: {path for path in paths if not can_be_kept(git.root, path)})
    if gone := [*status.deleted, *left_out.intersection(status.changed)]:
        await _write_entries(git, (f"0 {'0' * 40}\t{path}" for path in gone))
    if kept := [path for path in paths if path not in left_out]:
        await include(git, kept)
    return Staged(status.last, status.differs, sorted(left_out))


def can_be_kept(root: Path, path: str) -> bool:
    """Whether git can keep what is there: nothing, a link, or a readable file, not too large and not git's."""
    place = root / path
    try:
        found = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    if any(part.lower() == ".git" for part in path.split("/")):
        return False
    if stat.S_ISREG(found.st_mode):
        return found.st_size <= LARGEST_FILE and os.access(place, os.R_OK)
    return stat.S_ISLNK(found.st_mode)


@dataclass(frozen=True, slots=True)
class _Status:
    """What git says: files that differ from the index, and `repositories` inside of this one that it didn't enter."""

    last: str
    differs: bool
    changed: Sequence[str]
    deleted: Sequence[str]
    new: Sequence[str]
    repositories: frozenset[str]


async def _status(git: Git) -> _Status:
    scope = ["--", git.within] if git.within else []
    answer = await git.run("status", "--porcelain=v2", "--branch", "-z", "--no-renames", *scope)
    lines = os.fsdecode(answer).split("\0")[:-1]
    headers = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# "))
    entries = [line for line in lines if not line.startswith("# ")]
    known = [(line[3], line.split(" ", 8)[8]) for line in entries if line[0] == "1"]
    new = [line[2:] for line in entries if line[0] == "?"]
    return _Status(
        last=headers["branch.oid"].replace("(initial)", ""),
        differs=bool(entries),
        changed=[path for how, path in known if how not in ".D"],
        deleted=[path for how, path in known if how == "D"],
        new=[path for path in new if not path.endswith("/")],
        repositories=frozenset(path for path in new if path.endswith("/")),
    )


async def _enter(git: Git, repositories: Iterable[str]) -> None:
    """Let git look into repositories inside of this one: it does where the index holds a file of theirs.

    What it remembers of folders goes: it would still take them for repositories.
    """
    await git.run("update-index", "--no-untracked-cache")
    await _write_entries(git, (f"100644 {_EMPTY}\t{folder}{_SEED}" for folder in repositories))


async def _write_entries(git: Git, entries: Iterable[str]) -> None:
    await git.run("update-index", "-z", "--index-info", data=_listed(entries))


def _listed(items: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(item) + b"\0" for item in items)
