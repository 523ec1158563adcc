"""A fork is a sound session whatever its source is, made whole or not at all."""

import json

import pytest

from denizen.entries import SessionEntry
from denizen.errors import SessionError
from denizen.sessions import JsonlStore
from denizen.testing.conformance_store import WORK, content, opened, said


async def test_fork_of_a_damaged_session_is_sound(store: JsonlStore) -> None:
    async with opened(store) as session:
        for text in ("1", "2", "3"):
            await session.append(said(text))
    path = store.path("work")
    header, one, two, three = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"\xff" + header + one + b"\xff" + two + three + three[:10])
    await store.fork("work", "other")
    async with opened(store, "other") as fork:
        assert not fork.warnings
        assert content(fork.entries) == [said("1"), said("3")]
        assert isinstance(fork.entries[0], SessionEntry)
        assert fork.entries[0].forked_from == WORK
    lines = [json.loads(line) for line in store.path("other").read_bytes().splitlines()]
    assert [line["parent"] for line in lines] == ["", *(line["id"] for line in lines[:-1])]


async def test_file_that_a_dying_process_left_half_written_is_no_obstacle(store: JsonlStore) -> None:
    async with opened(store) as session:
        await session.append(said("1"))
    path = store.path("other")
    half = path.with_name(f".{path.name}.new")
    half.write_bytes(b"x" * 10_000)
    await store.fork("work", "other")
    assert content(await store.read("other")) == [said("1")]
    assert not half.exists()


async def test_fork_into_a_session_that_is_open_is_refused(store: JsonlStore) -> None:
    async with opened(store), opened(store, "other") as other:
        with pytest.raises(SessionError, match="other is already open"):
            await store.fork("work", "other")
        await other.append(said("1"))
    assert content(await store.read("other")) == [said("1")]
