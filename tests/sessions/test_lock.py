"""One process writes a session; another learns which, and may write when that one is gone."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from denizen.entries import AnyEntry, NoteEntry, UserEntry
from denizen.errors import SessionError
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore
from denizen.testing.conformance_store import content, opened, said

HOLDER = Path(__file__).with_name("holder.py")


@contextmanager
def holder(store: JsonlStore, *options: str) -> Generator[subprocess.Popen[str]]:
    """Another process that has the session `work` open."""
    command = [sys.executable, str(HOLDER), str(store.path("work").parents[1]), *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "open\n"
        yield process
        process.kill()


def text_of(entry: AnyEntry) -> str:
    match entry:
        case UserEntry(message=message):
            return message.text
        case NoteEntry(text=text):
            return text
    raise AssertionError(entry)


def lock_of(store: JsonlStore) -> Path:
    return store.path("work").with_name(store.path("work").name + ".lock")


async def test_second_process_learns_who_has_the_session(store: JsonlStore) -> None:
    with holder(store, "pause") as process:
        for attempt in (store.open("work"), store.remove("work")):
            with pytest.raises(
                SessionError, match=rf"work is held by process {process.pid} since 20.* UTC\. Wait until"
            ):
                await attempt
        assert len(await store.read("work")) == 1  # readers need no lock


async def test_session_is_free_when_its_process_has_ended(store: JsonlStore) -> None:
    with holder(store, "pause") as process:
        process.communicate()
        async with opened(store) as session:
            await session.append(said("and on"))
    assert content(await store.read("work")) == [said("and on")]


async def test_opening_twice_in_one_process_is_an_error(store: JsonlStore) -> None:
    async with opened(store):
        with pytest.raises(SessionError, match="work is already open in this process"):
            await store.open("work")


async def test_killed_process_loses_nothing_that_it_acknowledged(store: JsonlStore) -> None:
    for _ in range(3):
        store.path("work").unlink(missing_ok=True)
        with holder(store) as process:
            assert process.stdout
            seen = [process.stdout.readline() for _ in range(200)]
            process.send_signal(signal.SIGKILL)
            seen += process.stdout.read().splitlines(keepends=True)
        acknowledged = [int(line) for line in seen if line.endswith("\n")]
        async with opened(store) as session:
            kept = content(session.entries)
            await session.append(said("and on"))
        assert acknowledged == [*range(len(acknowledged))]
        assert len(acknowledged) <= len(kept) <= len(acknowledged) + 1
        assert [*map(text_of, kept)] == [f"{number} " + "x" * (number % 3000) for number in range(len(kept))]
        assert content(await store.read("work")) == [*kept, said("and on")]


async def test_lock_file_that_a_dead_process_left_is_no_obstacle(store: JsonlStore) -> None:
    lock = lock_of(store)
    lock.parent.mkdir(parents=True)
    lock.write_text(f"process {os.getppid()} since 2020-01-01 00:00:00 UTC")
    async with opened(store) as session:
        await session.append(said("1"))
        assert lock.read_text().startswith(f"process {os.getpid()} since ")
        assert "2020" not in lock.read_text()


async def test_lock_file_goes_with_its_session(store: JsonlStore) -> None:
    async with opened(store):
        pass
    await store.remove("work")
    assert not lock_of(store).exists()


@pytest.mark.parametrize("replace", [False, True])
async def test_no_message_is_taken_in_once_the_lock_is_lost(store: JsonlStore, replace: bool) -> None:
    async with opened(store) as first:
        await first.append(said("1"))
        lock_of(store).unlink()
        if replace:
            lock_of(store).touch()
        async with opened(store) as second:
            await second.append(said("2"))
            with pytest.raises(SessionError, match=r"lock of session .*work was deleted or replaced"):
                await first.append(said("lost"))
            await second.append(said("3"))
        with pytest.raises(SessionError, match="lock"):
            await first.append(said("lost"))
    assert content(await store.read("work")) == [said("1"), said("2"), said("3")]


async def test_losing_the_lock_takes_it_from_nobody(store: JsonlStore) -> None:
    first = await store.open("work")
    lock_of(store).unlink()
    async with opened(store):
        await first.close()
        with pytest.raises(SessionError, match="already open"):
            await store.open("work")


def test_many_that_want_the_session_at_once_have_it_one_after_the_other(tmp_path: Path) -> None:
    async def turns(name: str) -> None:
        store, done = JsonlStore(tmp_path, clock=SystemClock(), sync=False), 0
        while done < 100:
            try:
                session = await store.open("work")
            except SessionError as busy:
                assert "already open" in str(busy) or "another process" in str(busy), busy  # noqa: PT017
                continue
            await session.append(said(f"{name}{done}"))
            await session.close()
            done += 1

    with ThreadPoolExecutor(4) as threads:
        for turn in [threads.submit(asyncio.run, turns(name)) for name in "abcd"]:
            turn.result()
    kept = content(asyncio.run(read_all(tmp_path)))
    assert sorted(map(text_of, kept)) == sorted(f"{name}{number}" for name in "abcd" for number in range(100))


async def read_all(root: Path) -> Sequence[AnyEntry]:
    return await JsonlStore(root, clock=SystemClock()).read("work")
