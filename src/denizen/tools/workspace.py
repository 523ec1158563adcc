"""Paths of a turn: they stay in the workspace, whatever links there are and whoever exchanges them meanwhile."""

import difflib
import errno
import io
import os
import stat
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from denizen.errors import ToolRefused
from denizen.ports import ToolContext
from denizen.tools.text import printable

MOST_LINKS = 40
"""Symbolic links that one path may lead through."""
CONFIGURATION = "denizen.toml"
"""At the workspace's root the tools don't write it: it says what they may do."""

EFFECTIVE = os.access in os.supports_effective_ids
"""For `os.access`: whether it can be asked for the rights that the process has now."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_THROUGH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFLNK: "a link"}


class Missing(ToolRefused):
    """There is nothing at the path."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads: the entry `name` of the open folder `fd` (`.`: that folder itself).

    `path` is for people and models: relative to the workspace, or absolute outside it; `address` leads there again,
    whatever signs are in it.
    """

    fd: int
    name: str
    path: str = ""
    address: str = ""

    @property
    def names(self) -> Sequence[str] | None:
        """Its names below the workspace; None outside it."""
        return None if self.address.startswith("/") else _split(self.address)

    def stat(self) -> os.stat_result | None:
        """What is there; None for nothing."""
        with suppress(FileNotFoundError):
            return os.stat(self.name, dir_fd=self.fd, follow_symlinks=False)
        return None

    def open(self) -> io.BufferedReader:
        """The file, for reading. Raises ToolRefused for anything but a plain file, without waiting on it."""
        require_file(self._found(), self.path)
        file = os.fdopen(os.open(self.name, _READ, dir_fd=self.fd), "rb")
        try:
            require_file(os.fstat(file.fileno()), self.path)
        except ToolRefused:
            file.close()
            raise
        return file

    @contextmanager
    def folder(self) -> Generator[int]:
        """The folder, open for listing. Raises ToolRefused for anything else."""
        found = self._found()
        if not stat.S_ISDIR(found.st_mode):
            raise ToolRefused(f"{self.path} is {kind(found)}, not a folder")
        fd = os.open(self.name, FOLDER, dir_fd=self.fd)
        try:
            yield fd
        finally:
            os.close(fd)

    def _found(self) -> os.stat_result:
        found = self.stat()
        if found is None:
            raise _missing(self.fd, self.name, self.path)
        return found


def kind(found: os.stat_result) -> str:
    """What sort of thing it is, in words."""
    return _KINDS.get(stat.S_IFMT(found.st_mode), "a file" if stat.S_ISREG(found.st_mode) else "a device")


def require_file(found: os.stat_result, path: str) -> None:
    """Raises ToolRefused for anything but a plain file."""
    if not stat.S_ISREG(found.st_mode):
        hint = "; list it with ls" if stat.S_ISDIR(found.st_mode) else ", not a plain file"
        raise ToolRefused(f"{path} is {kind(found)}{hint}")


class Workspace:
    """The files that a turn may touch: those below `root`, or with `restricted=False` all that the user may.

    Every path is walked one name at a time from an open folder to the next, and links are followed by hand, so that
    nobody can lead it elsewhere between a check and its use.
    """

    def __init__(self, root: Path, *, restricted: bool = True) -> None:
        self.root = os.path.realpath(root)
        self._roots = {str(root.absolute()), self.root}
        self._restricted = restricted

    @classmethod
    def of(cls, turn: ToolContext) -> "Workspace":
        """The workspace of a turn."""
        return cls(turn.workspace, restricted=turn.restricted)

    @contextmanager
    def at(self, path: str) -> Generator[Place]:
        """Where `path` leads, held open; the entry itself need not exist.

        Raises ToolRefused for a path that leaves the workspace, and for what the system refuses inside the block.
        """
        with self._told(path), closing(self._descent()) as descent:
            yield self._descend(descent, path, None)

    @contextmanager
    def target(self, path: str, made: list[str]) -> Generator[Place]:
        """Like `at`, to write there: folders that are missing on the way are made, and added to `made`.

        Raises ToolRefused also for what the tools never write: git's own data, and Denizen's configuration.
        """
        with self._told(path), closing(self._descent()) as descent:
            yield self._descend(descent, path, made)

    @contextmanager
    def _told(self, path: str) -> Generator[None]:
        try:
            yield
        except ValueError as error:
            raise ToolRefused(f"{path!r} can't be a path: {error}") from error
        except OSError as error:
            raise ToolRefused(f"{printable(path)}: {error.strerror or error}") from error

    def _descent(self) -> "_Descent":
        return _Descent(self.root if self._restricted else "/")

    def _descend(self, descent: "_Descent", path: str, made: list[str] | None) -> Place:
        pending, links = deque(self._parts(path, path)), 0
        while pending:
            name = pending.popleft()
            if name == "..":
                if not descent.leave() and self._restricted:
                    raise self._outside(path)
            elif (link := descent.link(name)) is not None:
                links += 1
                if links > MOST_LINKS:
                    raise ToolRefused(f"{printable(path)} leads through too many links")
                pending.extendleft(reversed(self._follow(descent, link, path)))
            elif pending:
                self._enter(descent, name, made)
            else:
                return self._place(descent, [*descent.names, name], name, made)
        return self._place(descent, descent.names, ".", made)

    def _follow(self, descent: "_Descent", link: str, path: str) -> list[str]:
        if not link.startswith("/"):
            return _split(link)
        descent.restart()
        return self._parts(link, path)

    def _enter(self, descent: "_Descent", name: str, made: list[str] | None) -> None:
        try:
            descent.enter(name)
        except FileNotFoundError:
            shown = self._shown([*descent.names, name])
            if made is None:
                raise _missing(descent.fd, name, shown) from None
            _require_writable(shown)
            os.mkdir(name, dir_fd=descent.fd)
            made.append(shown)
            descent.enter(name)

    def _place(self, descent: "_Descent", names: Sequence[str], name: str, made: list[str] | None) -> Place:
        shown = self._shown(names)
        if made is not None:
            _require_writable(shown)
        inside = self._inside(names)
        return Place(descent.fd, name, shown, _joined(names) if inside is None else "/".join([".", *inside]))

    def _parts(self, path: str, asked: str) -> list[str]:
        """The names that lead to `path` from where a descent begins; `asked` is what the model asked for."""
        if not path:
            raise ToolRefused("an empty path leads nowhere; the workspace itself is `.`")
        if path.startswith("~"):
            raise ToolRefused(f"{printable(path)}: ~ isn't expanded; give a path relative to the workspace")
        if not self._restricted:
            return _split(path if path.startswith("/") else f"{self.root}/{path}")
        if not path.startswith("/"):
            return _split(path)
        for root in self._roots:
            if f"{path}/".startswith(f"{root}/"):
                return _split(path.removeprefix(root))
        raise self._outside(asked)

    def _outside(self, path: str) -> ToolRefused:
        return ToolRefused(
            f"{printable(path)} leads out of the workspace {self.root}; only paths inside it are allowed"
        )

    def _inside(self, names: Sequence[str]) -> Sequence[str] | None:
        """The names below the workspace; None outside it."""
        if self._restricted:
            return names
        root = _split(self.root)
        return names[len(root) :] if [*names[: len(root)]] == root else None

    def _shown(self, names: Sequence[str]) -> str:
        inside = self._inside(names)
        return printable(_joined(names) if inside is None else "/".join(inside) or ".")


class _Descent:
    """A way down through open folders, each opened from the one before it and never by its path."""

    def __init__(self, base: str) -> None:
        self._fds = [os.open(base, _THROUGH & ~os.O_NOFOLLOW)]
        self.names: list[str] = []

    @property
    def fd(self) -> int:
        """The folder where it stands."""
        return self._fds[-1]

    def link(self, name: str) -> str | None:
        """Where the link `name` points; None for anything else."""
        try:
            return os.readlink(name, dir_fd=self.fd)
        except OSError as error:
            if error.errno in {errno.EINVAL, errno.ENOENT}:
                return None
            raise

    def enter(self, name: str) -> None:
        """Step into a folder."""
        self._fds.append(os.open(name, _THROUGH, dir_fd=self.fd))
        self.names.append(name)

    def leave(self) -> bool:
        """Step back; False at the start."""
        if not self.names:
            return False
        self.names.pop()
        os.close(self._fds.pop())
        return True

    def restart(self) -> None:
        """Step back to the start."""
        while self.leave():
            pass

    def close(self) -> None:
        """Give back the folders."""
        while self._fds:
            os.close(self._fds.pop())


def _split(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in {"", "."}]


def _joined(names: Sequence[str]) -> str:
    return "/" + "/".join(names)


def _require_writable(path: str) -> None:
    names = path.casefold().split("/")
    if ".git" in names:
        raise ToolRefused(f"{path} is git's own data, which the tools don't write")
    if names == [CONFIGURATION]:
        raise ToolRefused(f"{path} is Denizen's configuration, which only the user writes")


def _missing(fd: int, name: str, path: str) -> Missing:
    here = path.removesuffix(printable(name))
    near = [here + printable(other) for other in _nearest(fd, name)]
    return Missing(f"{path} doesn't exist" + (f"; the nearest: {', '.join(near)}" if near else ""))


def _nearest(fd: int, name: str) -> list[str]:
    names: dict[str, str] = {}
    with suppress(OSError), Place(fd, ".").folder() as folder, os.scandir(folder) as entries:
        names = {entry.name.casefold(): entry.name for entry in entries}
    return [names[near] for near in difflib.get_close_matches(name.casefold(), names, 3, 0.6)]
