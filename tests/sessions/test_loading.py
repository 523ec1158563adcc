"""Whatever the bytes of a transcript are, it loads: what can be read is read, and the rest is reported and kept."""

import asyncio
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from denizen.entries import AnyEntry, UserEntry
from denizen.errors import SessionError
from denizen.messages import Document, Text, UserMessage
from denizen.ports import Session
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore
from denizen.testing.conformance_store import ONE_OF_EACH, WORK, content, opened, said

DATA = Path(__file__).parents[1] / "data" / "transcripts"
Put = Callable[[bytes], Path]


def line(kind: str, name: str, parent: str, **fields: Any) -> bytes:
    return json.dumps({"type": kind, "id": name, "parent": parent, **fields}).encode() + b"\n"


def user(name: str, parent: str, text: str) -> bytes:
    return line("user", name, parent, message={"type": "user", "content": [{"type": "text", "text": text}]})


HEADER = line("session", "1", "", version=1, key=WORK)
ONE, TWO, THREE, FOUR = (user(str(n + 1), str(n), str(n)) for n in (1, 2, 3, 4))
SOUND = HEADER + ONE + TWO + THREE + FOUR


def texts(entries: Any) -> list[str]:
    return [entry.message.text for entry in entries if isinstance(entry, UserEntry)]


async def read_and_go_on(store: JsonlStore) -> tuple[list[str], list[str]]:
    """The user's words in the session and its warnings, after showing that the session can be continued."""
    before = [*await store.read("work")]
    async with opened(store) as session:
        assert content(session.entries) == content(before)
        warnings = [*session.warnings]
        await session.append(said("and on"))
        now = [*session.entries]
    assert [*await store.read("work")] == now
    return texts(before), warnings


# A last line that is torn


@pytest.mark.parametrize(
    "torn", [TWO[:1], TWO[:-9], TWO[:-2], b'{"type":"user","id":"\xc3', b'{"type":"state","value":1.']
)
async def test_torn_last_line_is_dropped_and_cut_off(store: JsonlStore, put: Put, torn: bytes) -> None:
    path = put(HEADER + ONE + torn)
    found, warnings = await read_and_go_on(store)
    assert found == ["1"]
    assert warnings == ["the last line is torn, and is dropped"]
    assert path.read_bytes().startswith(HEADER + ONE + b'{"type":"user"')
    async with opened(store) as session:
        assert not session.warnings


async def test_last_line_that_only_lacks_its_end_is_kept(store: JsonlStore, put: Put) -> None:
    path = put(HEADER + ONE + TWO[:-1])
    assert await read_and_go_on(store) == (["1", "2"], [])
    assert path.read_bytes().startswith(HEADER + ONE + TWO)


@pytest.mark.parametrize("zeros", [b"\0" * 5000, TWO[:20] + b"\0" * 300])
async def test_zeros_that_a_power_failure_left_are_cut_off(store: JsonlStore, put: Put, zeros: bytes) -> None:
    path = put(HEADER + ONE + zeros)
    found, warnings = await read_and_go_on(store)
    assert found == ["1"]
    assert len(warnings) == 1
    assert b"\0" not in path.read_bytes()


async def test_damaged_last_line_without_an_end_is_kept_in_the_file(store: JsonlStore, put: Put) -> None:
    path = put(HEADER + ONE + TWO[:-1] + b"#")
    found, [warning] = await read_and_go_on(store)
    assert found == ["1"]
    assert warning.startswith("line 3: ")
    assert path.read_bytes().startswith(HEADER + ONE + TWO[:-1] + b"#\n{")


async def test_torn_header_is_written_anew(store: JsonlStore, put: Put) -> None:
    put(HEADER[:15])
    assert await read_and_go_on(store) == ([], ["the last line is torn, and is dropped"])
    assert (await store.read("work"))[0].id == "1"


async def test_empty_file_is_a_new_session(store: JsonlStore, put: Put) -> None:
    put(b"")
    async with opened(store) as session:
        assert not session.warnings
        assert len(session.entries) == 1


# Damage within

