"""What other programs run or obey by themselves in a workspace, git's data above all: nobody writes it without a yes.

A repository's data is in `.git`, or where a `.git` file says, as in linked worktrees and submodules.
"""

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from denizen.config.trust import SKILL_FOLDERS

OURS = ("denizen.toml", ".denizen", ".claude/agents")  # at the workspace's root: what the agent may do
SKILL = "SKILL.md"
_DIRENV = ".envrc"
_TASKS = ".vscode/tasks.json"
_MOST_BYTES = 10_000
_HOOKS = re.compile(r"^[ \t]*hookspath[ \t]*=[ \t]*(\S.*)$", re.MULTILINE | re.IGNORECASE)
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)

Identity = tuple[int, int]  # a file's device and inode, which it keeps wherever it is moved


def find_autorun(workspace: Path, enter: Callable[[Identity], bool]) -> Iterator[tuple[Path, Identity]]:
    """All of it in the workspace: at any depth git's data and files of direnv and VS Code; at the root ours and skills.

    `enter` says whether to look inside git's data found.
    """
    skills = (path for folder in SKILL_FOLDERS for path in (workspace / folder).glob(f"*/{SKILL}"))
    yield from _existing([*(f"{workspace}/{name}" for name in OURS), *map(str, skills)])
    pending = [str(workspace)]
    while pending:
        folder = pending.pop()
        entries = list_entries(folder)
        names = {entry.name for entry in entries}
        if folder.endswith("/.git") or is_git_data(names):
            yield from (found := [*_existing([folder])])
            if folder != str(workspace) and not all(enter(inode) for _, inode in found):
                continue
        files = [f"{folder}/{_TASKS}"] if ".vscode" in names else []
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            elif entry.name in {".git", _DIRENV}:
                files.append(entry.path)
        yield from _existing(files)


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
    for folder in [(root / name).resolve() for name in SKILL_FOLDERS]:
        if place.is_relative_to(folder) and place != folder:
            skill = folder / place.relative_to(folder).parts[0] / SKILL
            if place == skill or os.path.exists(skill):  # noqa: PTH110 (may be no path at all)
                return True
    return (
        names[-1:] == (_DIRENV,)
        or names[-2:] == tuple(_TASKS.split("/"))
        or names[:1] == (".denizen",)
        or names[:2] == (".claude", "agents")
        or (hooks is not None and place.is_relative_to(hooks))
    )


def list_entries(folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing where it can't be read.

    One that can be entered and not listed is made readable: git finds a repository in it by name.
    """
    try:
        mode = os.lstat(folder).st_mode
        if mode & stat.S_IXUSR and not mode & stat.S_IRUSR:  # by a descriptor: a command may put a link in its place
            fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(os.fstat(fd).st_mode) | stat.S_IRUSR)  # noqa: PTH101 (fast)
            finally:
                os.close(fd)
        with os.scandir(folder) as entries:
            return [*entries]
    except OSError:
        return []


def git_folder(workspace: Path) -> Path | None:
    """The git data of the repository whose root `workspace` is; None where it isn't the root of one.

    A `.git` file may name any place; one outside the workspace is believed only if it points back, as git makes it.
    """
    entry = workspace / ".git"
    if entry.is_symlink():
        return None
    if entry.is_dir():
        return entry
    name = _text(entry).removeprefix("gitdir:").strip()
    folder = _real(workspace, name)
    if not name or not os.path.isdir(folder):  # noqa: PTH112 (a name that is no path raises elsewhere)
        return None
    if folder.is_relative_to(workspace.resolve()):
        return folder
    if linked := _text(folder / "gitdir").strip():
        return folder if _real(folder, linked) == _real(workspace, ".git") else None
    submodule = _WORKTREE.search(_text(folder / "config"))
    return folder if submodule and _real(folder, submodule[1].strip('"')) == workspace.resolve() else None


def shared_git_folder(folder: Path) -> Path:
    """The data that a linked worktree shares with the others; of any other repository, its folder."""
    return folder.parent.parent if folder.parent.name == "worktrees" else folder


def hooks_of(git: Path) -> Path | None:
    """Where the repository of a `.git` says that its hooks are (`core.hooksPath`); None where it doesn't."""
    folder = git_folder(git.parent)
    found = _HOOKS.search(_text(shared_git_folder(folder) / "config")) if folder else None
    return _real(git.parent, found[1].strip().strip('"')) if found else None


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


def foreign_git_data(folder: Path, workspace: Path) -> str:
    """What in a repository's data belongs to another one, outside the workspace; empty: nothing.

    Data that is itself outside has none: it points back, so git made it.
    """
    root = workspace.resolve()
    if not folder.resolve().is_relative_to(root):
        return ""
    common = _text(folder / "commondir").strip()
    if common and not _real(folder, common).is_relative_to(root):
        return str(folder / "commondir")
    for top, folders, files in os.walk(folder):
        if top == str(folder):
            folders[:] = [name for name in folders if name in {"objects", "refs", "logs", "worktrees"}]
        for path in (f"{top}/{name}" for name in (*folders, *files)):
            if os.path.islink(path) and not Path(os.path.realpath(path)).is_relative_to(root):  # noqa: PTH114 (fast)
                return path
        if top == f"{folder}/objects":  # of thousands, and none can be found without knowing its name
            folders[:] = [name for name in folders if name == "pack"]
    return ""


def _existing(paths: Sequence[str]) -> Iterator[tuple[Path, Identity]]:
    for path in paths:
        with contextlib.suppress(OSError):
            found = os.lstat(path)
            yield Path(path), (found.st_dev, found.st_ino)


def _real(folder: Path, name: str) -> Path:
    return Path(os.path.realpath(folder / name))


def _text(path: Path) -> str:
    """The beginning of a small file; empty where it isn't text."""
    if not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        text = file.read(_MOST_BYTES)
    return "" if "\0" in text else text
