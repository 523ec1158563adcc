"""`ls`: what is in a folder."""

import os
import stat
from typing import Annotated

from msgspec import Meta

from denizen.cancellation import run_in_thread
from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import ToolContext, Traits
from denizen.tools.files.ignore import ignored_above
from denizen.tools.files.place import Place, kind
from denizen.tools.files.text import printable, size
from denizen.tools.files.walk import list_folder
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import result, tool

MOST = 500
"""Entries that one call shows."""
MOST_HIDDEN = 20
"""Hidden entries that are named."""


@tool(traits=Traits.READS | Traits.REPEATABLE)
async def ls(turn: ToolContext, path: str = ".", start: Annotated[int, Meta(ge=1)] = 1) -> ToolResult:
    """List a folder: folders, then files with their sizes. What git ignores is only named.

    Args:
        start: First entry shown
    """
    return await run_in_thread(None, _ls, Workspace.of(turn), path, start)


def _ls(workspace: Workspace, path: str, start: int) -> ToolResult:
    with workspace.at(path) as place, place.folder() as fd:
        names, above = place.names or (), workspace.names(place)
        private = workspace.borders.private_below(place.address)
        ignored = ignored_above(workspace, place.names).within(Place(fd, ".gitignore"), len(names))
        rows: list[str] = []
        hidden: list[str] = []
        for entry in sorted(list_folder(fd), key=lambda entry: not entry.is_dir(follow_symlinks=False)):
            is_folder = entry.is_dir(follow_symlinks=False)
            closed = entry.name == ".git" or [entry.name] == private
            if workspace.borders.denies([*above, entry.name], lambda entry=entry: entry.stat(follow_symlinks=False)):
                closed = True
            hides = closed or ignored.hides((*names, entry.name), is_folder=is_folder)
            (hidden if hides else rows).append(_row(Place(fd, entry.name), named_only=hides))
        return _page(place.path, rows, hidden, start)


def _row(place: Place, *, named_only: bool) -> str:
    """An entry as it is shown."""
    name, found = printable(place.name), place.stat()
    if found is None:
        return f"{name} (gone meanwhile)"
    if stat.S_ISDIR(found.st_mode):
        return f"{name}/"
    if named_only:
        return name
    if stat.S_ISREG(found.st_mode):
        return f"{name}  {size(found.st_size)}"
    return f"{name} -> {_target(place)}" if stat.S_ISLNK(found.st_mode) else f"{name}  ({kind(found)})"


def _target(place: Place) -> str:
    return printable(os.readlink(place.name, dir_fd=place.fd))


def _page(path: str, rows: list[str], hidden: list[str], start: int) -> ToolResult:
    if start > max(len(rows), 1):
        raise ToolRefused(f"{path} has {len(rows)} entries; there is none from {start} on")
    end = start - 1 + MOST
    text = "\n".join(rows[start - 1 : end]) or "[nothing to show]"
    if len(rows) > end:
        text += f"\n[{len(rows)} entries in all; to go on: ls {path} start={end + 1}]"
    if hidden:
        text += f"\n[hidden: {', '.join(hidden[:MOST_HIDDEN])}{', …' if len(hidden) > MOST_HIDDEN else ''}]"
    return result(text, path=path, entries=len(rows), hidden=len(hidden))
