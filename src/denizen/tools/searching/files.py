"""The files that `grep` searches, and the lines of one around its matches."""

import os
import stat
import threading
from collections.abc import Generator, Sequence
from contextlib import closing

from denizen.errors import ToolRefused
from denizen.tools.files.glob import any_glob
from denizen.tools.files.open_path import EFFECTIVE_IDS
from denizen.tools.files.text import lines_of, open_text, readable, size
from denizen.tools.files.walk import FoundEntry, Skipped, path_below, walk
from denizen.tools.files.workspace import Workspace
from denizen.tools.searching.search import Hit

BATCH = 60_000
"""Characters of file names that one process is given."""
LARGEST = 200_000_000
"""Bytes of a file that is searched: all of it may be one line, which is held in memory."""
LONGEST = 300
"""Characters of a line that are shown, with the match among them."""
_LONGEST_READ = 1 << 20

Row = tuple[bool, str]
"""A line as it is shown, and whether it counts as a result."""


def candidates(
    workspace: Workspace, path: str, skipped: Skipped, stop: threading.Event, *, glob: str, language: str
) -> Generator[Sequence[str]]:
    """The addresses of the file `path`, or of those below the folder, as many at a time as one process can be given.

    Only those that fit `glob` (with `!`: that don't, and aren't in a folder that does), and of the language. Raises
    ToolRefused for anything but a file or folder.
    """
    globs = any_glob(glob.removeprefix("!")) if glob else []

    def wanted(names: Sequence[str]) -> bool:
        if not _is_of_language(names[-1], language):
            return False
        if not glob.startswith("!"):
            return not globs or any(each.matches(names, is_folder=False) for each in globs)
        entries = [names[:length] for length in range(1, len(names) + 1)]
        return not any(each.matches(entry, is_folder=entry != names) for each in globs for entry in entries)

    with workspace.at(path) as place:
        found, top = place.stat(), place.address
        if found and stat.S_ISREG(found.st_mode):
            if found.st_size > LARGEST:
                raise ToolRefused(f"{place.path} is too large to search ({size(found.st_size)}); use bash, with grep")
            if _is_of_language(top, language):
                yield [top]
            return
    batch: list[str] = []
    length = 0
    with closing(walk(workspace, path, skipped, stop)) as entries:
        for entry in entries:
            if entry.is_file and wanted(entry.names):
                if why := _why_unsearchable(entry):
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


def excerpt(workspace: Workspace, address: str, hits: Sequence[Hit], context: int, stop: threading.Event) -> list[Row]:
    """The lines of the hits, numbered, with lines around; nothing of a file that is binary or gone meanwhile."""
    columns = dict(hits)
    near = {number + shift for number in columns for shift in range(-context, context + 1)}
    end = max(near)
    rows: list[Row] = []
    last: int | None = None
    try:
        with workspace.at(address) as place, place.open() as file:
            text = open_text(file)
            if text is None:
                return []
            for number, (line, _) in enumerate(lines_of(text, _LONGEST_READ, stop), 1):
                if number in near:
                    rows += [(False, "--")] if context and last and number > last + 1 else []
                    sign = ":" if number in columns else "-"
                    rows.append((number in columns, f"{number}{sign}{_cut(line, columns.get(number, 1))}"))
                    last = number
                if number == end:
                    break
    except ToolRefused:
        return []
    return rows


def _is_of_language(path: str, language: str) -> bool:
    if not language:
        return True
    from denizen.structure import is_of_type

    return is_of_type(path, language)


def _why_unsearchable(entry: FoundEntry) -> str:
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


def _cut(line: str, column: int) -> str:
    """The part of a long line that the match at the column (in bytes) is in."""
    if len(line) > LONGEST:
        at = len(line.encode(errors="surrogateescape")[: column - 1].decode(errors="ignore"))
        begin = max(min(at - LONGEST // 3, len(line) - LONGEST), 0)
        end = begin + LONGEST
        line = ("…" if begin else "") + line[begin:end] + ("…" if end < len(line) else "")
    return readable(line)[0]
