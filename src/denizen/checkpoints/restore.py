"""Making the files what a snapshot says: obstacles are found first, and new content is ready before any file goes."""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from denizen.checkpoints.differences import Entry, Step, steps
from denizen.checkpoints.git import Git
from denizen.checkpoints.repository import TEMPORARY
from denizen.checkpoints.stage import can_be_kept
from denizen.errors import DenizenError

_INDEX = "restore-index"
_EXECUTABLE = "100755"
_NAMED = 10
"""Paths that a message names."""


class Conflict(DenizenError):
    """Restoring would overwrite what somebody else changed meanwhile, `paths`; nothing was touched."""

    def __init__(self, message: str, paths: Sequence[str]) -> None:
        super().__init__(message)
        self.paths = paths


async def plan(git: Git, now: str, wanted: str, expected: str, scope: Sequence[str]) -> list[Step]:
    """What must change in the files `now` to have the tree `wanted`, within `scope`.

    With `expected` it is the change from that tree to the wanted one that is made, so that other changes stay. Raises
    Conflict for files that are as in neither.
    """
    if not expected:
        needed = await steps(git, now, wanted)
        return [step for path, step in needed.items() if _within(path, scope)]
    asked, others = await steps(git, expected, wanted), await steps(git, expected, now)
    there = {path: others[path].new if path in others else step.old for path, step in asked.items()}
    needed = [step for path, step in asked.items() if _within(path, scope) and there[path] != step.new]
    if changed := [step.path for step in needed if there[step.path] != step.old]:
        raise meanwhile(changed)
    return needed


def meanwhile(paths: Sequence[str]) -> Conflict:
    """Files were changed by somebody else."""
    return Conflict(
        f"Not restored, as this would overwrite what was changed since the last checkpoint: {named(paths)}. "
        "Keep a copy of what matters, or restore by force; a forced restore can be undone, too.",
        paths,
    )


@dataclass(slots=True)
class Obstacles:
    """What is in the way of a plan: `loose` files that no snapshot holds yet, and what can't be moved at all."""

    loose: list[str] = field(default_factory=list)
    fixed: list[str] = field(default_factory=list)


def obstacles(root: Path, plan: Sequence[Step]) -> Obstacles:
    """Look for them."""
    found = Obstacles()
    leaving = {step.path for step in plan if step.old}
    for step in plan:
        if step.new and not step.old:
            for path in _in_the_way(root, step.path, leaving):
                (found.loose if can_be_kept(root / path) else found.fixed).append(path)
    return found


def immovable(paths: Sequence[str]) -> DenizenError:
    """Something is in the way that no snapshot holds."""
    return DenizenError(
        f"Not restored, as files are in the way that checkpoints don't hold (ignored, or too large): {named(paths)}. "
        "Move them elsewhere and try again."
    )


def named(paths: Sequence[str]) -> str:
    """The first of many paths."""
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more


async def prepare(git: Git, plan: Sequence[Step]) -> None:
    """Write the new content of the plan's files beside their places; what an earlier attempt left goes."""
    discard(git)
    entries = (f"{step.new.mode} {step.new.blob}\t{step.path}" for step in plan if step.new)
    data = b"".join(os.fsencode(entry) + b"\0" for entry in entries)
    index = Git(git.folder, git.root, git.environ, index=_INDEX, held=git.held)
    await index.run("update-index", "-z", "--index-info", data=data)
    await index.run("checkout-index", "--all", "--force", f"--prefix={TEMPORARY}/")


def discard(git: Git) -> None:
    """Take away what was prepared."""
    shutil.rmtree(git.root / TEMPORARY, ignore_errors=True)
    (git.folder / _INDEX).unlink(missing_ok=True)


def carry_out(root: Path, plan: Sequence[Step]) -> None:
    """Remove what goes, then move what was prepared to its place, each file at once.

    Whenever this ends, each file is the old one or the new one, and doing it again completes it. Raises DenizenError.
    """
    try:
        for step in sorted(plan, key=lambda step: step.path, reverse=True):
            if not step.new:
                _remove(root, step.path)
        for step in plan:
            if step.new:
                _put(root, step.path, step.new)
    except OSError as error:
        place = os.fsdecode(error.filename or root)
        raise DenizenError(
            f"Restoring stopped at {place}: {error.strerror}. Mend that and restore again: it goes on where it was."
        ) from error


def _within(path: str, scope: Sequence[str]) -> bool:
    return not scope or any(path == each or path.startswith(f"{each}/") for each in scope)


def _in_the_way(root: Path, path: str, leaving: set[str]) -> Iterator[str]:
    """What must go before there can be a file at `path`, and won't."""
    for above in reversed(PurePosixPath(path).parents[:-1]):
        mode = _mode(root / above)
        if not stat.S_ISDIR(mode):
            if mode and str(above) not in leaving:
                yield str(above)
            return
    mode = _mode(root / path)
    if stat.S_ISDIR(mode):
        yield from (file for file in _files(root / path, path) if file not in leaving)
    elif mode:
        yield path


def _files(folder: Path, path: str) -> Iterator[str]:
    """What is in a folder, at any depth, but for folders."""
    for entry in os.scandir(folder):
        below = f"{path}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _files(folder / entry.name, below)
        else:
            yield below


def _mode(path: Path) -> int:
    """What kind of file is there; 0 for none."""
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _remove(root: Path, path: str) -> None:
    """Remove a file, and the folders that are empty then."""
    place = root / path
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        place.unlink()
    for above in place.parents:
        if above == root:
            return
        try:
            above.rmdir()
        except OSError:  # not empty, or gone
            return


def _put(root: Path, path: str, entry: Entry) -> None:
    place, new = root / path, root / TEMPORARY / path
    mode = _mode(place)
    if stat.S_ISDIR(mode):
        _remove_empty(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISREG(mode) and not new.is_symlink():
        new.chmod(_like(mode, executable=entry.mode == _EXECUTABLE))
    try:
        new.replace(place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(new, place)


def _like(mode: int, *, executable: bool) -> int:
    """The permissions of the file that is replaced, but for who may run it."""
    mode = stat.S_IMODE(mode) & 0o777
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111


def _remove_empty(folder: Path) -> None:
    for place, _, _ in os.walk(folder, topdown=False):
        Path(place).rmdir()


def _copy(new: Path, place: Path) -> None:
    """Across file systems: first beside its place."""
    beside = place.with_name(f"{place.name}{TEMPORARY}")
    shutil.copy2(new, beside, follow_symlinks=False)
    beside.replace(place)
