"""The index of the workspace's code, brought up to date on every use."""

import os
import threading
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from denizen.config.home import project_folder
from denizen.config.lock_file import locked
from denizen.errors import ToolRefused
from denizen.structure import Index, SourceFile, use_index
from denizen.tools.files.open_path import OpenPath
from denizen.tools.files.text import decode
from denizen.tools.files.walk import FoundEntry, SkippedEntries, walk
from denizen.tools.files.workspace import Workspace

T = TypeVar("T")

_INSTALLED_FOLDERS = frozenset({"node_modules", "site-packages", "__pycache__", ".venv", "venv"})
"""Folders with other people's code: not the project's, even if git doesn't ignore them."""
_BUILT_SUFFIXES = (".min.js", ".min.css", ".bundle.js")


def with_index(
    workspace: Workspace,
    home: Path,
    work: Callable[[Index], T],
    stop: threading.Event,
    show: Callable[[str], None] = lambda line: None,
) -> T:
    """The result of `work` with the index of the whole workspace, brought up to date; `.gitignore` is obeyed.

    `home` is Denizen's. Until `stop` is set, then with what was indexed so far. `show` gets lines about a long wait.
    Blocks: call it in a thread (`run_in_thread(stop, with_index, …)`). Raises ToolRefused.
    """
    path = project_folder(home, Path(workspace.root)) / "index.db"

    def refreshed(index: Index) -> T:
        turn = locked(path.with_suffix(".refresh"), stop)  # whoever comes second finds nothing left to do
        with turn, closing(code_files(workspace, stop)) as files:
            index.refresh(files, stop=stop, show=lambda parsed: show(f"{parsed} files indexed\n"))
        return work(index)

    return use_index(path, refreshed)


def code_files(workspace: Workspace, stop: threading.Event) -> Generator[SourceFile]:
    """The files of the workspace that may be its own code."""
    with closing(walk(workspace, ".", SkippedEntries(), stop)) as entries:
        for entry in entries:
            name = entry.names[-1]
            if entry.is_file and _INSTALLED_FOLDERS.isdisjoint(entry.names) and not name.endswith(_BUILT_SUFFIXES):
                found = OpenPath(entry.folder, name).stat()
                if found:
                    # bytes that aren't text are escaped, because the database takes only text
                    path = os.fsencode("/".join(entry.names)).decode("utf-8", "backslashreplace")
                    stamp = (found.st_size, found.st_mtime_ns, found.st_ino)
                    yield SourceFile(path, stamp, lambda entry=entry: _source(entry))


def utf8(data: bytes) -> bytes | None:
    """A file's text in UTF-8, whatever its encoding; None for binary data."""
    decoded = decode(data)
    return decoded[0].encode("utf-8", "surrogateescape") if decoded else None


def _source(entry: FoundEntry) -> bytes | None:
    try:
        with OpenPath(entry.folder, entry.names[-1]).open() as file:
            return utf8(file.read())
    except ToolRefused as error:  # replaced in the meantime by something that isn't a file
        raise OSError(0, str(error)) from error
