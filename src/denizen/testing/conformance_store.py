"""The conformance suite of session stores: tests to subclass."""
# ruff: noqa: S101 - tests assert

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import msgspec
import pytest

from denizen.entries import (
    AnswerEntry,
    AnyEntry,
    AssistantEntry,
    CheckpointEntry,
    CompactionEntry,
    EndEntry,
    HeadEntry,
    NoteEntry,
    ParkedEntry,
    SessionEntry,
    StartedEntry,
    StateEntry,
    SystemEntry,
    ToolEntry,
    UserEntry,
)
from denizen.errors import SessionError, SessionHeld
from denizen.messages import AssistantMessage, Image, Opaque, Text, Thinking, ToolCall, ToolResult, Usage, UserMessage
from denizen.ports import Session, SessionStore

WORK = "agent:main:channel:cli:account:default:peer:direct:work"
_NOON = datetime(2026, 2, 3, 12, tzinfo=UTC)

ONE_OF_EACH: Sequence[AnyEntry] = (
    UserEntry(message=UserMessage([Text("Hi\n\x00\u2028 ✓"), Image("image/png", b"\x89\x00\xff")], "m1", _NOON)),
    AssistantEntry(
        message=AssistantMessage(
            [
                Thinking("hm", "sig"),
                Opaque("x", {"a": [1, None]}),
                Text("Yes"),
                ToolCall("c1", "read", {"path": "ä/b"}),
            ],
            "test:model",
            Usage(1, 2, 3, 4, 0.5),
            "tool_calls",
        )
    ),
    StartedEntry(call_id="c1", name="read"),
    ToolEntry(message=ToolResult("c1", "read", [Text("…")], is_error=True, for_user="…", details={"exit": 1})),
    CompactionEntry(first="2", last="3", summary="So far", truncate_over=9, old_count=5, new_count=1),
    NoteEntry(text="Mind the gap"),
    CheckpointEntry(snapshot="0f3c", label="before"),
    StateEntry(name="goal", value={"text": "done", "steps": [1, 2.5, True, None]}),
    SystemEntry(text="The task is done"),
    ParkedEntry(call_id="c2", question="May I?", until=_NOON),
    AnswerEntry(call_id="c2", allow=True, text="Yes", scope="session"),
    EndEntry(stop_reason="answered", usage=Usage(5), last_call_usage=Usage(1, 2), iterations=2, model="test:model"),
)
"""An entry of every type that a turn appends."""


@asynccontextmanager
async def opened(store: SessionStore, key: str = "work") -> AsyncGenerator[Session]:
    """The session, open for writing until the end of the block."""
    session = await store.open(key, workspace="/home/ann/shop", profile="coder")
    try:
        yield session
    finally:
        await session.close()


def said(text: str) -> UserEntry:
    """A message of the user."""
    return UserEntry(message=UserMessage([Text(text)]))


async def say(session: Session, *texts: str) -> list[str]:
    """Append messages of the user; returns their ids."""
    return [await session.append(said(text)) for text in texts]


async def saved(store: SessionStore, *texts: str, key: str = "work") -> list[str]:
    """Append messages of the user to a session that is opened for it, and closed again."""
    async with opened(store, key) as session:
        return await say(session, *texts)


def content(entries: Sequence[AnyEntry]) -> list[AnyEntry]:
    """The entries without the header, and without what the session gave them."""
    plain = [msgspec.structs.replace(entry, id="", parent="", at=None) for entry in entries]
    return [entry for entry in plain if not isinstance(entry, SessionEntry)]