GARBAGE = [
    b"garbage\n",
    b"\xff\xfe{}\n",
    b"\0\0\0\n",
    b"[]\n",
    b'{"type":\n',
    b'{"type":"user","id":7}\n',
    b"[" * 100_000 + b"\n",
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
async def test_damaged_line_is_reported_and_kept(store: JsonlStore, put: Put, garbage: bytes) -> None:
    path = put(HEADER + ONE + garbage + FOUR)
    found, [warning] = await read_and_go_on(store)
    assert found == ["1", "4"]
    assert warning.startswith("line 3: it can't be read, and is left out")
    assert path.read_bytes().startswith(HEADER + ONE + garbage + FOUR)


async def test_what_follows_a_damaged_line_is_attached_to_the_last_good_entry(store: JsonlStore, put: Put) -> None:
    put(HEADER + ONE + TWO.replace(b"user", b"us\xffr") + THREE + FOUR)
    async with opened(store) as session:
        assert [(entry.id, entry.parent) for entry in session.entries] == [
            ("1", ""),
            ("2", "1"),
            ("4", "2"),
            ("5", "4"),
        ]


async def test_damage_hides_no_other_branch(store: JsonlStore, put: Put) -> None:
    back = line("head", "5", "4", to="2")
    put(HEADER + ONE + TWO + THREE + back + b"garbage\n" + user("7", "2", "other"))
    assert (await read_and_go_on(store))[0] == ["1", "other"]


async def test_invalid_utf8_within_a_text_costs_that_entry_only(store: JsonlStore, put: Put) -> None:
    put(HEADER + ONE + TWO.replace(b'"2"}]', b'"\xc3("}]', 1) + THREE)
    found, [warning] = await read_and_go_on(store)
    assert found == ["1", "3"]
    assert "utf-8" in warning


@pytest.mark.parametrize("parent", ["", "77", "3"])
async def test_entry_whose_parent_is_not_there_follows_the_one_before(store: JsonlStore, put: Put, parent: str) -> None:
    put(HEADER + ONE + user("3", parent, "2"))
    found, [warning] = await read_and_go_on(store)
    assert found == ["1", "2"]
    assert warning.startswith(f"line 3: it follows {parent!r}, which isn't there")


async def test_id_that_is_taken_gets_another(store: JsonlStore, put: Put) -> None:
    put(HEADER + ONE + user("2", "1", "same id") + user("3", "2", "on"))
    found, [warning] = await read_and_go_on(store)
    assert found == ["same id", "on"]
    assert "line 3: its id '2' is taken" in warning


async def test_id_that_is_missing_is_made_up(store: JsonlStore, put: Put) -> None:
    put(HEADER + ONE.replace(b'"id": "2", ', b"") + user("3", "", "2"))
    found, warnings = await read_and_go_on(store)
    assert found == ["1", "2"]
    assert len(warnings) == 1


async def test_line_that_was_copied_counts_once(store: JsonlStore, put: Put) -> None:
    put(HEADER + ONE + TWO + TWO + ONE + HEADER + THREE)
    found, warnings = await read_and_go_on(store)
    assert found == ["1", "2", "3"]
    assert [warning[:6] for warning in warnings] == ["line 4", "line 5", "line 6"]


async def test_head_that_moves_nowhere_stays(store: JsonlStore, put: Put) -> None:
    put(HEADER + ONE + line("head", "3", "2", to="99") + user("4", "2", "on"))
    found, [warning] = await read_and_go_on(store)
    assert found == ["1", "on"]
    assert "'99'" in warning


async def test_missing_header_is_reported(store: JsonlStore, put: Put) -> None:
    put(ONE + TWO)
    found, [warning] = await read_and_go_on(store)
    assert found == ["1", "2"]
    assert "first line" in warning


async def test_file_of_garbage_gets_a_header_after_it(store: JsonlStore, put: Put) -> None:
    path = put(b"garbage\n")
    assert (await read_and_go_on(store))[0] == []
    assert path.read_bytes().startswith(b'garbage\n{"type":"session"')


async def test_byte_order_mark_blank_lines_and_line_ends_of_windows_do_no_harm(store: JsonlStore, put: Put) -> None:
    put(b"\xef\xbb\xbf" + (HEADER + ONE + b"\n" + TWO).replace(b"\n", b"\r\n"))
    assert await read_and_go_on(store) == (["1", "2"], [])


async def test_two_entries_on_one_line_are_damage(store: JsonlStore, put: Put) -> None:
    put(HEADER + ONE[:-1] + TWO + THREE)
    found, [warning] = await read_and_go_on(store)
    assert found == ["3"]
    assert warning.startswith("line 2: ")


async def test_huge_line_loads(store: JsonlStore, put: Put) -> None:
    put(HEADER + user("2", "1", "x" * 20_000_000) + TWO)
    found, warnings = await read_and_go_on(store)
    assert [len(text) for text in found] == [20_000_000, 1]
    assert not warnings


async def test_warnings_have_an_end(store: JsonlStore, put: Put) -> None:
    put(HEADER + b"garbage\n" * 1000 + ONE)
    found, warnings = await read_and_go_on(store)
    assert found == ["1"]
    assert len(warnings) == 101


async def test_readers_repair_nothing_and_say_what_was_wrong(
    store: JsonlStore, put: Put, caplog: pytest.LogCaptureFixture
) -> None:
    data = HEADER + b"garbage\n" + ONE + TWO[:-5]
    path = put(data)
    assert texts(await store.read("work")) == ["1"]
    assert path.read_bytes() == data
    [record] = caplog.records
    assert "line 2: it can't be read, and is left out" in record.getMessage()
    assert "the last line is torn, and is dropped" in record.getMessage()


async def test_an_attached_document_is_kept(store: JsonlStore) -> None:
    message = UserMessage([Text("Read this"), Document("application/pdf", b"%PDF\xff", "a.pdf", "Words", 2)])
    async with opened(store) as session:
        await session.append(UserEntry(message=message))
    assert [entry.message for entry in await store.read("work") if isinstance(entry, UserEntry)] == [message]


# Other versions


async def test_transcript_of_the_first_format_loads(store: JsonlStore, put: Put) -> None:
    put((DATA / "format-1.jsonl").read_bytes())
    async with opened(store) as session:
        assert not session.warnings
        assert content(session.entries) == [*ONE_OF_EACH]


async def test_what_a_newer_program_added_is_kept_and_left_out(store: JsonlStore, put: Put) -> None:
    data = (DATA / "newer-minor.jsonl").read_bytes()
    path = put(data)
    found, warnings = await read_and_go_on(store)
    assert found == ["What is the weather?", "Never mind."]
    assert [warning.partition(":")[0] for warning in warnings] == ["line 3", "line 4"]
    assert "'weather' is unknown" in warnings[0]
    assert path.read_bytes().startswith(data)


async def test_newer_format_is_refused(store: JsonlStore, put: Put) -> None:
    data = (DATA / "newer-major.jsonl").read_bytes() + b'{"torn'
    path = put(data)
    for attempt in (store.open("work"), store.read("work"), store.fork("work", "other")):
        with pytest.raises(SessionError, match="newer Denizen \\(format 2; this one reads 1\\)"):
            await attempt
    assert path.read_bytes() == data
    path.unlink()
    async with opened(store) as session:  # the lock was given back
        assert session.entries


# Any bytes


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a session with entries of every type and a branch."""
    store = JsonlStore(tmp_path_factory.mktemp("recorded"), clock=SystemClock(), sync=False)

    async def record() -> None:
        async with opened(store) as session:
            for entry in ONE_OF_EACH:
                await session.append(entry)
            await session.move_head("4")
            await session.append(said("Dolmuş 🚌"))

    asyncio.run(record())
    return store.path("work").read_bytes()


def path_of(data: bytes) -> list[str]:
    """The ids from the first entry to the head, by the plainest reading of the lines that are whole."""
    head, parents = "", {"": ""}
    for text in data.split(b"\n"):
        try:
            entry = json.loads(text)
        except ValueError:
            continue
        if entry["type"] == "head":
            head = entry["to"]
        else:
            head = entry["id"]
            parents[head] = entry["parent"]
    found = []
    while head:
        found.append(head)
        head = parents[head]
    return found[::-1]


async def continued(data: bytes) -> tuple[Session, bytes, list[AnyEntry]]:
    """A session of these bytes to which a message was appended: as it was when open, its file, and as it is read."""
    with tempfile.TemporaryDirectory() as folder:
        store = JsonlStore(Path(folder), clock=SystemClock(), sync=False)
        store.path("work").parent.mkdir()
        store.path("work").write_bytes(data)
        async with opened(store) as session:
            await session.append(said("and on"))
        return session, store.path("work").read_bytes(), [*await store.read("work")]


async def test_any_beginning_of_a_transcript_loads_and_goes_on(recorded: bytes) -> None:
    for cut in [*range(0, len(recorded) - 400, 7), *range(len(recorded) - 400, len(recorded) + 1)]:
        session, kept, entries = await continued(recorded[:cut])
        assert [entry.id for entry in session.entries[:-1]] == (path_of(recorded[:cut]) or ["1"]), cut
        assert len(session.warnings) <= 1
        assert entries == session.entries, cut
        assert all(json.loads(line) for line in kept.splitlines()), cut  # nothing torn is left


edits = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 3), st.binary(max_size=3)), min_size=1, max_size=8)


@given(edits)
@example([(0, 1, b"\0")])
async def test_damaged_bytes_never_crash_it_and_are_kept(recorded: bytes, edits: list[tuple[int, int, bytes]]) -> None:
    data = recorded
    for at, length, replacement in edits:
        data = data[: at % len(data)] + replacement + data[at % len(data) + length :] if data else replacement
    assume(not re.match(rb'\{"type":"session".*"version":[2-9]', data))  # refused, as a newer format
    session, kept, entries = await continued(data)
    assert entries == session.entries
    assert kept.startswith(data[: data.rfind(b"\n") + 1])


@given(st.binary(max_size=200), st.binary(max_size=200))
async def test_any_bytes_load(before: bytes, after: bytes) -> None:
    session, _, entries = await continued(before + b"\n" + HEADER + after)
    assert entries == session.entries
    assert texts(entries)[-1:] == ["and on"]


@given(st.lists(st.integers(0, 99), max_size=25))
@example([0, 1, 2, 3, 2, 13, 4])
async def test_lines_in_any_order_left_out_or_twice_load(recorded: bytes, order: list[int]) -> None:
    lines = recorded.splitlines(keepends=True)
    session, _, entries = await continued(b"".join(lines[number % len(lines)] for number in order))
    assert entries == session.entries
