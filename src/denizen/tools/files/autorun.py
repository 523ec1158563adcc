"""What other programs run or follow by themselves in a workspace, and so nobody else may write without a yes."""

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from denizen.config.trust import SKILL_FOLDERS
from denizen.tools.files.gitdir import git_folder, hooks_folder, shared_git_folder

OURS = ("denizen.toml", ".denizen")
"""At the workspace's root: what the agent may do."""
SKILL = "SKILL.md"
_DIRENV = ".envrc"
_TASKS = ".vscode/tasks.json"

Identity = tuple[int, int]
"""A file's device and inode, which it keeps wherever it is moved."""


def find_autorun(workspace: Path, enter: Callable[[Identity], bool]) -> Iterator[tuple[Path, Identity]]:
    """All of it in the workspace: at any depth git's data and files of direnv and VS Code; at the root ours and skills.

    `enter` says whether to look inside git's data found.
    """
    skills = (path for folder in SKILL_FOLDERS for path in (workspace / folder).glob(f"*/{SKILL}"))
    yield from _there([*(f"{workspace}/{name}" for name in OURS), *map(str, skills)])
    pending = [str(workspace)]
    while pending:
        folder = pending.pop()
        entries = list_entries(folder)
        names = {entry.name for entry in entries}
        if folder.endswith("/.git") or is_git_data(names):
            yield from (found := [*_there([folder])])
            if folder != str(workspace) and not all(enter(inode) for _, inode in found):
                continue
        files = [f"{folder}/{_TASKS}"] if ".vscode" in names else []
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            elif entry.name in {".git", _DIRENV}:
                files.append(entry.path)
        yield from _there(files)


def hooks_of(git: Path) -> Path | None:
    """Where the repository of a `.git` says that its hooks are (`core.hooksPath`); None where it doesn't."""
    folder = git_folder(git.parent)
    return hooks_folder(shared_git_folder(folder), git.parent) if folder else None


def is_git_data(names: set[str]) -> bool:
    """Whether git takes a folder with these entries for a repository's data, whatever its name."""
    return "HEAD" in names and ({"objects", "refs"} <= names or "commondir" in names)


def completes_git_data(root: str, names: Sequence[str]) -> bool:
    """Whether a file written at `names` below `root` would be part of a repository's data under another name."""
    for depth, name in enumerate(names):
        folder = "/".join([root, *names[:depth]])
        there = {entry for entry in ("HEAD", "objects", "refs", "commondir") if os.path.lexists(f"{folder}/{entry}")}
        if is_git_data(there | {name}):
            return True
    return False


def is_autorun(workspace: Path, path: str) -> bool:
    """Whether a file at `path`, there or not, is one that a person decides about; the tools never write the others."""
    if "\0" in path:
        return False
    root = workspace.resolve()
    place = Path(os.path.realpath(root / path))
    if not place.is_relative_to(root):
        return False
    names = place.relative_to(root).parts
    hooks = hooks_of(root / ".git")
    return (
        names[-1:] == (_DIRENV,)
        or names[-2:] == tuple(_TASKS.split("/"))
        or names[:1] == (".denizen",)
        or any(_is_of_skill(root, place, root / folder) for folder in SKILL_FOLDERS)
        or (hooks is not None and place.is_relative_to(hooks))
    )


def list_entries(folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing where it can't be read.

    One that can be entered and not listed is made readable: git finds a repository in it by name.
    """
    try:
        mode = os.lstat(folder).st_mode
        if mode & stat.S_IXUSR and not mode & stat.S_IRUSR:
            _make_readable(folder)
        with os.scandir(folder) as entries:
            return [*entries]
    except OSError:
        return []


def _make_readable(folder: str) -> None:
    """By a descriptor: a command in the background may put a link in the folder's place meanwhile."""
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.chmod(f"/proc/self/fd/{place}", stat.S_IMODE(os.fstat(place).st_mode) | stat.S_IRUSR)  # noqa: PTH101 (fast)
    finally:
        os.close(place)


def _is_of_skill(root: Path, place: Path, folder: Path) -> bool:
    if not place.is_relative_to(folder.resolve()) or place == folder.resolve():
        return False
    skill = folder.resolve() / place.relative_to(folder.resolve()).parts[0]
    return place == skill / SKILL or os.path.exists(skill / SKILL)  # noqa: PTH110 (may be no path at all)


def _there(places: Sequence[str]) -> Iterator[tuple[Path, Identity]]:
    for place in places:
        with contextlib.suppress(OSError):
            found = os.lstat(place)
            yield Path(place), (found.st_dev, found.st_ino)
