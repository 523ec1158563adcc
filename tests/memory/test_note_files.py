"""Notes in plain files."""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from denizen.errors import ToolRefused
from denizen.memory.note_files import NoteFiles
from denizen.memory.notes import Notes
from denizen.testing import FakeClock
from denizen.trusted.session_files import SessionFiles

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(NoteFiles(tmp_path, SessionFiles(tmp_path)), FakeClock(NOON))


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], None]:
    def put(name: str, text: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    return put


def memory(folder: Path) -> str:
    return (folder / "MEMORY.md").read_text()


def note(folder: Path, day: str = "20261121") -> str:
    return (folder / "memory" / day[:6] / f"{day}.md").read_text()


def test_the_workspace_is_made_for_the_user_alone(tmp_path: Path) -> None:
    Notes(NoteFiles(tmp_path / "a/workspace", SessionFiles(tmp_path)), FakeClock(NOON)).remember("x")
    assert (tmp_path / "a/workspace/MEMORY.md").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "a/workspace").stat().st_mode & 0o777 == 0o700


def test_what_the_user_wrote_stays(notes: Notes, tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_bytes(b"# About me\n\nI like \xff coffee")
    notes.remember("Ada likes tea")
    assert (tmp_path / "MEMORY.md").read_bytes() == b"# About me\n\nI like \xff coffee\n- 2026-11-21: Ada likes tea\n"


def test_a_link_is_not_followed(notes: Notes, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("mine\n")
    (tmp_path / "MEMORY.md").symlink_to("elsewhere")
    with pytest.raises(ToolRefused, match="can't be written"):
        notes.remember("x; evil")
    assert (tmp_path / "elsewhere").read_text() == "mine\n"
    with pytest.raises(ToolRefused, match="can't be read"):
        [*notes.facts()]


def test_a_pipe_is_not_waited_for(notes: Notes, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "MEMORY.md")
    with pytest.raises(ToolRefused, match="it is not a file"):
        notes.remember("x")
    with pytest.raises(ToolRefused, match="it is not a file"):
        [*notes.facts()]


def test_a_folder_in_its_place_is_an_error(notes: Notes, tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").mkdir()
    with pytest.raises(ToolRefused, match="can't be written"):
        notes.remember("x")


REMEMBER = """
import sys, resource
from pathlib import Path
from denizen.runtime.clock import SystemClock
from denizen.errors import ToolRefused
from denizen.memory.note_files import NoteFiles
from denizen.memory.notes import Notes
from denizen.trusted.session_files import SessionFiles
limit, *facts = sys.argv[2:]
if int(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
for fact in facts:
    try:
        print(Notes(NoteFiles(Path(sys.argv[1]), SessionFiles(Path(sys.argv[1]))), SystemClock()).remember(fact))
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


def test_there_may_be_nothing_yet(tmp_path: Path) -> None:
    assert [*Notes(NoteFiles(tmp_path / "nowhere", SessionFiles(tmp_path)), FakeClock(NOON)).facts()] == []


def test_only_daily_notes_are_searched(notes: Notes, write: Callable[[str, str], None], tmp_path: Path) -> None:
    for name in ("memory/202602/notes.md", "memory/x/20260201.md", "memory/202602/2026.md", "other.md"):
        write(name, "Ada\n")
    assert [*notes.facts()] == []


APPEND = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from denizen.memory.note_files import NoteFiles
from denizen.memory.notes import Notes
from denizen.testing import FakeClock
from denizen.trusted.session_files import SessionFiles
place = Path(sys.argv[1])
for line in sys.argv[2:]:
    clock = FakeClock(datetime(2026, 11, 21, 12, tzinfo=UTC))
    Notes(NoteFiles(place, SessionFiles(place)), clock).append_today(line)
"""


def test_turns_and_processes_that_note_at_once_lose_nothing(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(30)]

    def append_here() -> None:
        for line in lines:
            Notes(NoteFiles(tmp_path, SessionFiles(tmp_path)), FakeClock(NOON)).append_today(line)

    def append_elsewhere() -> None:
        subprocess.run([sys.executable, "-c", APPEND, str(tmp_path), *lines], check=True)

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(each) for each in (append_here, append_here, append_elsewhere, append_elsewhere)]:
            done.result()
    assert sorted(note(tmp_path).splitlines()) == sorted(f"- 12:00 {line}" for line in lines * 4)
