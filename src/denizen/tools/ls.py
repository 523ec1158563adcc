"""`ls`: what is in a folder."""

import os
import stat
from typing import Annotated

from msgspec import Meta

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import ToolContext, Traits
from denizen.tools.files.open_path import OpenPath, kind_of
from denizen.tools.files.text import printable, size
from denizen.tools.files.walk import list_folder, rules_in, why_hidden
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import result, tool

MAX_ENTRIES = 500  # entries that one call shows
MAX_HIDDEN = 20  # hidden entries that are named


@tool(traits=Traits.READS | Traits.REPEATABLE)
def ls(turn: ToolContext, path: str = ".", start: Annotated[int, Meta(ge=1)] = 1) -> ToolResult:
    """List a folder: folders, then files with their sizes. What git ignores is only named.

    Args:
        start: First entry shown
    """
    workspace = Workspace.of(turn)
    rows: list[str] = []
    hidden: list[str] = []
    with workspace.at(path) as folder, folder.folder() as fd:
        rules = rules_in(workspace, folder, fd)
        for entry in sorted(list_folder(fd), key=lambda entry: not entry.is_dir(follow_symlinks=False)):
            why = why_hidden(workspace, rules, (*folder.names, entry.name), entry)
            (hidden if why else rows).append(_row(OpenPath(fd, entry.name), with_details=not why))
    if start > max(len(rows), 1):
        raise ToolRefused(f"{folder.path} has {len(rows)} entries; there is none from {start} on")
    end = start - 1 + MAX_ENTRIES
    text = "\n".join(rows[start - 1 : end]) or "[nothing to show]"
    if len(rows) > end:
        text += f"\n[{len(rows)} entries in all; to go on: ls {folder.path} start={end + 1}]"
    if hidden:
        text += f"\n[hidden: {', '.join(hidden[:MAX_HIDDEN])}{', …' if len(hidden) > MAX_HIDDEN else ''}]"
    return result(text, path=folder.path, entries=len(rows), hidden=len(hidden))


def _row(entry: OpenPath, *, with_details: bool) -> str:
    name, found = printable(entry.name), entry.stat()
    if found is None:
        return f"{name} (gone meanwhile)"
    if stat.S_ISDIR(found.st_mode):
        return f"{name}/"
    if not with_details:
        return name
    if stat.S_ISREG(found.st_mode):
        return f"{name}  {size(found.st_size)}"
    if stat.S_ISLNK(found.st_mode):
        return f"{name} -> {printable(os.readlink(entry.name, dir_fd=entry.fd))}"
    return f"{name}  ({kind_of(found)})"
