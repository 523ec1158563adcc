"""Opening a session again: cheap while its file is as it was left, and never wrong when it isn't."""

import os
from pathlib import Path

import pytest

from denizen.errors import SessionError
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore
from denizen.sessions.jsonl import MAX_CLOSED_SESSIONS
from denizen.testing.conformance_store import content, opened, said


def another(store: JsonlStore) -> JsonlStore:
    """A store of the same sessions, as another process has it."""
    return JsonlStore(store.path("work").parents[1], clock=SystemClock())


async def test_what_another_process_wrote_meanwhile_is_there(store: JsonlStore) -> None:
    async with opened(store) as session:
        first = await session.append(said("1"))
    async with opened(another(store)) as session:
        await session.move_head(first)
        await session.append(said("2"))
    async with opened(store) as session:
        assert content(session.entries) == [said("1"), said("2")]


async def test_session_that_another_made_anew_at_once_is_read_anew(store: JsonlStore) -> None:
    for _ in range(20):  # the same inode and size; and the same time, where the kernel's clock for files ticks slowly
        async with opened(store) as session:
            await session.append(said("one"))
        await another(store).remove("work")
        async with opened(another(store)) as session:
            await session.append(said("two"))
        async with opened(store) as session:
            assert content(session.entries) == [said("two")]
        await store.remove("work")


async def test_what_was_added_by_others_while_it_was_open_is_there_the_next_time(store: JsonlStore) -> None:
    async with opened(store) as session:
        await session.append(said("1"))
        store.path("work").with_name(store.path("work").name + ".lock").unlink()
        async with opened(another(store)) as other:
            await other.append(said("2"))
    async with opened(store) as session:
        assert content(session.entries) == [said("1"), said("2")]


async def test_file_that_was_edited_in_place_is_read_anew(store: JsonlStore) -> None:
    async with opened(store) as session:
        await session.append(said("one"))
    path = store.path("work")
    before, edited = path.stat(), path.read_bytes().replace(b"one", b"two")
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # some kernels' clock for files ticks slowly
        path.write_bytes(edited)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    async with opened(store) as session:
        assert content(session.entries) == [said("two")]


async def test_file_that_was_replaced_by_an_older_one_is_read_anew(store: JsonlStore, tmp_path: Path) -> None:
    async with opened(store) as session:
        await session.append(said("1"))
        backup = store.path("work").read_bytes()
        await session.append(said("2"))
    (tmp_path / "backup").write_bytes(backup)
    (tmp_path / "backup").rename(store.path("work"))
    async with opened(store) as session:
        assert content(session.entries) == [said("1")]


async def test_session_that_could_not_be_written_is_read_anew(store: JsonlStore) -> None:
    session = await store.open("work")
    await session.append(said("1"))
    store.path("work").rename(store.path("work").with_suffix(".away"))
    with pytest.raises(SessionError):
        await session.append(said("2"))
    await session.close()
    store.path("work").with_suffix(".away").rename(store.path("work"))
    async with opened(store) as again:
        assert content(again.entries) == [said("1")]


async def test_removed_session_begins_anew(store: JsonlStore) -> None:
    async with opened(store) as session:
        await session.append(said("1"))
    await store.remove("work")
    async with opened(store) as session:
        assert content(session.entries) == []


async def test_sessions_closed_long_ago_are_read_from_their_files(tmp_path: Path) -> None:
    store = JsonlStore(tmp_path, clock=SystemClock(), sync=False)
    left = {}
    for name in (f"s{number}" for number in range(MAX_CLOSED_SESSIONS + 1)):
        async with opened(store, name) as session:
            await session.append(said(name))
            left[name] = session.entries
    read = []
    for name, entries in reversed(left.items()):
        async with opened(store, name) as session:
            assert content(session.entries) == [said(name)]
            if session.entries is not entries:
                read.append(name)
    assert read == ["s0"]
