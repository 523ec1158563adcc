"""Making the files what a plan says: new content is ready before any file goes."""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from denizen.checkpoints.differences import Entry, Step
from denizen.checkpoints.git import Git, GitError
from denizen.checkpoints.plan import mode_of
from denizen.checkpoints.repository import TEMPORARY, clear
from denizen.errors import DenizenError

_INDEX = "restore-index"
_EXECUTABLE, _LINK = "100755", "120000"


async def prepare(git: Git, plan: Sequence[Step]) -> None:
    """Write the new content of the plan's files beside their places; what an earlier attempt left goes.

    Raises DenizenError, also where there is no room for it.
    """
    discard(git)
    entries = (f"{step.new.mode} {step.new.blob}\t{step.path}" for step in plan if step.new)
    data = b"".join(os.fsencode(entry) + b"\0" for entry in entries)
    index = replace(git, index=_INDEX)
    await index.run("update-index", "-z", "--index-info", data=data)
    try:
        (git.root / TEMPORARY).mkdir()
        await index.run("checkout-index", "--all", "--force", f"--prefix={TEMPORARY}/")
    except (OSError, GitError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DenizenError(
            f"Not restored, as {git.root} can't take the files: see that there is room and that you may write there. "
            f"Nothing was changed. ({reason})"
        ) from error


def discard(git: Git) -> None:
    """Take away what was prepared."""
    clear(git.root / TEMPORARY)
    (git.folder / _INDEX).unlink(missing_ok=True)


def carry_out(root: Path, workspace: Path, plan: Sequence[Step]) -> None:
    """Remove what goes, then move what was prepared to its place, each file at once.

    Whenever this ends, each file is the old one or the new one, and doing it again completes it. Raises DenizenError.
    """
    try:
        for step in sorted(plan, key=lambda step: step.path, reverse=True):
            if not step.new:
                _remove(root / step.path, workspace)
        folders: set[Path] = set()
        for step in plan:
            if step.new:
                _put(root, step.path, step.new, folders)
    except OSError as error:
        place = os.fsdecode(error.filename2 or error.filename or root)
        raise DenizenError(
            f"Restoring stopped at {place}: {error.strerror}. Fix that and restore again: it goes on where it was."
        ) from error


def _remove(place: Path, workspace: Path) -> None:
    """Remove a file, and the folders in the workspace that are empty then."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        place.unlink()
    for above in place.parents:
        if above == workspace:
            return
        try:
            above.rmdir()
        except OSError:  # not empty, or gone
            return


def _put(root: Path, path: str, entry: Entry, folders: set[Path]) -> None:
    """Move a file to its place; `folders` are those that were seen to be there."""
    place, new = root / path, root / TEMPORARY / path
    mode = mode_of(place)
    if stat.S_ISDIR(mode):
        _remove_empty(place)
    if place.parent not in folders:
        place.parent.mkdir(parents=True, exist_ok=True)
        folders.add(place.parent)
    if stat.S_ISREG(mode) and entry.mode != _LINK:
        _make_like(new, mode, executable=entry.mode == _EXECUTABLE)
    try:
        new.replace(place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(new, place)


def _make_like(new: Path, mode: int, *, executable: bool) -> None:
    """Give it the permissions of the file that it replaces, but for who may run it."""
    mode &= 0o777
    mode = mode | (mode & 0o444) >> 2 if executable else mode & ~0o111
    if stat.S_IMODE(new.lstat().st_mode) != mode:
        new.chmod(mode)


def _remove_empty(folder: Path) -> None:
    for place, _, _ in os.walk(folder, topdown=False):
        Path(place).rmdir()


def _copy(new: Path, place: Path) -> None:
    """Across file systems: first beside its place."""
    beside = place.with_name(f"{place.name}{TEMPORARY}")
    clear(beside)
    shutil.copy2(new, beside, follow_symlinks=False)
    beside.replace(place)
