"""Files of settings, trust and prompts: read without surprises, written whole and private."""

import os
import stat
from pathlib import Path

from denizen.errors import ConfigError

_MAX_BYTES = 1_000_000


def read_file(path: Path, limit: int, *, from_end: bool = False) -> bytes | None:
    """The first `limit` bytes of a regular file, or the last whole lines of those; None if the file doesn't exist.

    Raises OSError when it can't be read, at once for a folder, pipe or device of that name.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            if from_end and (size := os.fstat(descriptor).st_size) > limit:
                file.seek(size - limit)
                file.readline()  # the rest of one
            return file.read(limit)
    finally:
        os.close(descriptor)


def read_settings(path: Path) -> bytes | None:
    """The bytes of a small file; None if it doesn't exist. Raises ConfigError if it is huge or can't be read."""
    try:
        data = read_file(path, _MAX_BYTES)
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}.") from error
    if data is not None and len(data) == _MAX_BYTES:
        raise ConfigError(f"{path} is larger than {_MAX_BYTES:,} bytes: too large for settings.")
    return data


def as_text(data: bytes, path: Path) -> str:
    """The text that a file's bytes are. Raises ConfigError with the first line that isn't UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line} is not UTF-8 text.") from error


def write_private(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Write a file whole or not at all, for the user alone (0600); where `path` is a link, the file that it names.

    Without `sync` the machine's death may take it back. Raises ConfigError when the disk refuses.
    """
    path = path.resolve()
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(data)
            file.flush()
            if sync:
                os.fsync(descriptor)
        temporary.replace(path)
        if not sync:
            return
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ConfigError(f"{path} can't be written: {error.strerror}.") from error
