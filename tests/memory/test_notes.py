"""Facts that outlast a session, in plain files."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.errors import ToolRefused
from denizen.memory import LongTermMemory, Notes
from denizen.memory.store import FactStore
from denizen.testing import FakeClock

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path, FakeClock(NOON))


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], None]:
    def put(name: str, text: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    return put


def memory(folder: Path) -> str:
    return (folder / "MEMORY.md").read_text()


def recall(notes: Notes, query: str, limit: int = 10) -> list[str]:
    """The lines that the memory finds which has these notes alone."""
    clock = FakeClock(NOON)
    user = FactStore(Path("/nowhere/memory.db"), "u", clock)
    found = asyncio.run(LongTermMemory(project=None, user=user, notes=notes, clock=clock).recall(query, limit))
    return [f"{fact.at:%Y-%m-%d}: {fact.text}" if fact.at else fact.text for fact in found]


# Remembering


def test_a_fact_becomes_a_dated_line(notes: Notes, tmp_path: Path) -> None:
    assert notes.remember("Ada likes tea") == "Remembered in MEMORY.md."
    notes.remember("Ada lives in London")
    assert memory(tmp_path) == "- 2026-11-21: Ada likes tea\n- 2026-11-21: Ada lives in London\n"


def test_the_workspace_is_made_for_the_user_alone(tmp_path: Path) -> None:
    Notes(tmp_path / "a/workspace", FakeClock(NOON)).remember("x")
    assert (tmp_path / "a/workspace/MEMORY.md").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "a/workspace").stat().st_mode & 0o777 == 0o700


def test_what_the_user_wrote_stays(notes: Notes, tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_bytes(b"# About me\n\nI like \xff coffee")
    notes.remember("Ada likes tea")
    assert (tmp_path / "MEMORY.md").read_bytes() == b"# About me\n\nI like \xff coffee\n- 2026-11-21: Ada likes tea\n"


def test_a_fact_is_one_line_whatever_it_holds(notes: Notes, tmp_path: Path) -> None:
    notes.remember("- one\n# two\r\n\tthree\u2028four\x1b[31m\ud800")
    assert memory(tmp_path) == "- 2026-11-21: one # two three four[31m\n"


@given(st.text())
def test_no_text_makes_more_than_one_line(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("notes")
    try:
        Notes(folder, FakeClock(NOON)).remember(text)
    except ToolRefused:
        return
    assert len(memory(folder).splitlines()) == 1
    assert len([*Notes(folder, FakeClock(NOON)).facts()]) == 1


def test_a_fact_is_not_repeated(notes: Notes, tmp_path: Path, write: Callable[[str, str], None]) -> None:
    write("MEMORY.md", "- 2026-01-01: Ada likes tea\n* Bob is tall\n")
    assert notes.remember("ada  likes TEA") == "MEMORY.md says so already."
    assert notes.remember("Bob is tall") == "MEMORY.md says so already."
    assert notes.remember("Ada likes tea best") == "Remembered in MEMORY.md."
    assert len(memory(tmp_path).splitlines()) == 3


@pytest.mark.parametrize("text", ["", " \n\t", "\x00"])
def test_an_empty_fact_is_refused(notes: Notes, tmp_path: Path, text: str) -> None:
    with pytest.raises(ToolRefused, match="the text is empty"):
        notes.remember(text)
    assert not (tmp_path / "MEMORY.md").exists()


def test_a_fact_without_end_is_refused(notes: Notes) -> None:
    with pytest.raises(ToolRefused, match="longer than 2000 characters"):
        notes.remember("x" * 2001)


def test_a_link_is_not_followed(notes: Notes, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("mine\n")
    (tmp_path / "MEMORY.md").symlink_to("elsewhere")
    with pytest.raises(ToolRefused, match="can't be written"):
        notes.remember("x; evil")
    assert (tmp_path / "elsewhere").read_text() == "mine\n"
    with pytest.raises(ToolRefused, match="can't be read"):
        recall(notes, "mine")


def test_a_pipe_is_not_waited_for(notes: Notes, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "MEMORY.md")
    with pytest.raises(ToolRefused, match="it is not a file"):
        notes.remember("x")
    with pytest.raises(ToolRefused, match="it is not a file"):
        recall(notes, "x")


def test_a_folder_in_its_place_is_an_error(notes: Notes, tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").mkdir()
    with pytest.raises(ToolRefused, match="can't be written"):
        notes.remember("x")


REMEMBER = """
import sys, resource
from pathlib import Path
from denizen.clock import SystemClock
from denizen.errors import ToolRefused
from denizen.memory import Notes
limit, *facts = sys.argv[2:]
if int(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
for fact in facts:
    try:
        print(Notes(Path(sys.argv[1]), SystemClock()).remember(fact))
    except ToolRefused as refused:
        print(refused)
"""


def remember_elsewhere(folder: Path, *facts: str, limit: int = 0) -> str:
    """What another process says that remembers the facts; its files can't grow over `limit` bytes (0: they can)."""
    command = [sys.executable, "-c", REMEMBER, str(folder), str(limit), *facts]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, write: Callable[[str, str], None]) -> None:
    write("MEMORY.md", "- 2026-01-01: Ada likes tea\n")
    said = remember_elsewhere(tmp_path, "a fact that is too long for this disk", limit=40)
    assert "Nothing was remembered" in said
    assert memory(tmp_path) == "- 2026-01-01: Ada likes tea\n"


