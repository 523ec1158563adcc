"""The index is read from the sessions' files alone, quickly, and whatever their state."""

import asyncio
import io
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.disk_calls import disk_calls

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


async def test_two_that_were_written_at_the_same_time_are_in_the_order_of_their_names(
    store: JsonlStore, put: Put
) -> None:
    header = line(type="session", id="1", at="2026-01-01T00:00:00Z", key=WORK)
    for name in "bca":
        put(header, name)
    assert [info.key[-1] for info in await store.list()] == ["a", "b", "c"]


# Pages


def begun(name: str, second: int) -> bytes:
    at = datetime.fromtimestamp(1_700_000_000 + second, UTC).isoformat()
    return line(type="session", id="1", parent="", at=at, version=1, key=name)


async def asked_of_the_disk(store: JsonlStore, changed: int) -> tuple[list[str], list[str]]:
    """The names of the sessions on the second page, and what the disk was asked for it."""
    os.utime(store.path("s0").parent, (changed, changed))  # the folder's clock has gone on since
    [*_, last] = await store.page(50)
    with disk_calls(io.open, os.open, os.stat, os.listdir, os.scandir, sqlite3.connect) as calls:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())  # only new threads are watched
        page = await store.page(50, last.used)
    return [info.key.rpartition(":")[2] for info in page], sorted(calls)


async def test_page_asks_the_same_of_the_disk_however_many_sessions_there_are(store: JsonlStore, put: Put) -> None:
    for number in range(100):
        put(begun(f"s{number}", number), f"s{number}")
    names, few = await asked_of_the_disk(store, 1)
    assert names == [f"s{number}" for number in range(49, -1, -1)]
    for number in range(100, 3000):
        put(begun(f"s{number}", number), f"s{number}")
    names, many = await asked_of_the_disk(store, 2)
    assert names == [f"s{number}" for number in range(2949, 2899, -1)]
    assert many == few
    assert 50 <= len(many) < 300


async def test_files_that_came_and_went_without_denizen_are_noticed(store: JsonlStore, put: Put) -> None:
    async with opened(store, "ours"):
        pass
    put(begun("old", 1), "old")
    put(begun("older", 0), "older")
    assert [info.key.rpartition(":")[2] for info in await store.page(9)] == ["ours", "old", "older"]
    store.path("old").unlink()
    assert [info.key.rpartition(":")[2] for info in await store.page(9)] == ["ours", "older"]
    shutil.rmtree(store.path("ours").parent)
    assert await store.page(9) == []


@pytest.mark.parametrize("damage", [b"garbage" * 1000, b""])
async def test_index_that_is_damaged_or_missing_is_made_anew(store: JsonlStore, put: Put, damage: bytes) -> None:
    for number in range(3):
        put(begun(f"s{number}", number), f"s{number}")
    assert len(await store.page(9)) == 3
    index = store.path("s0").parents[1] / "index.db"
    for path in index.parent.glob("index.db*"):
        path.unlink()
    index.write_bytes(damage)
    for _ in range(2):
        assert [info.key[-2:] for info in await store.page(9)] == ["s2", "s1", "s0"]
    async with opened(store, "s0"):
        pass
    assert [info.key[-2:] for info in await store.page(1)] == ["s0"]


async def test_sessions_of_the_same_moment_are_on_one_page(store: JsonlStore, put: Put) -> None:
    for number in range(5):
        put(begun(f"s{number}", number // 3), f"s{number}")
    first = await store.page(3)
    assert [info.key[-1] for info in first] == [*"34012"]
    assert await store.page(3, first[-1].used) == []
