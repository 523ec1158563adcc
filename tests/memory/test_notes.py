"""Facts that outlast a session, in plain files and in PostgreSQL."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.memory.conftest import OpenTexts

from denizen.errors import ToolRefused
from denizen.memory import LongTermMemory
from denizen.memory.notes import Notes, NoteTexts
from denizen.memory.sqlite import FactFile
from denizen.memory.store import FactStore
from denizen.testing import FakeClock

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def texts(open_texts: OpenTexts) -> NoteTexts:
    return open_texts()


@pytest.fixture
def notes(texts: NoteTexts) -> Notes:
    return Notes(texts, FakeClock(NOON))


@pytest.fixture
def write(texts: NoteTexts) -> Callable[[str, str], None]:
    def put(name: str, text: str) -> None:
        texts.append(name, lambda _: text)

    return put


def memory(texts: NoteTexts) -> str:
    return texts.read(["MEMORY.md"])[0]


def recall(notes: Notes, query: str, limit: int = 10) -> list[str]:
    """The lines that the memory finds which has these notes alone."""
    clock = FakeClock(NOON)
    user = FactStore(FactFile(Path("/nowhere/memory.db")), "u", clock)
    found = asyncio.run(LongTermMemory(project=None, user=user, notes=notes, clock=clock).recall(query, limit))
    return [f"{fact.at:%Y-%m-%d}: {fact.text}" if fact.at else fact.text for fact in found]


# Remembering


def test_a_fact_becomes_a_dated_line(notes: Notes, texts: NoteTexts) -> None:
    assert notes.remember("Ada likes tea") == "Remembered in MEMORY.md."
    notes.remember("Ada lives in London")
    assert memory(texts) == "- 2026-11-21: Ada likes tea\n- 2026-11-21: Ada lives in London\n"


def test_a_fact_is_one_line_whatever_it_holds(notes: Notes, texts: NoteTexts) -> None:
    notes.remember("- one\n# two\r\n\tthree\u2028four\x1b[31m\ud800")
    assert memory(texts) == "- 2026-11-21: one # two three four[31m\n"


@given(st.text(st.characters()))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_makes_more_than_one_line(texts: NoteTexts, text: str) -> None:
    notes = Notes(texts, FakeClock(NOON))
    try:
        notes.remember(text)
    except ToolRefused:
        return
    assert len(memory(texts).splitlines()) == 1
    [fact] = notes.facts()
    assert notes.forget(fact.text)
    assert memory(texts) == ""


def test_a_fact_is_not_repeated(notes: Notes, texts: NoteTexts, write: Callable[[str, str], None]) -> None:
    write("MEMORY.md", "- 2026-01-01: Ada likes tea\n* Bob is tall\n")
    assert notes.remember("ada  likes TEA") == "MEMORY.md says so already."
    assert notes.remember("Bob is tall") == "MEMORY.md says so already."
    assert notes.remember("Ada likes tea best") == "Remembered in MEMORY.md."
    assert len(memory(texts).splitlines()) == 3


@pytest.mark.parametrize("text", ["", " \n\t", "\x00"])
def test_an_empty_fact_is_refused(notes: Notes, texts: NoteTexts, text: str) -> None:
    with pytest.raises(ToolRefused, match="the text is empty"):
        notes.remember(text)
    assert memory(texts) == ""


def test_a_fact_without_end_is_refused(notes: Notes) -> None:
    with pytest.raises(ToolRefused, match="longer than 2000 characters"):
        notes.remember("x" * 2001)


def test_several_at_once_lose_and_repeat_nothing(open_texts: OpenTexts) -> None:
    facts, places = [f"fact {number}" for number in range(50)], [open_texts() for _ in range(8)]

    def remember_all(texts: NoteTexts) -> int:
        notes = Notes(texts, FakeClock(NOON))
        new = sum("Remembered" in notes.remember(fact) for fact in facts)
        for fact in facts:
            notes.append_today(fact)
        return new

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(remember_all, places)) == len(facts)
    assert len(memory(places[0]).splitlines()) == len(facts)
    assert sorted(note(places[0]).splitlines()) == sorted(f"- 12:00 {fact}" for fact in facts * 8)


# Daily notes


def note(texts: NoteTexts, day: str = "20261121") -> str:
    return texts.read([f"memory/{day[:6]}/{day}.md"])[0]


def test_todays_note_gets_a_line_with_the_time(notes: Notes, texts: NoteTexts) -> None:
    assert notes.append_today("Ada called") == "Noted in memory/202611/20261121.md."
    notes.append_today("Ada called")
    assert note(texts) == "- 12:00 Ada called\n- 12:00 Ada called\n"


@pytest.mark.parametrize(
    ("zone", "day", "line"),
    [
        ("Pacific/Auckland", "20261122", "- 01:00 Ada called\n"),
        ("Pacific/Honolulu", "20261121", "- 02:00 Ada called\n"),
    ],
)
def test_the_users_time_zone_decides_the_day(texts: NoteTexts, zone: str, day: str, line: str) -> None:
    there = Notes(texts, FakeClock(NOON), ZoneInfo(zone))
    there.append_today("Ada called")
    there.remember("Ada calls")
    assert note(texts, day) == line
    assert [path.split("/")[-1] for path, _ in there.recent(1)] == [f"{day}.md"]
    assert memory(texts) == f"- {day[:4]}-{day[4:6]}-{day[6:]}: Ada calls\n"


def test_what_others_may_have_wanted_noted_is_marked(notes: Notes, texts: NoteTexts) -> None:
    notes.append_today("The office moved", untrusted=True)
    assert note(texts) == "- [untrusted] 12:00 The office moved\n"
    assert [fact.untrusted for fact in notes.facts()] == [True]


def test_a_line_that_is_torn_stays_apart(notes: Notes, texts: NoteTexts, write: Callable[[str, str], None]) -> None:
    write("memory/202611/20261121.md", "by hand")
    notes.append_today("Ada called")
    assert note(texts) == "by hand\n- 12:00 Ada called\n"


def test_the_recent_days_come_with_today_last(notes: Notes, write: Callable[[str, str], None]) -> None:
    for day in ("20261118", "20261119", "20261121"):
        write(f"memory/202611/{day}.md", f"- on {day}\n")
    write("memory/202610/20261031.md", "- long ago\n")
    assert notes.recent(3) == [
        ("memory/202611/20261119.md", "- on 20261119"),
        ("memory/202611/20261121.md", "- on 20261121"),
    ]
    assert notes.recent(0) == []


def test_of_long_notes_the_end_is_shown(notes: Notes, write: Callable[[str, str], None]) -> None:
    write("memory/202611/20261120.md", "a\n" * 15_000)
    write("memory/202611/20261121.md", "b" * 15_000)
    yesterday, today = notes.recent(3)
    assert yesterday[1] == "[cut: only the end is shown]" + "\na" * 2_500
    assert len(today[1]) == 15_000


# Recalling


def test_facts_that_share_most_words_come_first(notes: Notes) -> None:
    for fact in ("Ada likes green tea", "Bob likes coffee", "The cat is green"):
        notes.remember(fact)
    assert recall(notes, "green TEA") == ["2026-11-21: Ada likes green tea", "2026-11-21: The cat is green"]
    assert recall(notes, "nothing of that") == []


def test_a_word_is_found_in_longer_ones(notes: Notes) -> None:
    notes.remember("Ada's preferences: tea")
    assert recall(notes, "prefer") == ["2026-11-21: Ada's preferences: tea"]


def test_the_latest_come_first_among_equals(notes: Notes, write: Callable[[str, str], None]) -> None:
    write("MEMORY.md", "Ada likes tea\n- 2026-03-01: Ada likes milk\n- 2026-01-01: Ada likes juice\n")
    write("memory/202602/20260201.md", "# Sunday\n\n- Ada likes water\n")
    expected = [
        "2026-03-01: Ada likes milk",
        "2026-02-01: Ada likes water",
        "2026-01-01: Ada likes juice",
        "Ada likes tea",
    ]
    assert recall(notes, "Ada") == expected
    assert recall(notes, "") == expected
    assert recall(notes, "", 2) == expected[:2]
    assert recall(notes, "", 0) == []


def test_of_the_same_day_the_last_line_comes_first(notes: Notes) -> None:
    notes.remember("one")
    notes.remember("two")
    assert recall(notes, "") == ["2026-11-21: two", "2026-11-21: one"]


def test_a_day_can_be_asked_for(notes: Notes, write: Callable[[str, str], None]) -> None:
    write("memory/202602/20260201.md", "Met Bob\n")
    assert recall(notes, "2026-02-01") == ["2026-02-01: Met Bob"]


def test_many_and_large_notes_are_searched_from_the_latest(notes: Notes, write: Callable[[str, str], None]) -> None:
    for days in range(500):
        day = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=days)
        write(f"memory/{day:%Y%m}/{day:%Y%m%d}.md", f"Ada {days}\n")
    write("MEMORY.md", "Ada first\n" + f"{'x' * 99}\n" * 10_000 + "Ada last\n")
    found = recall(notes, "Ada", 1000)
    assert len(found) == 401
    assert found[-1] == "Ada last"
