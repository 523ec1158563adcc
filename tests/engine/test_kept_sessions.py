"""What an agent keeps in memory of closed sessions never shows: it asks what one that begins anew would ask.

Each row does something to a session that the agent has had, and names words that its next request has, and has not.
"""

import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.engine.twins import Twins, twins

from denizen.engine.callback_host import CallbackHost
from denizen.engine.compact import compact
from denizen.engine.undo import redo, undo
from denizen.entries import EndEntry, SystemEntry, UserEntry
from denizen.messages import Text, UserMessage
from denizen.testing import LoopbackOpenAI

Deed = Callable[[Twins], Awaitable[None]]


@pytest.fixture
async def pair(tmp_path: Path, loopback_openai: LoopbackOpenAI) -> AsyncIterator[Twins]:
    async with twins(tmp_path, loopback_openai) as both:
        yield both


async def nothing(_: Twins) -> None:
    pass


async def another_turn(pair: Twins) -> None:
    await pair.turn(pair.other, "three", "third")


async def undone(pair: Twins) -> None:
    session = await pair.other.open("work")
    await undo(pair.other.record, session)
    await session.close()


async def undone_and_redone(pair: Twins) -> None:
    await undone(pair)
    session = await pair.other.open("work")
    await redo(pair.other.record, session)
    await session.close()


async def undone_and_said_otherwise(pair: Twins) -> None:
    await undone(pair)
    await pair.turn(pair.other, "TWO", "SECOND")


async def moved_to_the_first_message(pair: Twins) -> None:
    session = await pair.other.open("work")
    await session.move_head(next(entry.id for entry in session.entries if isinstance(entry, UserEntry)))
    await session.close()


async def compacted(pair: Twins) -> None:
    for word in ("three", "four", "five", "six", "seven"):
        await pair.turn(pair.kept, word, f"said {word}")
    pair.server.say("In short: it was counted.")
    session = await pair.other.open("work")
    assert await compact(pair.other.record, session, CallbackHost())
    await session.close()


async def told_by_the_system(pair: Twins) -> None:
    session = await pair.other.open("work")
    await session.append(SystemEntry(text="the build is green"))
    await session.close()


async def removed(pair: Twins) -> None:
    await pair.other.store.remove("work")


async def made_anew(pair: Twins) -> None:
    await removed(pair)
    await pair.turn(pair.other, "ONE", "FIRST")
    await pair.turn(pair.other, "TWO", "SECOND")


async def replaced_by_a_fork(pair: Twins) -> None:
    entries = await pair.other.store.read("work")
    end_of_first = next(entry.id for entry in entries if isinstance(entry, EndEntry))
    await pair.other.store.fork("work", "copy", at=end_of_first)
    await removed(pair)
    await pair.other.store.fork("copy", "work")


async def edited_to_the_same_size(pair: Twins) -> None:
    _edit(pair.file, pair.file)


async def edited_through_another_name(pair: Twins) -> None:
    link = pair.home / "link"
    link.hardlink_to(pair.file)
    _edit(link, pair.file)


async def edited_into_another_file(pair: Twins) -> None:
    edited = pair.home / "edited"
    shutil.copy2(pair.file, edited)
    _edit(edited, edited)
    edited.rename(pair.file)


async def made_anew_in_place_of_an_inode(pair: Twins) -> None:
    data = pair.file.read_bytes().replace(b"second", b"SECOND")
    pair.file.unlink()
    pair.file.write_bytes(data)  # many file systems give the inode again


async def brought_back_from_a_copy(pair: Twins) -> None:
    copy = pair.home / "backup"
    shutil.copy2(pair.file, copy)
    await pair.turn(pair.kept, "three", "third")
    shutil.copy2(copy, pair.file)


async def torn(pair: Twins) -> None:
    os.truncate(pair.file, pair.file.stat().st_size - 20)


async def cut_off_in_the_second_turn(pair: Twins) -> None:
    os.truncate(pair.file, pair.file.read_bytes().index(b'"second"'))


async def moved_with_its_home(pair: Twins) -> None:
    await another_turn(pair)
    old = pair.home.with_name("old")
    pair.home.rename(old)
    pair.home.symlink_to(old, target_is_directory=True)


async def changed_through_a_link_to_the_home(pair: Twins) -> None:
    link = pair.home.with_name("link")
    link.symlink_to(pair.home, target_is_directory=True)
    await pair.turn(pair.agent(link), "three", "third")


def _edit(name: Path, file: Path) -> None:
    before = file.stat()
    with name.open("r+b") as edited:
        data = edited.read().replace(b"second", b"SECOND")
        edited.seek(0)
        edited.write(data)
    os.utime(name, ns=(before.st_atime_ns, before.st_mtime_ns))


DEEDS: Sequence[tuple[Deed, list[str], list[str]]] = [
    (nothing, ["first", "second"], []),
    (another_turn, ["second", "third"], []),
    (undone, ["first"], ["two", "second"]),
    (undone_and_redone, ["first", "two", "second"], []),
    (undone_and_said_otherwise, ["first", "TWO", "SECOND"], ["two", "second"]),
    (moved_to_the_first_message, ["one"], ["first", "two", "second"]),
    (compacted, ["In short", "said seven"], ["first", "second"]),
    (told_by_the_system, ["second", "the build is green"], []),
    (removed, [], ["one", "first", "two", "second"]),
    (made_anew, ["ONE", "FIRST", "TWO", "SECOND"], ["first", "second"]),
    (replaced_by_a_fork, ["one", "first"], ["two", "second"]),
    (edited_to_the_same_size, ["first", "SECOND"], ["second"]),
    (edited_through_another_name, ["first", "SECOND"], ["second"]),
    (edited_into_another_file, ["first", "SECOND"], ["second"]),
    (made_anew_in_place_of_an_inode, ["first", "SECOND"], ["second"]),
    (brought_back_from_a_copy, ["first", "second"], ["three", "third"]),
    (torn, ["first", "second"], []),
    (cut_off_in_the_second_turn, ["first", "two"], ["second"]),
    (moved_with_its_home, ["second", "third"], []),
    (changed_through_a_link_to_the_home, ["second", "third"], []),
]


@pytest.mark.parametrize(("deed", "told", "untold"), DEEDS, ids=[deed.__name__ for deed, *_ in DEEDS])
async def test_whatever_became_of_it_the_model_is_asked_what_a_fresh_agent_would_ask(
    pair: Twins, deed: Deed, told: list[str], untold: list[str]
) -> None:
    await deed(pair)
    await pair.the_model_is_asked(told, untold)


async def test_time_that_a_host_gives_in_a_zone_of_its_own_stays_as_it_was_given(pair: Twins) -> None:
    at = datetime(2026, 1, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    await pair.turn(pair.kept, UserMessage([Text("when?")], at=at), "then")
    await pair.the_model_is_asked(["2026-01-01 12:00 UTC+01:00"])
