"""From the files to the index: what has changed is taken in, and what can't be kept is named."""

import asyncio
import os
import stat
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from denizen.checkpoints.git import Git, GitError

MAX_FILE_BYTES = 100_000_000
"""Bytes of a file that snapshots hold; larger ones are left out."""

_MAX_TRIES = 3
_PACK_FROM = 200
_ONE_PACK = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.bigFileThreshold",
    "GIT_CONFIG_VALUE_0": "1",
}
"""Has git write what it takes in to one file, not to one for each: a third of the time, and of the room."""
_SEED = ".denizen-seed"
_EMPTY_FILE = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


@dataclass(frozen=True, slots=True)
class Staged:
    """The last snapshot ("" for none), whether the files differ from it, and those that no snapshot can hold."""

    last: str
    changed: bool
    left_out: Sequence[str]


async def stage(git: Git, but: Collection[str] = ()) -> Staged:
    """Take into the index what has changed in the work tree, except for the paths `but`. Raises DenizenError."""
    for _ in range(_MAX_TRIES - 1):
        try:
            return await _stage(git, but)
        except GitError as error:
            if error.disk_full:
                raise  # otherwise a file may have become something else while it was read
    return await _stage(git, but)


async def include(git: Git, paths: Sequence[str]) -> None:
    """Take paths into the index, ignored or not; those that are gone are taken out."""
    env = _ONE_PACK if len(paths) >= _PACK_FROM else {}
    await git.run("update-index", "--add", "--remove", "--replace", "-z", "--stdin", data=paths, env=env)


def can_be_kept(root: Path, path: str) -> bool:
    """Whether git can keep what is there: nothing, a link, or a readable file, not too large and not git's."""
    file = root / path
    try:
        found = file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    if any(part.lower() == ".git" for part in path.split("/")):
        return False
    if stat.S_ISREG(found.st_mode):
        return found.st_size <= MAX_FILE_BYTES and os.access(file, os.R_OK)
    return stat.S_ISLNK(found.st_mode)


async def _stage(git: Git, but: Collection[str]) -> Staged:
    entered: set[str] = set()
    while True:
        lines = await git.items("status", "--porcelain=v2", "--branch", "-z", "--no-renames", *git.scope)
        headers = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# "))
        new = [line[2:] for line in lines if line[0] == "?"]
        repositories = {path for path in new if path.endswith("/")} - entered
        if not repositories:
            break
        # git looks into a repository inside this one where the index holds a file of it. What it remembers of folders
        # has to go: it would still take them for repositories.
        await git.run("update-index", "--no-untracked-cache")
        seeds = [f"100644 {_EMPTY_FILE}\t{folder}{_SEED}" for folder in repositories]
        await git.run("update-index", "-z", "--index-info", data=seeds)
        entered |= repositories
    known = [(line[3], line.split(" ", 8)[8]) for line in lines if line[0] == "1"]
    changed = [path for how, path in known if how not in ".D"]
    deleted = [path for how, path in known if how == "D"]
    paths = [path for path in (*changed, *new) if path not in but and not path.endswith("/")]
    left_out = await asyncio.to_thread(lambda: {path for path in paths if not can_be_kept(git.root, path)})
    if gone := [*deleted, *left_out.intersection(changed)]:
        await git.run("update-index", "-z", "--index-info", data=[f"0 {'0' * 40}\t{path}" for path in gone])
    if kept := [path for path in paths if path not in left_out]:
        await include(git, kept)
    last = headers["branch.oid"].replace("(initial)", "")
    return Staged(last, changed=len(lines) > len(headers), left_out=sorted(left_out))
