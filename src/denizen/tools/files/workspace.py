"""The files that a turn may touch: paths stay in the workspace, whatever links there are, even if swapped meanwhile."""

import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path

from denizen.config.rules import DeniedPaths
from denizen.errors import ToolRefused
from denizen.ports import ToolContext
from denizen.tools.files.open_path import Names, OpenPath, path_missing
from denizen.tools.files.text import printable
from denizen.trusted.autorun import completes_git_data, git_folder
from denizen.trusted.session_files import SessionFiles

CONFIGURATION = "denizen.toml"  # the tools don't write it at the workspace's root: it says what they may do
MAX_LINKS = 40  # symbolic links that one path may lead through

_FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Workspace:
    """The files below `root`, or with `restricted=False` all that the user may touch.

    The folders `readable` may be read, too. `private` is closed, except for those of the others inside it; so is what
    the user's rules have `denied`. Every path is walked one name at a time from an open folder to the next, and links
    are followed by hand, so that nobody can lead it elsewhere between check and use. Where `planned` is a dict,
    `change` puts the new contents there and writes nothing.
    """

    def __init__(
        self,
        root: Path,
        *,
        restricted: bool = True,
        readable: Sequence[Path] = (),
        private: Path | None = None,
        denied: DeniedPaths | None = None,
        planned: dict[str, bytes | None] | None = None,
    ) -> None:
        self.planned = planned
        self.session_files = SessionFiles(private or root)
        self.root = os.path.realpath(root)
        self._top = split(self.root)
        self._restricted = restricted
        self._denied = denied or DeniedPaths()
        self._roots = {str(form): os.path.realpath(form) for form in (root.absolute(), *readable)}
        self._roots |= {real: real for real in self._roots.values()}
        self._private = split(os.path.realpath(private)) if private else None
        self._open_in_private = [names for names in map(split, self._roots.values()) if self._in_private(names)]

    @classmethod
    def of(cls, turn: ToolContext) -> "Workspace":
        """The workspace of a turn."""
        return cls(
            turn.workspace,
            restricted=turn.restricted,
            readable=turn.readable,
            private=turn.private,
            denied=turn.denied,
            planned=turn.planned,
        )

    @contextmanager
    def at(self, path: str, made: list[str] | None = None) -> Generator[OpenPath]:
        """Where `path` leads, its folder held open; the entry itself need not exist.

        With `made` it is to be written there: folders missing on the way are made, and added to `made`. Raises
        ToolRefused for a path that leaves the workspace or may not be read (or written), and for what the system
        refuses inside the block.
        """
        try:
            with closing(_Descent(self, path)) as descent:
                yield descent.go(made)
        except ValueError as error:
            raise ToolRefused(f"{path!r} can't be a path: {error}") from error
        except OSError as error:
            raise ToolRefused(f"{printable(path)}: {error.strerror or error}") from error

    def start(self, path: str, asked: str) -> tuple[str, Names]:
        """The open folder where the way to `path` begins, and the names from there on. Raises ToolRefused."""
        if not path:
            raise ToolRefused("an empty path leads nowhere; the workspace itself is `.`")
        if path.startswith("~"):
            raise ToolRefused(f"{printable(asked)}: ~ isn't expanded; give a path relative to the workspace")
        path = path if path.startswith("/") else f"{self.root}/{path}"
        if not self._restricted:
            return "/", split(path)
        forms = [form for form in self._roots if f"{path}/".startswith(f"{form.rstrip('/')}/")]
        if not forms:
            raise self.leads_out(asked)
        form = max(forms, key=len)
        return self._roots[form], split(path.removeprefix(form))

    def leads_out(self, asked: str) -> ToolRefused:
        """The refusal of a path that leaves the workspace."""
        return ToolRefused(
            f"{printable(asked)} leads out of the workspace {self.root}; only paths inside it are allowed"
        )

    def inside(self, names: Names) -> Names | None:
        """The names below the workspace; None outside it."""
        return names[len(self._top) :] if _is_below(names, self._top) else None

    def shown(self, names: Names) -> str:
        """The path for people and models: relative to the workspace, or absolute outside it."""
        inside = self.inside(names)
        return printable(f"/{'/'.join(names)}" if inside is None else "/".join(inside) or ".")

    def is_private(self, names: Names) -> bool:
        """Whether it is the private folder itself, which searches leave out."""
        return names == self._private

    def check_readable(self, names: Names, *, on_the_way: bool = False) -> None:
        """Raises ToolRefused for what is private."""
        if self._in_private(names) and not any(
            _is_below(names, folder) or (on_the_way and _is_below(folder, names)) for folder in self._open_in_private
        ):
            raise ToolRefused(f"{self.shown(names)} is Denizen's own, which the tools don't touch")

    def check_writable(self, names: Names) -> None:
        """Raises ToolRefused for what may only be read."""
        inside = self.inside(names)
        only_lent = self._in_private(names) and not (self._in_private(self._top) and inside is not None)
        if (inside is None and self._restricted) or only_lent:
            raise ToolRefused(f"{self.shown(names)} can only be read")
        data = git_folder(Path(self.root))
        if (
            ".git" in [name.casefold() for name in names]
            or (data is not None and _is_below(names, split(str(data))))
            or (inside is not None and completes_git_data(self.root, inside))
        ):
            raise ToolRefused(f"{self.shown(names)} is git's own data, which the tools don't write")
        if inside is not None and [name.casefold() for name in inside] == [CONFIGURATION]:
            raise ToolRefused(f"{self.shown(names)} is Denizen's configuration, which only the user writes")

    def denies(self, names: Names, status: Callable[[], os.stat_result | None]) -> bool:
        """Whether a rule of the user's denies it, or a file that is this one under another name."""
        if not self._denied.patterns or (inside := self.inside(names)) is None:
            return False
        if "/".join(inside) in self._denied:
            return True
        found = status()
        if found is None or not stat.S_ISREG(found.st_mode) or found.st_nlink == 1:
            return False
        return (found.st_dev, found.st_ino) in self._denied_files

    @cached_property
    def _denied_files(self) -> set[tuple[int, int]]:
        """The devices and inodes of all files that are denied."""
        denied: set[tuple[int, int]] = set()
        for folder, _, files in os.walk(self.root):
            below = folder.removeprefix(self.root).removeprefix("/")
            for file in files:
                if f"{below}/{file}".removeprefix("/") in self._denied:
                    with suppress(OSError):
                        found = os.lstat(f"{folder}/{file}")
                        denied.add((found.st_dev, found.st_ino))
        return denied

    def _in_private(self, names: Names) -> bool:
        return self._private is not None and _is_below(names, self._private)


