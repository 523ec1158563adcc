"""A folder as a tree with sizes: as deep as fits, and counts for what is left out."""

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from denizen.text.plural import counted
from denizen.tools.files.open_path import OpenPath
from denizen.tools.files.text import printable, size
from denizen.tools.files.walk import SkippedEntries, walk
from denizen.tools.files.workspace import Workspace

MAX_ROWS = 100  # of the whole tree
MAX_ENTRIES_PER_FOLDER = 30  # entries of one folder that are shown
DEFAULT_DEPTH = 2  # levels that are shown unasked


@dataclass(slots=True)
class FolderTree:
    """A folder: what is in it, the number and size of all files below it, and at the top how many levels there are."""

    files: int = 0
    bytes: int = 0
    deepest: int = 0
    folders: "dict[str, FolderTree]" = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)


def read_tree(workspace: Workspace, address: str, skipped: SkippedEntries, stop: threading.Event) -> FolderTree:
    """All that is below the folder, without what git ignores."""
    tree = FolderTree()
    with closing(walk(workspace, address, skipped, stop)) as entries:
        for entry in entries:
            found = OpenPath(entry.folder, entry.names[-1]).stat()
            if found is None:
                continue  # gone meanwhile
            tree.deepest = max(tree.deepest, len(entry.names))
            folders = [tree]
            for name in entry.names if entry.is_folder else entry.names[:-1]:
                folders.append(folders[-1].folders.setdefault(printable(name), FolderTree()))
            if not entry.is_folder:
                folders[-1].sizes[printable(entry.names[-1])] = found.st_size
                for folder in folders:
                    folder.files += 1
                    folder.bytes += found.st_size
    return tree


def tree_rows(tree: FolderTree, depth: int | None) -> tuple[list[str], int]:
    """The rows of the tree, and how deep they go: `depth`, or fewer levels than usual if that is too much."""
    rows: list[str] = []
    levels = depth or DEFAULT_DEPTH
    for levels in range(depth or DEFAULT_DEPTH, 0, -1):
        rows = [*_rows(tree, levels, "")]
        if len(rows) <= MAX_ROWS:
            break
    return rows[:MAX_ROWS], levels


def tree_facts(tree: FolderTree, depth: int, path: str = "") -> list[dict[str, Any]]:
    """The entries as a filter gets them, `depth` levels of them."""
    facts: list[dict[str, Any]] = []
    for name, folder in tree.folders.items():
        facts.append({"path": path + name, "kind": "folder", "bytes": folder.bytes, "files": folder.files})
        facts += tree_facts(folder, depth - 1, f"{path}{name}/") if depth > 1 else []
    return facts + [{"path": path + name, "kind": "file", "bytes": length} for name, length in tree.sizes.items()]


def summary(folder: FolderTree) -> str:
    """How much is in it."""
    return f"{counted(folder.files, 'file')}, {size(folder.bytes)}"


def _rows(tree: FolderTree, depth: int, indent: str) -> Iterator[str]:
    for name, folder in [*tree.folders.items()][:MAX_ENTRIES_PER_FOLDER]:
        while len(folder.folders) == 1 and not folder.sizes:  # shown with the only folder in it
            ((inner, folder),) = folder.folders.items()
            name = f"{name}/{inner}"
        yield f"{indent}{name}/  {summary(folder)}"
        if depth > 1:
            yield from _rows(folder, depth - 1, f"{indent}  ")
    room = max(MAX_ENTRIES_PER_FOLDER - len(tree.folders), MAX_ENTRIES_PER_FOLDER // 3)
    for name, length in [*tree.sizes.items()][:room]:
        yield f"{indent}{name}  {size(length)}"
    left = max(len(tree.folders) - MAX_ENTRIES_PER_FOLDER, 0) + max(len(tree.sizes) - room, 0)
    if left:
        yield f"{indent}… {left} more"
