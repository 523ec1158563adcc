"""Changing files: how one is read before, and several changed together, all of them or none."""

import os
import secrets
import stat
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from types import EllipsisType

import msgspec

from denizen.errors import ToolRefused
from denizen.tools.files.open_path import EFFECTIVE_IDS, OpenPath, PathMissing, require_file
from denizen.tools.files.text import Encoding, decode, size
from denizen.tools.files.workspace import Workspace
from denizen.trusted.session_files import text_of

MAX_FILE_BYTES = 32_000_000  # bytes of a file that can be changed

Version = tuple[int, int, int]  # which version of a file it is: inode, last change in ns, bytes

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class LoadedFile:
    """The content of the file `path` (None: there is none), and which version of it that is."""

    path: str
    data: bytes | None = None
    executable: bool = False
    version: Version | None = None

    @property
    def text(self) -> str:
        """The content as text. Raises ToolRefused for binary data."""
        return self._decoded[0]

    def encode(self, text: str) -> bytes:
        """The bytes of another text in the file's encoding. Raises ToolRefused for characters that it doesn't have."""
        return self._decoded[1].encode(text, self.path)

    @cached_property
    def _decoded(self) -> tuple[str, Encoding]:
        decoded = decode(self.data or b"")
        if decoded is None:
            raise ToolRefused(f"{self.path} is binary data ({size(len(self.data or b''))}), not text")
        return decoded


class NewContent(msgspec.Struct, frozen=True):
    """A file's new content; `data` None: it is deleted. `executable` None: as it was.

    `replaces` is the version that the content was made from: if another is there, it is left alone and the change
    refused. `...` replaces whatever is there, None only nothing.
    """

    data: bytes | None
    executable: bool | None = None
    replaces: Version | EllipsisType | None = ...


def version(found: os.stat_result | None) -> Version | None:
    """Which version that is; None for no file."""
    return (found.st_ino, found.st_mtime_ns, found.st_size) if found else None


def load(workspace: Workspace, path: str) -> LoadedFile:
    """Read a file to change it. Raises ToolRefused for what isn't a file, or too large to be held in memory."""
    with workspace.at(path) as found, found.open() as file:
        status = os.fstat(file.fileno())
        if status.st_size > MAX_FILE_BYTES:
            raise ToolRefused(
                f"{found.path} is too large to edit ({size(status.st_size)}, at most {size(MAX_FILE_BYTES)}); "
                "use sed in bash"
            )
        return LoadedFile(found.path, file.read(), bool(status.st_mode & 0o111), version(status))


def load_or_empty(workspace: Workspace, path: str) -> LoadedFile:
    """Like `load`; a file that isn't there has no content."""
    shown = str(PurePosixPath(path))
    try:
        with workspace.at(path) as found:
            shown = found.path
        return load(workspace, path)
    except PathMissing:
        return LoadedFile(shown)


def change(workspace: Workspace, contents: Mapping[str, NewContent]) -> list[tuple[str, bool]]:
    """Give the files their new content, each atomically (temporary file, fsync, rename), and all of them or none.

    Returns their paths, each with whether the file is new.
    Missing folders are made. Raises ToolRefused when a rule of the workspace or the system refuses one of them; then
    every file is as it was. A workspace with `planned` only takes note of it.
    """
    if workspace.planned is not None:
        workspace.planned.update({path: content.data for path, content in contents.items()})
        return [(path, False) for path in contents]
    with workspace.session_files.writing() as carry:
        texts = {name: Path(os.path.normpath(f"{workspace.root}/{name}")) for name in contents if name.endswith(".md")}
        before = {name: text_of(path) for name, path in texts.items()}
        changed = _change(workspace, contents)
        for name, path in texts.items():
            carry(path, before[name], (contents[name].data or b"").decode(errors="replace"))
    return changed


