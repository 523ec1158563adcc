"""What must change to get a snapshot back, and what forbids it."""

import os
import stat
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath

from denizen.checkpoints.differences import Step, steps
from denizen.checkpoints.git import Git
from denizen.checkpoints.ignored import spare_ignored
from denizen.checkpoints.stage import can_be_kept
from denizen.errors import DenizenError
from denizen.ports.checkpoints import Conflict, named


class InTheWay(DenizenError):
    """Something that can't be taken away stands where a file must come back; nothing was touched."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__(
            f"Not restored, as something is in the way that no checkpoint could bring back: {named(paths)}. "
            "It is no file, unreadable, too large, or none of the paths asked for. Move it elsewhere and try again."
        )
        self.paths = paths


async def plan(git: Git, now: str, wanted: str, expected: str, scope: Collection[str]) -> list[Step]:
    """What must change in the files `now` to have the tree `wanted`, within `scope`.

    With `expected` it is the change from that tree to the wanted one that is made, so that other changes stay. Raises
    Conflict for files that are as in neither.
    """
    if not expected:
        needed = [step for path, step in (await steps(git, now, wanted)).items() if _within(path, scope)]
        return await spare_ignored(git, wanted, needed)
    asked, others = await steps(git, expected, wanted), await steps(git, expected, now)
    there = {path: others[path].new if path in others else step.old for path, step in asked.items()}
    needed = [step for path, step in asked.items() if _within(path, scope) and there[path] != step.new]
    if changed := [git.shown(step.path) for step in needed if there[step.path] != step.old]:
        raise Conflict(changed)
    return await spare_ignored(git, wanted, needed)


def loose(git: Git, plan: Sequence[Step]) -> Sequence[str]:
    """Files in the way that no snapshot holds yet, but could. Raises InTheWay for those that none can hold."""
    leaving = {step.path for step in plan if step.old}
    arriving = [step.path for step in plan if step.new and not step.old]
    found = [other for path in arriving for other in _in_the_way(git.root, path, leaving)]
    if fixed := [git.shown(path) for path in found if not can_be_kept(git.root, path)]:
        raise InTheWay(fixed)
    return found


def _within(path: str, scope: Collection[str]) -> bool:
    """Whether a path, or a folder that it is in, is in the scope; everything is in an empty one."""
    return not scope or path in scope or any(str(above) in scope for above in PurePosixPath(path).parents)


def _in_the_way(root: Path, path: str, leaving: set[str]) -> Iterator[str]:
    """What must go before there can be a file at `path`, and won't."""
    for above in reversed(PurePosixPath(path).parents[:-1]):
        mode = mode_of(root / above)
        if not stat.S_ISDIR(mode):
            if mode and str(above) not in leaving:
                yield str(above)
            return
    mode = mode_of(root / path)
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


def mode_of(path: Path) -> int:
    """What kind of file is there; 0 for none."""
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