class _Descent:
    """A way down through open folders, each opened from the one before it and never by its path."""

    def __init__(self, workspace: Workspace, path: str) -> None:
        self._workspace = workspace
        self._path = path
        self._fds: list[int] = []
        self._pending: deque[str] = deque()
        self._start(path)

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.pop())

    def go(self, made: list[str] | None) -> OpenPath:
        links = 0
        while self._pending:
            name = self._pending.popleft()
            if name == "..":
                if len(self._names) > self._floor:
                    self._names = self._names[:-1]
                    os.close(self._fds.pop())
                elif self._floor:
                    raise self._workspace.leads_out(self._path)
                continue
            names = (*self._names, name)
            self._workspace.check_readable(names, on_the_way=True)
            link = None
            try:
                link = os.readlink(name, dir_fd=self._fds[-1])
            except OSError as error:
                if error.errno not in {errno.EINVAL, errno.ENOENT}:  # no link, or nothing there
                    raise
            if link is not None:
                links += 1
                if links > MAX_LINKS:
                    raise ToolRefused(f"{printable(self._path)} leads through too many links")
                if link.startswith("/"):
                    self._start(link)
                else:
                    self._pending.extendleft(reversed(split(link)))
            elif self._pending:
                self._fds.append(self._open_folder(name, names, made))
                self._names = names
            else:
                return self._arrive(names, name, writing=made is not None)
        return self._arrive(self._names, ".", writing=made is not None)

    def _start(self, path: str) -> None:
        base, names = self._workspace.start(path, self._path)
        self.close()
        self._fds.append(os.open(base, _FOLDER_FLAGS & ~os.O_NOFOLLOW))
        self._names = split(base)
        self._floor = len(self._names)
        self._pending.extendleft(reversed(names))

    def _open_folder(self, name: str, names: Names, made: list[str] | None) -> int:
        with suppress(FileNotFoundError):
            return os.open(name, _FOLDER_FLAGS, dir_fd=self._fds[-1])
        if made is None:
            raise path_missing(self._fds[-1], name, self._workspace.shown(names))
        self._workspace.check_writable(names)
        os.mkdir(name, dir_fd=self._fds[-1])
        made.append(self._workspace.shown(names))
        return os.open(name, _FOLDER_FLAGS, dir_fd=self._fds[-1])

    def _arrive(self, names: Names, name: str, *, writing: bool) -> OpenPath:
        workspace = self._workspace
        workspace.check_readable(names)
        if writing:
            workspace.check_writable(names)
        shown, inside = workspace.shown(names), workspace.inside(names)
        address = f"/{'/'.join(names)}" if inside is None else "/".join((".", *inside))
        found = OpenPath(self._fds[-1], name, shown, address, names)
        if workspace.denies(names, found.stat):
            raise ToolRefused(f"{shown} is denied by the user's policy")
        return found


def split(path: str) -> Names:
    """The names of a path."""
    return tuple(name for name in path.split("/") if name not in {"", "."})


def _is_below(names: Names, folder: Names) -> bool:
    return names[: len(folder)] == folder
