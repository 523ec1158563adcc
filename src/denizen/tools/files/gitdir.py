"""Where a workspace keeps git's data: in `.git`, or where a `.git` file says, as in linked worktrees and submodules."""

import os
import re
from pathlib import Path

_MOST_BYTES = 10_000
_HOOKS = re.compile(r"^[ \t]*hookspath[ \t]*=[ \t]*(\S.*)$", re.MULTILINE | re.IGNORECASE)
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)


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
    folder = _place(workspace, name)
    if not name or not os.path.isdir(folder):  # noqa: PTH112 (a name that is no path raises elsewhere)
        return None
    return folder if folder.is_relative_to(workspace.resolve()) or _points_back(folder, workspace) else None


def shared_git_folder(folder: Path) -> Path:
    """The data that a linked worktree shares with the others; of any other repository, its folder."""
    return folder.parent.parent if folder.parent.name == "worktrees" else folder


def hooks_folder(folder: Path, workspace: Path) -> Path | None:
    """Where a repository's settings say that its hooks are (`core.hooksPath`); None where they don't."""
    found = _HOOKS.search(_text(folder / "config"))
    return _place(workspace, found[1].strip().strip('"')) if found else None


def borrowed(folder: Path, workspace: Path) -> str:
    """What in a repository's data is that of another, outside the workspace; empty: nothing.

    Of data outside nothing is: it points back, so git made it so.
    """
    root = workspace.resolve()
    if not folder.resolve().is_relative_to(root):
        return ""
    common = _text(folder / "commondir").strip()
    if common and not _place(folder, common).is_relative_to(root):
        return str(folder / "commondir")
    for top, folders, files in os.walk(folder):
        if top == str(folder):
            folders[:] = [name for name in folders if name in {"objects", "refs", "logs", "worktrees"}]
        for place in (f"{top}/{name}" for name in (*folders, *files)):
            if os.path.islink(place) and not Path(os.path.realpath(place)).is_relative_to(root):  # noqa: PTH114 (fast)
                return place
        if top == f"{folder}/objects":  # of thousands, and none can be found without knowing its name
            folders[:] = [name for name in folders if name == "pack"]
    return ""


def _points_back(folder: Path, workspace: Path) -> bool:
    linked = _text(folder / "gitdir").strip()
    if linked:
        return _place(folder, linked) == _place(workspace, ".git")
    submodule = _WORKTREE.search(_text(folder / "config"))
    return bool(submodule) and _place(folder, submodule[1].strip('"')) == workspace.resolve()


def _place(folder: Path, name: str) -> Path:
    return Path(os.path.realpath(folder / name))


def _text(path: Path) -> str:
    """The beginning of a small file; empty where it is no text."""
    if not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        text = file.read(_MOST_BYTES)
    return "" if "\0" in text else text