def test_several_processes_lose_and_repeat_nothing(tmp_path: Path) -> None:
    facts = [f"fact {number}" for number in range(40)]
    with ThreadPoolExecutor() as pool:
        said = [pool.submit(remember_elsewhere, tmp_path, *facts) for _ in range(3)]
    assert "".join(future.result() for future in said).count("Remembered in") == len(facts)
    lines = memory(tmp_path).splitlines()
    assert sorted(line.partition(": ")[2] for line in lines) == sorted(facts)


def test_several_agents_of_one_process_repeat_nothing(tmp_path: Path) -> None:
    facts = [f"fact {number}" for number in range(50)]

    def remember_all() -> int:
        return sum("Remembered" in Notes(tmp_path, FakeClock(NOON)).remember(fact) for fact in facts)

    with ThreadPoolExecutor(8) as pool:
        remembered = [pool.submit(remember_all) for _ in range(8)]
    assert sum(future.result() for future in remembered) == len(facts)
    assert len(memory(tmp_path).splitlines()) == len(facts)


# Daily notes


def note(folder: Path, day: str = "20261121") -> str:
    return (folder / "memory" / day[:6] / f"{day}.md").read_text()


def test_todays_note_gets_a_line_with_the_time(notes: Notes, tmp_path: Path) -> None:
    assert notes.append_today("Ada called") == "Noted in memory/202611/20261121.md."
    notes.append_today("Ada called")
    assert note(tmp_path) == "- 12:00 Ada called\n- 12:00 Ada called\n"
    assert (tmp_path / "memory/202611/20261121.md").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("zone", "day", "line"),
    [
        ("Pacific/Auckland", "20261122", "- 01:00 Ada called\n"),
        ("Pacific/Honolulu", "20261121", "- 02:00 Ada called\n"),
    ],
)
def test_the_users_time_zone_decides_the_day(tmp_path: Path, zone: str, day: str, line: str) -> None:
    there = Notes(tmp_path, FakeClock(NOON), ZoneInfo(zone))
    there.append_today("Ada called")
    there.remember("Ada calls")
    assert note(tmp_path, day) == line
    assert [path.split("/")[-1] for path, _ in there.recent(1)] == [f"{day}.md"]
    assert memory(tmp_path) == f"- {day[:4]}-{day[4:6]}-{day[6:]}: Ada calls\n"


def test_what_others_may_have_wanted_noted_is_marked(notes: Notes, tmp_path: Path) -> None:
    notes.append_today("The office moved", untrusted=True)
    assert note(tmp_path) == "- [untrusted] 12:00 The office moved\n"
    assert [fact.untrusted for fact in notes.facts()] == [True]


def test_a_line_that_is_torn_stays_apart(notes: Notes, tmp_path: Path, write: Callable[[str, str], None]) -> None:
    write("memory/202611/20261121.md", "by hand")
    notes.append_today("Ada called")
    assert note(tmp_path) == "by hand\n- 12:00 Ada called\n"


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
    write("memory/202611/20261120.md", "a" * 30_000)
    write("memory/202611/20261121.md", "b" * 15_000)
    yesterday, today = notes.recent(3)
    assert yesterday[1] == f"[cut: only the end is shown]\n{'a' * 5_000}"
    assert len(today[1]) == 15_000


APPEND = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from denizen.memory import Notes
from denizen.testing import FakeClock
for line in sys.argv[2:]:
    Notes(Path(sys.argv[1]), FakeClock(datetime(2026, 11, 21, 12, tzinfo=UTC))).append_today(line)
"""


def test_turns_and_processes_that_note_at_once_lose_nothing(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(30)]

    def append_here() -> None:
        for line in lines:
            Notes(tmp_path, FakeClock(NOON)).append_today(line)

    def append_elsewhere() -> None:
        subprocess.run([sys.executable, "-c", APPEND, str(tmp_path), *lines], check=True)

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(each) for each in (append_here, append_here, append_elsewhere, append_elsewhere)]:
            done.result()
    assert sorted(note(tmp_path).splitlines()) == sorted(f"- 12:00 {line}" for line in lines * 4)


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


def test_there_may_be_nothing_yet(tmp_path: Path) -> None:
    assert recall(Notes(tmp_path / "nowhere", FakeClock(NOON)), "x") == []


def test_only_daily_notes_are_searched(notes: Notes, write: Callable[[str, str], None], tmp_path: Path) -> None:
    for name in ("memory/202602/notes.md", "memory/x/20260201.md", "memory/202602/2026.md", "other.md"):
        write(name, "Ada\n")
    assert recall(notes, "Ada") == []


def test_many_and_large_notes_are_searched_from_the_latest(notes: Notes, write: Callable[[str, str], None]) -> None:
    for days in range(500):
        day = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=days)
        write(f"memory/{day:%Y%m}/{day:%Y%m%d}.md", f"Ada {days}\n")
    write("MEMORY.md", "Ada first\n" + f"{'x' * 99}\n" * 10_000 + "Ada last\n")
    found = recall(notes, "Ada", 1000)
    assert len(found) == 401
    assert found[-1] == "Ada last"
