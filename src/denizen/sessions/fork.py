"""Makes a new session out of the beginning of another."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from denizen.entries import AnyEntry, HeadEntry, SessionEntry
from denizen.sessions.disk import told
from denizen.sessions.flush import Flusher
from denizen.sessions.transcript import Transcript


def forked(source: Transcript, at: str, header: SessionEntry) -> Iterator[AnyEntry]:
    """The new session's entries: `header`, which works where the source does, and what led to entry `at`."""
    path = source.path(at)
    match path:
        case [SessionEntry() as old, *path]:
            header = msgspec.structs.replace(header, id=old.id, workspace=old.workspace, profile=old.profile)
        case _:
            header = msgspec.structs.replace(header, id=source.next_id())
    yield header
    parent = header.id
    for entry in path:
        yield msgspec.structs.replace(entry, parent=parent)
        parent = entry.id
    yield HeadEntry(id=source.next_id(), parent=parent, to=parent)


async def create(path: Path, data: bytes, flusher: Flusher | None) -> None:
    """Write a file whole or not at all, private to the user. The caller holds its lock. Raises SessionError."""
    temporary = path.with_name(f".{path.name}.new")
    with told("write", path):
        try:
            fd = _filled(temporary, data)
            await flusher.sync(fd) if flusher else os.close(fd)
            temporary.rename(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if flusher:
            await flusher.sync(os.open(path, os.O_RDONLY | os.O_CLOEXEC), path.parents[:2])


def _filled(path: Path, data: bytes) -> int:
    """The descriptor of a new file that holds `data`."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(fd, rest) :]
    except OSError:
        os.close(fd)
        raise
    return fd