def _change(workspace: Workspace, contents: Mapping[str, NewContent]) -> list[tuple[str, bool]]:
    made: list[str] = []
    files: list[_FileChange] = []
    with ExitStack() as held:
        try:
            for path, content in contents.items():
                files.append(_FileChange(held.enter_context(workspace.at(path, made)), content))
                files[-1].prepare()
            for file in files:
                file.put(keep_old=len(files) > 1)
        except BaseException as error:  # whatever the reason, nothing may stay half-done
            lost = [text for file in reversed(files) if (text := file.undo())]
            for path in reversed(made):
                with suppress(OSError, ToolRefused), workspace.at(path) as folder:  # somebody else uses it meanwhile
                    os.rmdir(folder.name, dir_fd=folder.fd)
            if lost:
                raise ToolRefused(f"{error}; then {'; '.join(lost)}") from error
            raise
        return [file.finish() for file in files]


class _FileChange:
    """One file of a change. Its new content lies next to it until it is put there, then its old one until all are."""

    def __init__(self, target: OpenPath, content: NewContent) -> None:
        self._target, self._content = target, content
        self._new = self._old = ""
        self._put = self._created = False

    def prepare(self) -> None:
        """Write the new content next to the file. Raises ToolRefused when it can't take the file's place."""
        target, replaces, found = self._target, self._content.replaces, self._target.stat()
        if found:
            require_file(found, target.path)
            if not os.access(target.name, os.W_OK, dir_fd=target.fd, effective_ids=EFFECTIVE_IDS):
                raise ToolRefused(f"{target.path} is read-only")
        if replaces is not ... and replaces != version(found):
            raise ToolRefused(f"{target.path} was changed by somebody else meanwhile; read it again")
        self._created = found is None
        if self._content.data is None:
            return
        with self._refusals():
            self._new = _temporary()
            mode = 0o777 if self._content.executable else 0o666
            with os.fdopen(os.open(self._new, _NEW_FILE, mode, dir_fd=target.fd), "wb") as file:
                file.write(self._content.data)
                file.flush()
                if found:  # the owner and the permissions of the one that it replaces
                    mode, executable = found.st_mode & 0o777, self._content.executable
                    if executable is not None:
                        mode = mode | (mode & 0o444) >> 2 if executable else mode & ~0o111
                    with suppress(PermissionError):  # only root may give files away
                        os.fchown(file.fileno(), found.st_uid, found.st_gid)
                    os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())

    def put(self, *, keep_old: bool) -> None:
        """Put the new content in place of the old, which is kept under another name."""
        with self._refusals():
            if self._content.data is None:
                self._old = self._rename(self._target.name, _temporary())
            elif keep_old and self._target.stat():
                self._old = self._keep()
            if self._new:
                self._rename(self._new, self._target.name)
            self._put = True

    def undo(self) -> str:
        """Put everything back; if the system refuses, says where the old content is."""
        try:
            self._remove("" if self._put else self._new)
            if self._old:
                self._rename(self._old, self._target.name)
                self._remove(self._old)  # a rename between two names of one file leaves both
            elif self._put:
                self._remove(self._target.name)
        except OSError as error:
            was = f"; what it held is in {self._old} next to it" if self._old else ""
            return f"{self._target.path} could not be put back ({error.strerror}){was}"
        return ""

    def finish(self) -> tuple[str, bool]:
        """Drop the old content; the file's path, and whether it is new."""
        self._remove(self._old)
        return self._target.path, self._created

    def _keep(self) -> str:
        """The old content under another name; the file itself stays if the file system supports that."""
        fd, name, other = self._target.fd, self._target.name, _temporary()
        if os.stat(".", dir_fd=fd).st_mode & stat.S_ISVTX:
            return self._rename(name, other)  # a second name of somebody else's file could not be removed again here
        try:
            os.link(name, other, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
        except OSError:
            return self._rename(name, other)
        return other

    def _rename(self, name: str, to: str) -> str:
        os.rename(name, to, src_dir_fd=self._target.fd, dst_dir_fd=self._target.fd)
        return to

    def _remove(self, name: str) -> None:
        if name:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._target.fd)

    @contextmanager
    def _refusals(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise ToolRefused(f"{self._target.path} can't be written: {error.strerror}") from error


def _temporary() -> str:
    return f".denizen-{secrets.token_hex(8)}.tmp"
