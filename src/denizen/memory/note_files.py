"""Notes as plain files that the user reads and edits, too."""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from denizen.config.files import write_private
from denizen.errors import ConfigError, ToolRefused
from denizen.memory.notes import MAX_READ
from denizen.trusted.session_files import SessionFiles

_OPEN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # the workspace's own file, not what a link or a pipe leads to


class NoteFiles:
    """The notes in the agent's own workspace, without what commands changed in these `session_files`.

    Raises ToolRefused when the disk refuses; then nothing has changed.
    """

    in_workspace = True

    def __init__(self, workspace: Path, session_files: SessionFiles) -> None:
        self._workspace = workspace
        self._session_files = session_files

    def daily(self) -> list[str]:
        """The names of the daily notes."""
        found = self._workspace.glob("memory/[0-9]*/[0-9]*.md")
        return [path.relative_to(self._workspace).as_posix() for path in found]

    def read(self, names: Sequence[str]) -> list[str]:
        """The texts of notes, empty for those that don't exist."""
        paths = [self._workspace / name for name in names]
        counted = self._session_files.counted(paths)
        return [_text_of(path) if text is None else text for path, text in zip(paths, counted, strict=True)]

    def append(self, name: str, addition: Callable[[str], str]) -> bool:
        """Add to a note, synced to disk."""
        path = self._workspace / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._session_files.writing() as carry, _locked(path) as descriptor:
                kept = _read(descriptor)
                added = addition(kept)
                if added:
                    _append(descriptor, added)
                    carry(path, kept, kept + added)
        except OSError as error:
            raise ToolRefused(f"Nothing was remembered: {path} can't be written ({error.strerror})") from error
        return bool(added)

    def remove_lines(self, name: str, says: Callable[[str], bool]) -> bool:
        """Take lines out; whether there was one."""
        path = self._workspace / name
        try:
            if not path.exists():
                return False
            with self._session_files.writing() as carry, _locked(path) as descriptor:
                lines = os.pread(descriptor, os.fstat(descriptor).st_size, 0).splitlines(keepends=True)
                kept = [line for line in lines if not says(line.decode(errors="replace"))]
                if len(kept) < len(lines):
                    write_private(path, b"".join(kept))
                    carry(path, b"".join(lines).decode(errors="replace"), b"".join(kept).decode(errors="replace"))
        except (OSError, ConfigError) as error:
            raise ToolRefused(f"{path} can't be changed: {error}") from error
        return len(kept) < len(lines)


@contextmanager
def _locked(path: Path) -> Generator[int]:
    """The open file at `path`, made where it is missing, which no other process of ours changes meanwhile."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _OPEN, 0o600)
        try:
            _require_file(descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            is_still_there = False
            with suppress(FileNotFoundError):
                is_still_there = os.path.samestat(os.fstat(descriptor), path.lstat())
            if is_still_there:  # else an editor put another file in its place
                yield descriptor
                return
        finally:
            os.close(descriptor)


def _require_file(descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(errno.EINVAL, "it is not a file")


def _read(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    text = os.pread(descriptor, MAX_READ, max(size - MAX_READ, 0)).decode(errors="replace")
    return text if size <= MAX_READ else text.partition("\n")[2]  # whole lines: a mark is at the beginning


def _append(descriptor: int, text: str) -> None:
    """Write the text at the end and sync it; where that fails, none of it stays."""
    size, data = os.fstat(descriptor).st_size, text.encode()
    try:
        if os.write(descriptor, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _text_of(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | _OPEN)
        try:
            _require_file(descriptor)
            return _read(descriptor)
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise ToolRefused(f"{path} can't be read: {error.strerror}") from error
