"""Paths of a turn: they stay in the workspace, whatever links there are and whoever exchanges them meanwhile."""

import errno
import os
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from denizen.config.rules import DeniedPaths
from denizen.errors import ToolRefused
from denizen.ports import ToolContext
from denizen.tools.files.borders import Borders, split
from denizen.tools.files.place import Place, missing
from denizen.tools.files.text import printable

MOST_LINKS = 40
"""Symbolic links that one path may lead through."""

_THROUGH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Workspace:
    """The files that a turn may touch: those below `root`, or with `restricted=False` all that the user may.

    The folders `readable` may be read, too; `private` and what is `denied` by the user's rules are closed. Every path
    is walked one name at a time from an open folder to the next, and links are followed by hand, so that nobody can
    lead it elsewhere between check and use. Where `planned` is a dict, `change` puts the new contents there and writes
    nothing.
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
        self.borders = Borders(root, restricted=restricted, readable=readable, private=private, denied=denied)
        self.root = self.borders.root

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

    def names(self, place: Place) -> list[str]:
        """The names of a place from `/` on."""
        return split(place.address if place.names is None else f"{self.root}/{place.address}")

    @contextmanager
    def at(self, path: str) -> Generator[Place]:
        """Where `path` leads, held open; the entry itself need not exist.

        Raises ToolRefused for a path that leaves the workspace, and for what the system refuses inside the block.
        """
        with _told(path), closing(_Descent(self.borders, path)) as descent:
            yield descent.go(None)

    @contextmanager
    def target(self, path: str, made: list[str]) -> Generator[Place]:
        """Like `at`, to write there: folders that are missing on the way are made, and added to `made`.

        Raises ToolRefused also for what the tools never write: git's own data, and Denizen's configuration.
        """
        with _told(path), closing(_Descent(self.borders, path)) as descent:
            yield descent.go(made)


class _Descent:
    """A way down through open folders, each opened from the one before it and never by its path."""

    def __init__(self, borders: Borders, path: str) -> None:
        self._borders = borders
        self._path = path
        self._fds: list[int] = []
        self._pending: deque[str] = deque()
        self._begin(path)

    def go(self, made: list[str] | None) -> Place:
        """Where the path leads. With `made`, it is to be written there, and missing folders are made."""
        links = 0
        while self._pending:
            name = self._pending.popleft()
            if name == "..":
                self._leave()
                continue
            self._borders.require_open([*self._names, name], on_the_way=True)
            link = self._link(name)
            if link is not None:
                links += 1
                if links > MOST_LINKS:
                    raise ToolRefused(f"{printable(self._path)} leads through too many links")
                self._follow(link)
            elif self._pending:
                self._enter(name, made)
            else:
                return self._arrive([*self._names, name], name, made)
        return self._arrive(self._names, ".", made)

    def close(self) -> None:
        """Give back the folders."""
        while self._fds:
            os.close(self._fds.pop())

    def _begin(self, path: str) -> None:
        base, names = self._borders.begin(path, self._path)
        self.close()
        self._fds.append(os.open(base, _THROUGH & ~os.O_NOFOLLOW))
        self._names = split(base)
        self._top = len(self._names)
        self._pending.extendleft(reversed(names))

    def _arrive(self, names: Sequence[str], name: str, made: list[str] | None) -> Place:
        self._borders.require_open(names)
        if made is not None:
            self._borders.require_writable(names)
        place = Place(self._fds[-1], name)
        if self._borders.denies(names, place.stat):
            raise ToolRefused(f"{self._borders.shown(names)} is denied by the user's policy")
        inside = self._borders.inside(names)
        address = f"/{'/'.join(names)}" if inside is None else "/".join([".", *inside])
        return Place(self._fds[-1], name, self._borders.shown(names), address, inside)

    def _leave(self) -> None:
        if len(self._names) > self._top:
            self._names.pop()
            os.close(self._fds.pop())
        elif self._top:
            raise self._borders.outside(self._path)

    def _link(self, name: str) -> str | None:
        """Where the link `name` points; None for anything else."""
        try:
            return os.readlink(name, dir_fd=self._fds[-1])
        except OSError as error:
            if error.errno in {errno.EINVAL, errno.ENOENT}:
                return None
            raise

    def _follow(self, link: str) -> None:
        if link.startswith("/"):
            self._begin(link)
        else:
            self._pending.extendleft(reversed(split(link)))

    def _enter(self, name: str, made: list[str] | None) -> None:
        try:
            fd = os.open(name, _THROUGH, dir_fd=self._fds[-1])
        except FileNotFoundError:
            names = [*self._names, name]
            if made is None:
                raise missing(self._fds[-1], name, self._borders.shown(names)) from None
            self._borders.require_writable(names)
            os.mkdir(name, dir_fd=self._fds[-1])
            made.append(self._borders.shown(names))
            fd = os.open(name, _THROUGH, dir_fd=self._fds[-1])
        self._fds.append(fd)
        self._names.append(name)


@contextmanager
def _told(path: str) -> Generator[None]:
    """What the system refuses, as words for the model."""
    try:
        yield
    except ValueError as error:
        raise ToolRefused(f"{path!r} can't be a path: {error}") from error
    except OSError as error:
        raise ToolRefused(f"{printable(path)}: {error.strerror or error}") from error
