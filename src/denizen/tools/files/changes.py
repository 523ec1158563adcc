"""Several files changed together: all of them, or none."""

import os
import secrets
import stat
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from types import EllipsisType

from denizen.errors import ToolRefused
from denizen.tools.files.place import EFFECTIVE, Place, require_file
from denizen.tools.files.workspace import Workspace

Version = tuple[int, int, int]
"""Which version of a file it is: inode, last change in ns, bytes."""

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class NewContent:
    """What a file shall hold; `data` None: it goes away. `executable` None: as it was.

    `replaces` is the version that the content was made from: if another is there, it is left alone and the change
    refused. `...` replaces whatever is there, None only nothing.
    """

    data: bytes | None
    executable: bool | None = None
    replaces: Version | EllipsisType | None = ...


@dataclass(frozen=True, slots=True)
class Changed:
    """A file that was changed, and whether it is new."""

    path: str
    created: bool


def version(found: os.stat_result | None) -> Version | None:
    """Which version that is; None for no file."""
    return (found.st_ino, found.st_mtime_ns, found.st_size) if found else None


def change(workspace: Workspace, contents: Mapping[str, NewContent]) -> list[Changed]:
    """Give the files their new content, each atomically (temporary file, fsync, rename), and all of them or none.

    Missing folders are made. Raises ToolRefused when a rule of the workspace or the system refuses one of them; then
    every file is as it was. A workspace with `planned` is only told.
    """
    if workspace.planned is not None:
        workspace.planned.update({path: content.data for path, content in contents.items()})
        return [Changed(path, created=False) for path in contents]
    made: list[str] = []
    steps: list[_Step] = []
    with ExitStack() as held:
        try:
            for path, content in contents.items():
                steps.append(_Step(held.enter_context(workspace.target(path, made)), content))
                steps[-1].prepare()
            for step in steps:
                step.put(keep_old=len(steps) > 1)
        except BaseException as error:  # whatever the reason, nothing may stay half-done
            lost = _undo(workspace, steps, made)
            if lost:
                raise ToolRefused(f"{error}; then {'; '.join(lost)}") from error
            raise
        return [step.finish() for step in steps]


def _undo(workspace: Workspace, steps: list["_Step"], made: list[str]) -> list[str]:
    """Put everything back; says what could not be."""
    lost = [step.undo() for step in reversed(steps)]
    for path in reversed(made):
        with suppress(OSError, ToolRefused), workspace.at(path) as place:  # somebody else uses the folder meanwhile
            os.rmdir(place.name, dir_fd=place.fd)
    return [text for text in lost if text]


class _Step:
    """One file of a change; beside it lie its new content, until it is put, and then its old one, until all are."""

    def __init__(self, place: Place, content: NewContent) -> None:
        self._place, self._content = place, content
        self._new = self._old = ""
        self._put = self._created = False

    def prepare(self) -> None:
        """Write the new content beside the file. Raises ToolRefused when it can't take the file's place."""
        found = self._place.stat()
        self._check(found)
        self._created = found is None
        if self._content.data is None:
            return
        with self._told():
            self._new = _name()
            mode = 0o777 if self._content.executable else 0o666
            with os.fdopen(os.open(self._new, _NEW_FILE, mode, dir_fd=self._place.fd), "wb") as file:
                file.write(self._content.data)
                file.flush()
                if found:
                    _make_like(file.fileno(), found, self._content.executable)
                os.fsync(file.fileno())

    def put(self, *, keep_old: bool) -> None:
        """Put the new content in the place of the old, which is kept under another name."""
        with self._told():
            if self._content.data is None:
                self._old = self._rename(self._place.name, _name())
            elif keep_old and self._place.stat():
                self._old = self._keep()
            if self._new:
                self._rename(self._new, self._place.name)
            self._put = True

    def undo(self) -> str:
        """Put everything back; where the system refuses, says where the old content is."""
        try:
            self._remove("" if self._put else self._new)
            if self._old:
                self._rename(self._old, self._place.name)
                self._remove(self._old)  # a rename between two names of one file leaves both
            elif self._put:
                self._remove(self._place.name)
        except OSError as error:
            was = f"; what it held is in {self._old} beside it" if self._old else ""
            return f"{self._place.path} could not be put back ({error.strerror}){was}"
        return ""

    def finish(self) -> Changed:
        """Drop the old content."""
        self._remove(self._old)
        return Changed(self._place.path, self._created)

    def _check(self, found: os.stat_result | None) -> None:
        place, replaces = self._place, self._content.replaces
        if found:
            require_file(found, place.path)
            if not os.access(place.name, os.W_OK, dir_fd=place.fd, effective_ids=EFFECTIVE):
                raise ToolRefused(f"{place.path} is read-only")
        if replaces is not ... and replaces != version(found):
            raise ToolRefused(f"{place.path} was changed by somebody else meanwhile; read it again")

    def _keep(self) -> str:
        """The old content under another name; the file itself stays in its place where the file system can do that."""
        fd, name, other = self._place.fd, self._place.name, _name()
        if os.stat(".", dir_fd=fd).st_mode & stat.S_ISVTX:
            return self._rename(name, other)  # a second name of somebody else's file could not be removed again here
        try:
            os.link(name, other, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
        except OSError:
            return self._rename(name, other)
        return other

    def _rename(self, name: str, to: str) -> str:
        os.rename(name, to, src_dir_fd=self._place.fd, dst_dir_fd=self._place.fd)
        return to

    def _remove(self, name: str) -> None:
        if name:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._place.fd)

    @contextmanager
    def _told(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise ToolRefused(f"{self._place.path} can't be written: {error.strerror}") from error


def _name() -> str:
    return f".denizen-{secrets.token_hex(8)}.tmp"


def _make_like(fd: int, found: os.stat_result, executable: bool | None) -> None:
    """Give a new file the owner and the permissions of the one that it replaces."""
    mode = found.st_mode & 0o777
    if executable is not None:
        mode = mode | (mode & 0o444) >> 2 if executable else mode & ~0o111
    with suppress(PermissionError):  # only root may give files away
        os.fchown(fd, found.st_uid, found.st_gid)
    os.fchmod(fd, mode)
