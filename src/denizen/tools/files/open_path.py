"""A path whose folder is held open, so that it stays what it was found to be."""

import difflib
import io
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress

import msgspec

from denizen.errors import ToolRefused
from denizen.tools.files.text import printable

EFFECTIVE_IDS = os.access in os.supports_effective_ids
"""For `os.access`: whether it can be asked for the rights that the process has now."""
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFLNK: "a link"}

Names = tuple[str, ...]  # the names of a path's folders and its own, from `/` on


class PathMissing(ToolRefused):
    """There is nothing at the path."""


class OpenPath(msgspec.Struct, frozen=True):
    """Where a path leads: the entry `name` of the open folder `fd` (`.`: that folder itself).

    `path` is for people and models: relative to the workspace, or absolute outside it; `address` leads there again,
    whatever characters are in it.
    """

    fd: int
    name: str
    path: str = ""
    address: str = ""
    names: Names = ()

    def stat(self) -> os.stat_result | None:
        """The entry's status; None: there is none."""
        with suppress(FileNotFoundError):
            return os.stat(self.name, dir_fd=self.fd, follow_symlinks=False)
        return None

    def open(self) -> io.BufferedReader:
        """The file, for reading. Raises ToolRefused for anything but a plain file, without waiting on it."""
        require_file(self._existing(), self.path)
        file = os.fdopen(os.open(self.name, _OPEN_FILE, dir_fd=self.fd), "rb")
        try:
            require_file(os.fstat(file.fileno()), self.path)
        except ToolRefused:
            file.close()
            raise
        return file

    @contextmanager
    def folder(self) -> Generator[int]:
        """The folder, open for listing. Raises ToolRefused for anything else."""
        found = self._existing()
        if not stat.S_ISDIR(found.st_mode):
            raise ToolRefused(f"{self.path} is {kind_of(found)}, not a folder")
        fd = os.open(self.name, OPEN_FOLDER, dir_fd=self.fd)
        try:
            yield fd
        finally:
            os.close(fd)

    def _existing(self) -> os.stat_result:
        found = self.stat()
        if found is None:
            raise path_missing(self.fd, self.name, self.path)
        return found


def kind_of(found: os.stat_result) -> str:
    """The kind of entry, in words."""
    return _KINDS.get(stat.S_IFMT(found.st_mode), "a file" if stat.S_ISREG(found.st_mode) else "a device")


def require_file(found: os.stat_result, path: str) -> None:
    """Raises ToolRefused for anything but a plain file."""
    if not stat.S_ISREG(found.st_mode):
        hint = "; list it with ls" if stat.S_ISDIR(found.st_mode) else ", not a plain file"
        raise ToolRefused(f"{path} is {kind_of(found)}{hint}")


def path_missing(fd: int, name: str, path: str) -> PathMissing:
    """The refusal of a path that leads to nothing; it names the entries most like it."""
    names: dict[str, str] = {}
    with suppress(OSError), OpenPath(fd, ".").folder() as folder, os.scandir(folder) as entries:
        names = {entry.name.casefold(): entry.name for entry in entries}
    near = difflib.get_close_matches(name.casefold(), names, 3, 0.6)
    here = path.removesuffix(printable(name))
    nearest = ", ".join(here + printable(names[other]) for other in near)
    return PathMissing(f"{path} doesn't exist" + (f"; the nearest: {nearest}" if near else ""))
