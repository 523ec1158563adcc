"""A session's file is private, and a disk that refuses, or somebody who deletes it, costs nothing that was written."""

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.full_disk import file_size_limit

from denizen.entries import AnyEntry, NoteEntry
from denizen.errors import SessionError
from denizen.ports import Session
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore
from denizen.testing.conformance_store import content, opened, said

BIG = NoteEntry(text="x" * 200_000)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 128 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


async def test_file_and_folders_are_private(store: JsonlStore) -> None:
    path = store.path("work")
    before = os.umask(0)
    try:
        async with opened(store) as session:
            await session.append(said("1"))
            await store.fork("work", "other")
            files = [*path.parent.iterdir()]
            assert len(files) == 4  # the session, the fork, and their locks
            assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
            assert {stat.S_IMODE(folder.stat().st_mode) for folder in path.parents[:2]} == {0o700}
    finally:
        os.umask(before)


async def test_file_that_others_could_read_is_closed_to_them(store: JsonlStore) -> None:
    async with opened(store):
        pass
    store.path("work").chmod(0o644)
    async with opened(store):
        assert stat.S_IMODE(store.path("work").stat().st_mode) == 0o600


async def test_full_disk_refuses_an_entry_whole_and_takes_it_when_there_is_room(small_disk: Path) -> None:
    store = JsonlStore(small_disk / "sessions", clock=SystemClock())
    async with opened(store) as session:
        await session.append(said("1"))
        before, data = session.head, store.path("work").read_bytes()
        with pytest.raises(SessionError, match=r"No space left on device\. Free some space, .* is safe"):
            await session.append(BIG)
        assert store.path("work").read_bytes() == data
        assert session.head == before
        await session.append(said("2"))
        assert content(await store.read("work")) == content(session.entries) == [said("1"), said("2")]


async def test_disk_that_fills_up_slowly_loses_no_entry(small_disk: Path) -> None:
    store = JsonlStore(small_disk / "sessions", clock=SystemClock())
    async with opened(store) as session:
        while not await refused(session, NoteEntry(text="x" * 1000)):
            pass
        assert len(session.entries) > 20
        assert [*await store.read("work")] == [*session.entries]
    async with opened(store) as session:
        assert not session.warnings


async def refused(session: Session, entry: AnyEntry) -> bool:
    try:
        await session.append(entry)
    except SessionError:
        return True
    return False


async def test_line_that_was_written_in_part_is_taken_back(store: JsonlStore) -> None:
    async with opened(store) as session:
        await session.append(said("1"))
        data = store.path("work").read_bytes()
        with file_size_limit(len(data) + 100), pytest.raises(SessionError, match="Free some space"):
            await session.append(BIG)
        assert store.path("work").read_bytes() == data
        await session.append(said("2"))
    assert content(await store.read("work")) == [said("1"), said("2")]


async def test_disk_without_room_for_a_header_gives_the_lock_back(store: JsonlStore) -> None:
    with file_size_limit(20), pytest.raises(SessionError, match="Free some space"):
        await store.open("work")
    async with opened(store) as session:
        assert len(session.entries) == 1


async def test_fork_that_does_not_fit_leaves_nothing_behind(store: JsonlStore) -> None:
    async with opened(store) as session:
        await session.append(BIG)
    with file_size_limit(5000), pytest.raises(SessionError, match="Free some space"):
        await store.fork("work", "other")
    name = store.path("work").name
    assert {file.name for file in store.path("work").parent.iterdir()} == {name, f"{name}.lock"}


@pytest.mark.parametrize("replace", [False, True])
async def test_file_that_was_deleted_is_noticed(store: JsonlStore, replace: bool) -> None:
    path = store.path("work")
    async with opened(store) as session:
        await session.append(said("1"))
        saved = path.with_suffix(".saved")
        path.rename(saved)
        if replace:
            path.write_bytes(saved.read_bytes())
        for _ in range(2):
            with pytest.raises(SessionError, match="was deleted or replaced while it was in use"):
                await session.append(said("2"))
    async with opened(store) as session:
        assert content(session.entries) == ([said("1")] if replace else [])


async def test_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("a file")
    with pytest.raises(SessionError, match="sessions"):
        await JsonlStore(tmp_path / "sessions", clock=SystemClock()).open("work")


async def test_file_that_cannot_be_read_is_an_error(store: JsonlStore) -> None:
    store.path("work").mkdir(parents=True)
    for attempt in (store.open("work"), store.read("work")):
        with pytest.raises(SessionError, match="Is a directory"):
            await attempt
