"""The index is read from the sessions' files alone, quickly, and whatever their state."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from denizen.entries import AssistantEntry, EndEntry, NoteEntry, UserEntry
from denizen.messages import AssistantMessage, Image, Text, Usage, UserMessage
from denizen.ports import SessionInfo
from denizen.sessions import JsonlStore
from denizen.testing.conformance_store import WORK, opened, said

END = EndEntry(stop_reason="answered", model="m", last_call_usage=Usage(5, 6))


async def only(store: JsonlStore) -> SessionInfo:
    [info] = await store.list()
    return info


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("word " * 100, "word " * 15 + "word…"),
        ("a\n\n  b\tc", "a b c"),
        ("\x1b[31mred\x07", "[31mred"),
        ("é" * 300_000, "é" * 79 + "…"),
        ('"\\' * 60_000, '"\\' * 39 + '"…'),
    ],
    ids=["long", "white space", "escapes", "longer than the window", "escaped in JSON"],
)
async def test_title_is_one_short_line(store: JsonlStore, text: str, title: str) -> None:
    async with opened(store) as session:
        await session.append(said(text))
    assert (await only(store)).title == title


async def test_title_is_the_first_message_with_words(store: JsonlStore) -> None:
    async with opened(store) as session:
        await session.append(NoteEntry(text="x"))
        await session.append(UserEntry(message=UserMessage([Image("image/png", b"\0" * 100)])))
        await session.append(said("What is it?"))
    assert (await only(store)).title == "What is it?"


@pytest.mark.parametrize("length", [1000, 100_000, 1_000_000])
async def test_what_the_last_finished_turn_used_is_found_before_a_long_unfinished_one(
    store: JsonlStore, length: int
) -> None:
    async with opened(store) as session:
        await session.append(said("Hi"))
        await session.append(END)
        await session.append(said("On"))
        await session.append(AssistantEntry(message=AssistantMessage([Text("x" * length)])))
    info = await only(store)
    assert (info.stop_reason, info.model, info.tokens, info.cost_usd) == ("unfinished", "m", 11, 0.0)


async def test_words_that_look_like_an_end_are_none(store: JsonlStore) -> None:
    async with opened(store) as session:
        await session.append(END)
        await session.append(said('{"type":"end","stop_reason":"loop"}'))
    assert (await only(store)).stop_reason == "unfinished"


async def test_updated_is_when_the_last_entry_was_written(store: JsonlStore) -> None:
    async with opened(store) as session:
        await session.append(said("Hi"))
        at = session.entries[-1].at
        assert at
        assert (await only(store)).updated == at.timestamp()


Put = Callable[..., Path]


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage",
        b"\xff\xfe\n\0\0",
        line(type="session", version=2, key={}),
        line(type="end", at="2026"),
        b"\n" * 9,
    ],
)
async def test_damaged_file_is_listed_with_what_can_be_read(store: JsonlStore, put: Put, data: bytes) -> None:
    path = put(data)
    assert await only(store) == SessionInfo(WORK, bytes=len(data), updated=path.stat().st_mtime)


async def test_damage_within_hides_nothing_else(store: JsonlStore, put: Put) -> None:
    async with opened(store) as session:
        await session.append(said("Hi"))
        await session.append(END)
    first, *rest = store.path("work").read_bytes().splitlines(keepends=True)
    put(first + b"\xff\n" + b"".join(rest) + b'{"type":"user","at":"20')
    info = await only(store)
    assert (info.title, info.workspace, info.model) == ("Hi", "/home/ann/shop", "m")


async def test_session_whose_name_is_too_long_for_its_file_is_listed_by_its_key(store: JsonlStore) -> None:
    async with opened(store, "x" * 300) as session:
        assert (await only(store)).key == session.key


async def test_file_that_cannot_be_read_is_listed_by_its_name(
    store: JsonlStore, caplog: pytest.LogCaptureFixture
) -> None:
    store.path("work").mkdir(parents=True)
    assert await only(store) == SessionInfo(WORK)
    assert "Is a directory" in caplog.text


async def test_other_files_are_no_sessions(store: JsonlStore, put: Put) -> None:
    path = put(b"")
    path.with_name(f".{path.name}.new").touch()
    path.with_name("notes.txt").touch()
    assert len(await store.list()) == 1


async def test_two_that_were_written_at_the_same_time_are_in_the_order_of_their_files(
    store: JsonlStore, put: Put
) -> None:
    import os

    header = line(type="session", id="1", at="2026-01-01T00:00:00Z", key=WORK)
    for name, modified in (("a", 3), ("b", 1), ("c", 2)):
        os.utime(put(header, name), (modified, modified))
    assert [info.key[-1] for info in await store.list()] == ["a", "c", "b"]
