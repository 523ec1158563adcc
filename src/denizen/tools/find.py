"""`find`: files and folders by name."""

import asyncio
import re
import threading
from contextlib import closing
from typing import Annotated

from msgspec import Meta

from denizen.messages import ToolResult
from denizen.ports import Tool, ToolContext, Traits
from denizen.runtime.cancellation import run_in_thread
from denizen.tools.files.glob import any_glob
from denizen.tools.files.walk import SkippedEntries, path_below, walk
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import result, tool

MAX_PATHS = 500  # paths that one call shows
TIMEOUT_S = 30.0  # how long a search may take

_SPECIAL = re.compile(r"[*?\[]")


def find_tool(*, seconds: float = TIMEOUT_S) -> Tool:
    """The tool, which searches for at most that long."""

    @tool(traits=Traits.READS | Traits.REPEATABLE)
    async def find(
        turn: ToolContext, pattern: str, path: str = ".", start: Annotated[int, Meta(ge=1)] = 1
    ) -> ToolResult:
        """Find files and folders by name, without those that git ignores.

        Args:
            pattern: Glob: `*.py` anywhere, `src/**/*.{ts,tsx}` from `path`, `test/` for folders
            path: Folder to search
            start: First result shown
        """
        stop = threading.Event()
        late = asyncio.get_running_loop().call_later(seconds, stop.set)
        try:
            return await run_in_thread(stop, _find, Workspace.of(turn), path, pattern, start=start, stop=stop)
        finally:
            late.cancel()

    return find


find = find_tool()


def _find(workspace: Workspace, path: str, pattern: str, *, start: int, stop: threading.Event) -> ToolResult:
    globs, skipped = any_glob(pattern.removeprefix(f"{workspace.root}/")), SkippedEntries()
    found: list[str] = []
    with workspace.at(path) as place:
        folder = place.path
    with closing(walk(workspace, path, skipped, stop)) as entries:
        for entry in entries:
            if any(glob.matches(entry.names, is_folder=entry.is_folder) for glob in globs):
                found.append(path_below(folder, entry.names) + ("/" if entry.is_folder else ""))
                if len(found) == start + MAX_PATHS:
                    break
    shown = found[start - 1 : start - 1 + MAX_PATHS]
    text = "\n".join(shown)
    if not shown:
        hint = "" if found or _SPECIAL.search(pattern) else f"; to find part of a name: *{pattern.strip('/')}*"
        text = f"[nothing {'more ' if found else ''}matches {pattern}{hint}]"
    if len(found) == start + MAX_PATHS:
        text += f"\n[there is more; to go on: find with start={start + MAX_PATHS}]"
    if stop.is_set():
        text += "\n[not all was searched: it took too long; give a narrower `path`]"
    return result(text + skipped.notes(nothing_found=not found), path=folder, pattern=pattern, found=len(shown))
