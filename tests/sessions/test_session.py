"""An open session is the tree that its file is, whatever is done with it; and what must be synced is."""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.disk_calls import disk_calls

from denizen.entries import AnswerEntry, AnyEntry, NoteEntry, ParkedEntry, StartedEntry, ToolEntry
from denizen.errors import SessionError
from denizen.messages import Text, ToolResult
from denizen.ports import Session
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore
from denizen.sessions.jsonl import ACKNOWLEDGED_ELSEWHERE
from denizen.testing.conformance_store import content, opened, said

# The tree


class Model:
    """A session as it should be: a number per message, and the one that each follows."""

    def __init__(self) -> None:
        self.parents: dict[int, int] = {}
        self.head = -1
        self.written = 0

    def append(self) -> None:
        self.parents[self.written] = self.head
        self.head = self.written
        self.written += 1

    def path(self) -> list[int]:
        found, at = [], self.head
        while at >= 0:
            found.append(at)
            at = self.parents[at]
        return found[::-1]

    def fork(self) -> None:
        self.parents = {number: self.parents[number] for number in self.path()}


async def take(step: str | int, store: JsonlStore, session: Session, model: Model, ids: dict[int, str]) -> Session:
    """Do the same to the session and to its model; returns the session to go on with."""
    if isinstance(step, int):
        if model.parents:
            model.head = sorted(model.parents)[step % len(model.parents)]
            await session.move_head(ids[model.head])
        return session
    if step == "append":
        model.append()
        ids[model.head] = await session.append(said(str(model.head)))
        return session
    await session.close()
    if step == "fork":
        model.fork()
        await store.fork(session.key, f"{session.key}-fork")
        return await store.open(f"{session.key}-fork")
    if step == "tear":
        with store.path(session.key).open("ab") as file:
            file.write(b'{"type":"user","id":"')
    return await store.open(session.key)


@given(st.lists(st.sampled_from(["append", "append", "append", "reopen", "fork", "tear"]) | st.integers(0, 20)))
async def test_any_appends_moves_forks_and_crashes_give_the_tree_they_should(steps: list[str | int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = JsonlStore(Path(folder), clock=SystemClock(), sync=False)
        session, model, ids = await store.open("work"), Model(), dict[int, str]()
        for step in steps:
            session = await take(step, store, session, model, ids)
            assert content(session.entries) == [said(str(number)) for number in model.path()]
            assert [*await store.read(session.key)] == [*session.entries]
        await session.close()


# What an entry may hold


async def test_details_that_json_does_not_know_are_described(store: JsonlStore) -> None:
    async with opened(store) as session:
        await session.append(ToolEntry(message=ToolResult("c1", "ls", [Text("x")], details={"path": Path("/x")})))
    [entry] = content(await store.read("work"))
    assert isinstance(entry, ToolEntry)
    assert entry.message.details == {"path": "PosixPath('/x')"}


async def test_what_json_cannot_say_is_refused_and_harms_nothing(store: JsonlStore) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    async with opened(store) as session:
        with pytest.raises(SessionError, match="'tool' can't be written as JSON"):
            await session.append(ToolEntry(message=ToolResult("c1", "ls", [Text("x")], details=deep)))
        await session.append(said("and on"))
        assert content(await store.read("work")) == content(session.entries) == [said("and on")]


# What is synced


@pytest.fixture
def calls() -> Iterator[list[str]]:
    with disk_calls() as seen:
        yield seen


SYNCED = [
    said("Hi"),
    StartedEntry(call_id="c", name="bash"),
    ParkedEntry(call_id="c", question="?"),
    AnswerEntry(call_id="c", allow=True),
]


@pytest.mark.parametrize("entry", SYNCED, ids=lambda entry: type(entry).__name__)
async def test_what_others_rely_on_is_synced_before_append_returns(
    store: JsonlStore, calls: list[str], entry: AnyEntry
) -> None:
    async with opened(store) as session:
        calls.clear()
        await session.append(entry)
        assert calls == ["write", "fsync", "fsync", "fsync"]  # at first its two folders, too
        calls.clear()
        await session.append(entry)
        assert calls == ["write", "fsync"]
    async with opened(store) as session:
        calls.clear()
        await session.append(entry)
        assert calls == ["write", "fsync"]


async def test_messages_that_are_durable_elsewhere_are_synced_with_what_follows(
    tmp_path: Path, calls: list[str]
) -> None:
    async with opened(JsonlStore(tmp_path, clock=SystemClock(), synced=ACKNOWLEDGED_ELSEWHERE)) as session:
        calls.clear()
        await session.append(said("Hi"))
        assert calls == ["write"]
        await session.append(StartedEntry(call_id="c", name="bash"))
        assert calls[:3] == ["write", "write", "fsync"]


async def test_other_entries_are_one_write_each(store: JsonlStore, calls: list[str]) -> None:
    async with opened(store) as session:
        calls.clear()
        await session.append(NoteEntry(text="x"))
        await session.append(NoteEntry(text="y"))
        assert calls == ["write", "write"]
        await session.sync()
        assert calls[2:3] == ["fsync"]


async def test_store_may_leave_syncing_out(tmp_path: Path, calls: list[str]) -> None:
    async with opened(JsonlStore(tmp_path, clock=SystemClock(), sync=False)) as session:
        await session.append(said("Hi"))
        await session.sync()
    assert "fsync" not in calls


async def test_many_sessions_are_synced_at_once(store: JsonlStore) -> None:
    sessions = [await store.open(str(number)) for number in range(50)]
    async with asyncio.TaskGroup() as tasks:
        for session in sessions:
            for text in ("1", "2", "3"):
                tasks.create_task(session.append(said(text)))
    for session in sessions:
        await session.close()
        assert content(await store.read(session.key)) == [said("1"), said("2"), said("3")]


async def test_who_no_longer_waits_for_the_disk_holds_up_nobody(store: JsonlStore) -> None:
    async with opened(store) as session:
        impatient = asyncio.create_task(session.append(said("1")))
        await asyncio.sleep(0)
        impatient.cancel()
        await session.append(said("2"))
        assert impatient.cancelled()
    assert content(await store.read("work")) == [said("1"), said("2")]


def test_store_serves_one_event_loop_after_the_other(tmp_path: Path) -> None:
    store = JsonlStore(tmp_path, clock=SystemClock())

    async def turn(text: str) -> None:
        async with opened(store) as session:
            await session.append(said(text))

    for text in ("1", "2"):
        asyncio.run(turn(text))
    assert content(asyncio.run(_read(store))) == [said("1"), said("2")]


async def _read(store: JsonlStore) -> list[AnyEntry]:
    return [*await store.read("work")]
