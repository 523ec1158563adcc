"""The files that `grep` searches."""

import os
import stat
import threading
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass

from denizen.errors import ToolRefused
from denizen.tools.files.glob import Glob, any_glob
from denizen.tools.files.open_path import EFFECTIVE_IDS
from denizen.tools.files.text import size
from denizen.tools.files.walk import FoundEntry, Skipped, path_below, walk
from denizen.tools.files.workspace import Workspace

BATCH = 60_000
"""Characters of file names that one process is told."""
LARGEST = 200_000_000
"""Bytes of a file that is searched: all of it may be one line, which is held in memory."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The files that fit one of the patterns; `but`: those that don't, and aren't in a folder that does."""

    globs: Sequence[Glob]
    but: bool

    def takes(self, names: Sequence[str]) -> bool:
        if not self.but:
            return any(glob.matches(names, is_folder=False) for glob in self.globs)
        entries = [names[:length] for length in range(1, len(names) + 1)]
        return not any(glob.matches(entry, is_folder=entry != names) for glob in self.globs for entry in entries)


def candidates(
    workspace: Workspace, path: str, glob: str, skipped: Skipped, stop: threading.Event
) -> Generator[Sequence[str]]:
    """The addresses of the file `path`, or of those below the folder, as many at a time as one process can be told.

    Raises ToolRefused for anything else.
    """
    with workspace.at(path) as place:
        found = place.stat()
        top = place.address
        if found and stat.S_ISREG(found.st_mode):
            if found.st_size > LARGEST:
                raise ToolRefused(f"{place.path} is too large to search ({size(found.st_size)}); use bash, with grep")
            yield [top]
            return
    wanted = _Wanted(any_glob(glob.removeprefix("!")) if glob else [Glob("*")], but=glob.startswith("!"))
    batch: list[str] = []
    length = 0
    with closing(walk(workspace, path, skipped, stop)) as entries:
        for entry in entries:
            if entry.is_file and wanted.takes(entry.names):
                if why := _unsearchable(entry):
                    skipped.unread.append(f"{path_below(top.removeprefix('./'), entry.names)} ({why})")
                    continue
                batch.append("/".join([top.rstrip("/"), *entry.names]))
                length += len(batch[-1])
            if length > BATCH:
                yield [*batch]
                batch.clear()
                length = 0
    if batch:
        yield batch


def _unsearchable(entry: FoundEntry) -> str:
    """Why a file can't be searched; empty: it can."""
    name = entry.names[-1]
    try:
        found = os.stat(name, dir_fd=entry.folder, follow_symlinks=False)
    except OSError as error:
        return error.strerror or str(error)
    if found.st_size > LARGEST:
        return size(found.st_size)
    may = os.access(name, os.R_OK, dir_fd=entry.folder, effective_ids=EFFECTIVE_IDS)
    return "" if may else "Permission denied"