class SessionStoreConformance:
    """Subclass it as `Test…` and fill in the fixture `new_store`; tests are `async`, for pytest-asyncio's auto mode."""

    @pytest.fixture
    def new_store(self) -> Callable[[], SessionStore]:
        """Makes a store whose clock goes on; all those of one test keep their sessions in one place, empty at first."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, new_store: Callable[[], SessionStore]) -> SessionStore:
        """The first of them."""
        return new_store()

    @pytest.fixture
    async def session(self, store: SessionStore) -> AsyncGenerator[Session]:
        """A new session of it, open for writing."""
        async with opened(store) as session:
            yield session

    # Appending and reading

    async def test_new_session_begins_with_its_header(self, session: Session) -> None:
        [header] = session.entries
        assert isinstance(header, SessionEntry)
        assert (header.key, header.version) == (session.key, 1)
        assert (header.workspace, header.profile) == ("/home/ann/shop", "coder")
        assert session.head == header.id != ""
        assert not session.warnings

    async def test_append_makes_the_entry_the_head(self, session: Session) -> None:
        before = session.head
        [written] = await say(session, "Hi")
        assert session.head == written != before
        assert session.entries[-1].id == written
        assert session.entries[-1].parent == before
        assert session.entries[-1].at is not None
        assert session.entries[-1].at.utcoffset() is not None

    async def test_session_gives_id_parent_and_time_whatever_the_entry_says(self, session: Session) -> None:
        written = await session.append(NoteEntry(id="mine", parent="nobody", at=_NOON, text="x"))
        entry = session.entries[-1]
        assert (entry.id, entry.parent) == (written, session.entries[0].id)
        assert written != "mine"
        assert entry.at != _NOON

    async def test_every_type_of_entry_comes_back_as_it_was(self, new_store: Callable[[], SessionStore]) -> None:
        async with opened(new_store()) as session:
            for entry in ONE_OF_EACH:
                await session.append(entry)
            assert content(session.entries) == [*ONE_OF_EACH]
            kept = [*session.entries]
        assert [*await new_store().read("work")] == kept
        async with opened(new_store()) as session:
            assert [*session.entries] == kept

    async def test_ids_are_unique_also_after_reopening(self, store: SessionStore) -> None:
        async with opened(store) as session:
            first = await say(session, *map(str, range(20)))
            await session.move_head(first[3])
        assert len({*first, *await saved(store, *map(str, range(20)))}) == 40

    async def test_what_is_new_follows_the_head_that_was_read(self, new_store: Callable[[], SessionStore]) -> None:
        """A reader keeps how many entries it has read, and the head: one look says whether the rest follows it."""
        async with opened(new_store()) as session:
            await say(session, "1")
            count, head = len(session.entries), session.head
            await say(session, "2")
            assert session.entries[count - 1].id == head
        for store in (new_store(), new_store()):
            async with opened(store) as session:
                assert session.entries[count - 1].id == head
                new = len(session.entries) - count
                assert content(session.entries[count:]) == [said(str(number)) for number in range(2, 2 + new)]
                await say(session, str(2 + new))
        async with opened(new_store()) as session:
            await session.move_head(session.entries[0].id)
            await say(session, "other")
            assert session.entries[count - 1].id != head

    async def test_others_read_while_it_is_open(self, new_store: Callable[[], SessionStore]) -> None:
        async with opened(new_store()) as session:
            await say(session, "Hi")
            assert [*await new_store().read("work")] == [*session.entries]

    async def test_appends_at_the_same_time_are_all_kept_one_after_the_other(self, store: SessionStore) -> None:
        async with opened(store) as session:
            await asyncio.gather(*(session.append(said(str(number))) for number in range(30)))
            await session.sync()
        entries = await store.read("work")
        assert {entry.message.text for entry in entries if isinstance(entry, UserEntry)} == set(map(str, range(30)))
        assert [entry.parent for entry in entries[1:]] == [entry.id for entry in entries[:-1]]

    async def test_half_a_character_is_no_obstacle(self, store: SessionStore) -> None:
        async with opened(store) as session:
            await say(session, "a name that isn't UTF-8: \udcff", "and on")
        first, second = content(await store.read("work"))
        assert isinstance(first, UserEntry)
        assert first.message.text.startswith("a name that isn't UTF-8: ")
        assert second == said("and on")

    async def test_second_header_is_refused(self, session: Session) -> None:
        with pytest.raises(SessionError):
            await session.append(SessionEntry(key="other"))
        assert len(session.entries) == 1

    # The head

    async def test_moving_the_head_leaves_the_path_to_it(self, session: Session) -> None:
        first, _ = await say(session, "1", "2")
        await session.move_head(first)
        assert session.head == first
        assert content(session.entries) == [said("1")]
        await say(session, "3")
        assert content(session.entries) == [said("1"), said("3")]
        assert session.entries[-1].parent == first

    async def test_moving_the_head_deletes_nothing(self, session: Session) -> None:
        first, second = await say(session, "1", "2")
        await session.move_head(first)
        await say(session, "3")
        await session.move_head(second)
        assert content(session.entries) == [said("1"), said("2")]

    async def test_head_lasts(self, store: SessionStore) -> None:
        async with opened(store) as session:
            first, _ = await say(session, "1", "2")
            await session.move_head(first)
        assert content(await store.read("work")) == [said("1")]
        async with opened(store) as session:
            assert session.head == first
            assert content(session.entries) == [said("1")]

    async def test_appended_head_entry_moves_the_head(self, session: Session) -> None:
        first, _ = await say(session, "1", "2")
        await session.append(HeadEntry(to=first))
        assert session.head == first

    async def test_head_is_not_moved_to_what_is_not_there(self, store: SessionStore) -> None:
        async with opened(store) as session:
            [head] = await say(session, "1")
            with pytest.raises(SessionError, match="nowhere"):
                await session.move_head("nowhere")
            assert session.head == head
        assert content(await store.read("work")) == [said("1")]

    async def test_append_is_refused_when_the_head_is_not_the_expected_one(self, store: SessionStore) -> None:
        async with opened(store) as session:
            [first] = await say(session, "1")
            await session.append(said("2"), expect_head=first)
            with pytest.raises(SessionError):
                await session.append(said("3"), expect_head=first)
        assert content(await store.read("work")) == [said("1"), said("2")]

    async def test_of_two_that_expect_the_same_head_one_is_refused(self, session: Session) -> None:
        both = [session.append(said(text), expect_head=session.head) for text in ("1", "2")]
        outcomes = await asyncio.gather(*both, return_exceptions=True)
        assert sorted(isinstance(outcome, SessionError) for outcome in outcomes) == [False, True]
        assert len(session.entries) == 2

    # One writer

    async def test_open_session_is_not_opened_again(self, new_store: Callable[[], SessionStore]) -> None:
        store = new_store()
        async with opened(store):
            for other in (store, new_store()):
                with pytest.raises(SessionError, match="work"):
                    await other.open("work")
        async with opened(new_store()) as session:
            assert session.entries

    async def test_closed_session_is_not_written(self, store: SessionStore) -> None:
        async with opened(store) as session:
            await say(session, "1")
        await session.close()  # again
        with pytest.raises(SessionError):
            await say(session, "2")
        assert content(await store.read("work")) == [said("1")]

    # Keys

    async def test_session_is_the_same_however_its_key_is_written(self, store: SessionStore) -> None:
        async with opened(store, "Work") as session:
            assert session.key == WORK
            await say(session, "1")
        for name in ("work", WORK, WORK.upper()):
            assert content(await store.read(name)) == [said("1")], name

    async def test_any_name_is_a_session_of_its_own(self, store: SessionStore) -> None:
        long = "x" * 1000
        names = ["..", "../work", "/etc/passwd", "a:b", "a+b", "a%3ab", "ä", "a b", "a\nb", "\x00", "="]
        names += [long, f"{long}y"]
        for name in names:
            await saved(store, name, key=name)
        assert [content(await store.read(name)) for name in names] == [[said(name)] for name in names]
        assert len(await store.list()) == len(names)

    async def test_unknown_session_is_an_error(self, store: SessionStore) -> None:
        for attempt in (store.read("work"), store.remove("work"), store.fork("work", "other")):
            with pytest.raises(SessionError, match="work"):
                await attempt
        assert not await store.list()

    # Forks

    async def test_fork_begins_with_all_of_its_source_and_goes_its_own_way(self, store: SessionStore) -> None:
        async with opened(store) as session:
            await say(session, "1", "2")
            await store.fork("work", "other")
        async with opened(store, "other") as fork:
            assert content(fork.entries) == [said("1"), said("2")]
            await fork.append(said("3"))
        assert content(await store.read("work")) == [said("1"), said("2")]
        assert content(await store.read("other")) == [said("1"), said("2"), said("3")]

    async def test_fork_says_what_it_was_forked_from_and_works_in_the_same_place(self, store: SessionStore) -> None:
        await saved(store, "1")
        await store.fork("work", "other")
        header = (await store.read("other"))[0]
        assert isinstance(header, SessionEntry)
        assert (header.forked_from, header.key) == (WORK, WORK.replace("work", "other"))
        assert (header.workspace, header.profile) == ("/home/ann/shop", "coder")

    async def test_fork_may_begin_at_any_entry_also_on_a_branch_that_was_left(self, store: SessionStore) -> None:
        async with opened(store) as session:
            first, left = await say(session, "1", "2")
            await session.move_head(first)
            await say(session, "3")
        await store.fork("work", "early", at=first)
        await store.fork("work", "left", at=left)
        assert content(await store.read("early")) == [said("1")]
        assert content(await store.read("left")) == [said("1"), said("2")]

    async def test_fork_keeps_the_ids_of_entries_and_gives_none_twice(self, store: SessionStore) -> None:
        async with opened(store) as session:
            first, _ = await say(session, "1", "2")
            await session.move_head(first)
            [third] = await say(session, "3")
        await store.fork("work", "other")
        async with opened(store, "other") as fork:
            assert [entry.id for entry in fork.entries[1:]] == [first, third]
            later = await say(fork, *map(str, range(10)))
        assert len({first, third, *later}) == 12

    async def test_fork_replaces_no_session_and_needs_an_entry(self, store: SessionStore) -> None:
        for name in ("work", "other"):
            await saved(store, name, key=name)
        with pytest.raises(SessionError, match="other"):
            await store.fork("work", "other")
        with pytest.raises(SessionError, match="nowhere"):
            await store.fork("work", "third", at="nowhere")
        assert content(await store.read("other")) == [said("other")]
        assert len(await store.list()) == 2

    # The index

    async def test_index_shows_how_each_session_began_and_ended(self, store: SessionStore) -> None:
        async with opened(store) as session:
            await say(session, "  What is\nthis?  ", "And that?")
            await session.append(EndEntry(stop_reason="loop", model="old"))
            last = Usage(10, 20, 30, None, None)
            await session.append(
                EndEntry(stop_reason="answered", model="m", usage=Usage(cost_usd=0.25), last_call_usage=last)
            )
        [info] = await store.list()
        assert (info.key, info.title, info.workspace) == (WORK, "What is this?", "/home/ann/shop")
        assert (info.model, info.tokens, info.stop_reason, info.cost_usd) == ("m", 60, "answered", 0.25)
        assert info.bytes > 0
        assert info.updated > 0

    async def test_index_begins_with_the_latest(self, store: SessionStore) -> None:
        for name in ("a", "b", "c", "a"):
            await saved(store, "Hi", key=name)
        assert [info.key[-1] for info in await store.list()] == ["a", "c", "b"]

    async def test_pages_show_each_session_once(self, store: SessionStore) -> None:
        for name in "abcdefg":
            await saved(store, "Hi", key=name)
        found, before = list[str](), math.inf
        while page := await store.page(3, before):
            assert len(page) >= 3 or len(found) + len(page) == 7
            assert [info.used for info in page] == sorted((info.used for info in page), reverse=True)
            found += [info.key[-1] for info in page]
            before = page[-1].used
        assert found == [*"gfedcba"]

    async def test_session_without_a_turn_is_in_the_index_too(self, store: SessionStore) -> None:
        async with opened(store):
            [info] = await store.list()
        assert (info.key, info.title, info.stop_reason) == (WORK, "", "")

    async def test_removed_session_is_gone_and_its_name_free(self, store: SessionStore) -> None:
        await saved(store, "1")
        await store.remove("work")
        assert not await store.list()
        with pytest.raises(SessionError):
            await store.read("work")
        async with opened(store) as session:
            assert len(session.entries) == 1

    async def test_session_that_was_used_meanwhile_is_not_removed(self, store: SessionStore) -> None:
        await saved(store, "1")
        [info] = await store.list()
        with pytest.raises(SessionHeld):
            await store.remove("work", unused_since=info.updated)
        assert content(await store.read("work")) == [said("1")]
        await store.remove("work", unused_since=info.updated + 1)
        assert not await store.list()

    async def test_open_session_is_not_removed(self, new_store: Callable[[], SessionStore]) -> None:
        store = new_store()
        async with opened(store) as session:
            with pytest.raises(SessionError, match="work"):
                await new_store().remove("work")
            await say(session, "1")
        assert content(await store.read("work")) == [said("1")]
