"""Getting a snapshot back: what must change, what forbids it, and doing it, new content first."""

import asyncio
import contextlib
import errno
import itertools
import os
import shutil
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from denizen.checkpoints.git import Git, GitError
from denizen.checkpoints.history import PathChange, TreeEntry, path_changes
from denizen.checkpoints.repository import TEMPORARY, clear
from denizen.checkpoints.staging import can_be_kept
from denizen.errors import DenizenError
from denizen.ports.checkpoints import Conflict, named
from denizen.runtime.cancellation import run_to_completion

_INDEX = "restore-index"
_EXECUTABLE, _LINK = "100755", "120000"
_RULES = ".gitignore"


class PathBlocked(DenizenError):
    """Something that can't be removed is in the way of a file that must come back; nothing was touched."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__(
            f"Not restored: no checkpoint could bring back what is in the way: {named(paths)}. "
            "It isn't a file, can't be read, is too large, or isn't among the paths asked for. Move it elsewhere and "
            "try again."
        )
        self.paths = paths


async def plan_restore(
    git: Git, wanted: str, *, expected: str = "", scope: Collection[str] = ()
) -> Sequence[PathChange]:
    """The changes that turn the staged files into the tree `wanted`, within `scope`.

    With `expected` it is the change from that tree to the wanted one that is made, so that other changes stay. Raises
    Conflict for files that are as in neither.
    """
    now = await git.write_tree()
    asked = await path_changes(git, expected or now, wanted)
    paths = {f"{git.within}/{path}" if git.within else path for path in scope}
    needed = [change for path, change in asked.items() if not paths or path in paths or _is_below(path, paths)]
    if expected:
        others = await path_changes(git, expected, now)
        present = {path: others[path].new if path in others else change.old for path, change in asked.items()}
        needed = [change for change in needed if present[change.path] != change.new]
        if changed := [git.shown(change.path) for change in needed if present[change.path] != change.old]:
            raise Conflict(changed)
    if not any(PurePosixPath(change.path).name == _RULES for change in needed):
        return needed  # the rules are as they were when the files were looked at
    # A snapshot says nothing about what its own rules ignore: that isn't removed, unless a file must have its place.
    ignored = await _ignored(git, wanted, [change.path for change in needed if not change.new])
    coming = {change.path for change in needed if change.new}
    folders = {str(above) for path in coming for above in PurePosixPath(path).parents}
    return [each for each in needed if each.path not in ignored or each.path in folders or _is_below(each.path, coming)]


def find_in_the_way(git: Git, plan: Sequence[PathChange]) -> Sequence[str]:
    """Files in the way that no snapshot holds yet, but could. Raises PathBlocked for those that none can hold."""
    leaving = {change.path for change in plan if change.old}
    coming = [change.path for change in plan if change.new and not change.old]
    found = [other for path in coming for other in _in_the_way(git.root, path, leaving)]
    if blocked := [git.shown(path) for path in found if not can_be_kept(git.root, path)]:
        raise PathBlocked(blocked)
    return found


async def carry_out(git: Git, plan: Sequence[PathChange]) -> None:
    """Make the files what the plan says. Whenever this ends, each file is the old one or the new one, and doing it
    again completes it. Raises DenizenError; if there is no room for the new content, before anything is changed.
    """
    try:
        _discard(git)  # what an earlier attempt left
        index = replace(git, index=_INDEX)
        entries = [f"{change.new.mode} {change.new.blob}\t{change.path}" for change in plan if change.new]
        await index.run("update-index", "-z", "--index-info", data=entries)
        try:
            (git.root / TEMPORARY).mkdir()
            await index.run("checkout-index", "--all", "--force", f"--prefix={TEMPORARY}/")
        except (OSError, GitError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise DenizenError(
                f"Not restored: {git.root} can't take the files. Check for free space and write permission "
                f"there. Nothing was changed. ({reason})"
            ) from error
        await run_to_completion(asyncio.to_thread(_move_all, git.root, git.root / git.within, plan))
    finally:
        _discard(git)


def _discard(git: Git) -> None:
    clear(git.root / TEMPORARY)
    (git.folder / _INDEX).unlink(missing_ok=True)


def _move_all(root: Path, workspace: Path, plan: Sequence[PathChange]) -> None:
    """Remove what goes, and folders that are empty then; move what was prepared to its path, each file at once."""
    try:
        for change in sorted(plan, key=lambda change: change.path, reverse=True):
            if change.new:
                continue
            path = root / change.path
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                path.unlink()
            for above in itertools.takewhile(lambda folder: folder != workspace, path.parents):
                try:
                    above.rmdir()
                except OSError:  # not empty, or gone
                    break
        folders: set[Path] = set()
        for change in plan:
            if change.new:
                _put(root, change.path, change.new, folders)
    except OSError as error:
        where = os.fsdecode(error.filename2 or error.filename or root)
        raise DenizenError(
            f"Restoring stopped at {where}: {error.strerror}. Fix that and restore again: it goes on where it was."
        ) from error


def _put(root: Path, path: str, entry: TreeEntry, folders: set[Path]) -> None:
    """Move a file to its path; `folders` are those that were seen to be there."""
    target, new = root / path, root / TEMPORARY / path
    mode = _mode(target)
    if stat.S_ISDIR(mode):
        for folder, _, _ in os.walk(target, topdown=False):  # empty ones
            Path(folder).rmdir()
    if target.parent not in folders:
        target.parent.mkdir(parents=True, exist_ok=True)
        folders.add(target.parent)
    if stat.S_ISREG(mode) and entry.mode != _LINK:  # it keeps its permissions, but for who may run it
        mode &= 0o777
        mode = mode | (mode & 0o444) >> 2 if entry.mode == _EXECUTABLE else mode & ~0o111
        if stat.S_IMODE(new.lstat().st_mode) != mode:
            new.chmod(mode)
    try:
        new.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        near = target.with_name(f"{target.name}{TEMPORARY}")  # on the file system of the target
        clear(near)
        shutil.copy2(new, near, follow_symlinks=False)
        near.replace(target)


async def _ignored(git: Git, tree: str, paths: Sequence[str]) -> set[str]:
    """Those of the paths that the rules in `tree` ignore: git is shown a work tree of nothing but rules."""
    rules = replace(git, root=git.folder / "rules", index="rules-index")
    shutil.rmtree(rules.root, ignore_errors=True)
    rules.root.mkdir()
    try:
        for above in PurePosixPath(git.within).parents if git.within else ():  # which no snapshot holds
            if (git.root / above / _RULES).is_file():
                (rules.root / above).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(git.root / above / _RULES, rules.root / above / _RULES)
        lines = await git.items("ls-tree", "-r", "-z", tree)
        entries = [  # regular files only: git follows no link there
            line for line in lines if line.startswith("100") and PurePosixPath(line.partition("\t")[2]).name == _RULES
        ]
        await rules.run("update-index", "-z", "--index-info", data=entries)
        await rules.run("checkout-index", "--all", "--force")
        ignored = await rules.items(
            "check-ignore",
            "--stdin",
            "-z",
            "--no-index",
            data=[f"./{path}" for path in paths],  # "./": a name is never magic
            env={"GIT_LITERAL_PATHSPECS": "0"},
            may_fail=True,  # when nothing is ignored
        )
    finally:
        shutil.rmtree(rules.root, ignore_errors=True)
        (git.folder / rules.index).unlink(missing_ok=True)
    return {path.removeprefix("./") for path in ignored}


def _in_the_way(root: Path, path: str, leaving: set[str]) -> Iterator[str]:
    """Entries that must go before there can be a file at `path`, and that restoring won't remove."""
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
    """The entries of a folder at any depth, except folders."""
    for entry in os.scandir(folder):
        below = f"{path}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _files(folder / entry.name, below)
        else:
            yield below


def _mode(path: Path) -> int:
    """The kind of file there; 0 for none."""
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _is_below(path: str, others: Collection[str]) -> bool:
    return any(str(above) in others for above in PurePosixPath(path).parents)
