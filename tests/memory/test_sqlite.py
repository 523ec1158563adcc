"""Facts in an SQLite file."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from denizen.errors import DenizenError
from denizen.memory.sqlite import FactFile
from denizen.memory.store import FactStore
from denizen.testing import FakeClock
from denizen.text.terms import query_terms


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "memory.db"


@pytest.fixture
def store(path: Path) -> FactStore:
    return FactStore(FactFile(path), "p", FakeClock())


def found(store: FactStore, query: str) -> set[str]:
    return {each.fact.text for each in store.with_terms(query_terms(query))[1]}


def test_the_file_is_for_the_user_alone(store: FactStore, path: Path) -> None:
    store.add("Ada likes tea")
    holder = sqlite3.connect(path)
    holder.execute("SELECT * FROM facts").fetchall()
    files = [*path.parent.iterdir()]
    assert {file.name for file in files} == {"memory.db", "memory.db-wal", "memory.db-shm", "memory.lock"}
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700
    holder.close()


def test_looking_makes_no_file(store: FactStore, path: Path) -> None:
    assert (store.latest(), store.with_terms(["tea"]), store.remove("tea"), store.by_id("p1")) == (
        [],
        (0, []),
        False,
        None,
    )
    assert not path.parent.exists()


KEEP = """
import sys
from pathlib import Path
from denizen.runtime.clock import SystemClock
from denizen.memory.sqlite import FactFile
from denizen.memory.store import FactStore
store = FactStore(FactFile(Path(sys.argv[1])), "p", SystemClock())
for fact in sys.argv[2:]:
    store.add(fact)
    print(fact, flush=True)
"""


FIRST_WRITERS = Path(__file__).parents[1] / "first_writers.py"


def command(path: Path, *facts: str) -> list[str]:
    return [sys.executable, "-c", KEEP, str(path), *facts]


def test_several_processes_lose_and_repeat_nothing(store: FactStore, path: Path) -> None:
    facts = [f"fact {number}" for number in range(30)]

    def keep_all(mine: str) -> None:
        subprocess.run(command(path, *facts, mine), check=True, capture_output=True)

    with ThreadPoolExecutor() as pool:
        list(pool.map(keep_all, "abcd"))
    assert sorted(fact.text for fact in store.latest()) == sorted([*facts, *"abcd"])
    assert len(found(store, "fact")) == len(facts)


def test_several_that_make_the_file_at_once_all_keep_their_fact(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, FIRST_WRITERS, "memory", tmp_path], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    kept = [
        {fact.text for fact in FactStore(FactFile(path), "p", FakeClock()).latest()} for path in tmp_path.glob("*.db")
    ]
    assert kept == [{f"fact {number}" for number in range(4)}] * 20


def test_a_process_that_is_killed_loses_nothing_that_it_acknowledged(store: FactStore, path: Path) -> None:
    facts = [f"fact {number}" for number in range(5000)]
    with subprocess.Popen(command(path, *facts), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        acknowledged = [process.stdout.readline().strip() for _ in range(20)]
        process.send_signal(signal.SIGKILL)
        acknowledged += process.stdout.read().splitlines()
    kept = [fact.text for fact in store.latest()]
    assert {*acknowledged} <= {*kept}
    assert len(found(store, "fact")) == len(kept)
    assert store.add("and it goes on")


@pytest.mark.parametrize("damage", [b"not a database at all, but long enough to be looked at" * 100, None])
def test_a_damaged_file_says_what_to_do(store: FactStore, path: Path, damage: bytes | None) -> None:
    for number in range(200):
        store.add(f"fact {number} {'x' * 500}")
    data = path.read_bytes()
    path.write_bytes(damage or data[:4096] + os.urandom(len(data) - 4096))
    with pytest.raises(DenizenError, match=r"memory\.db is damaged: .* Move it away to start over"):
        store.latest()
    path.rename(path.with_name("damaged.db"))
    assert store.add("a new beginning")


def test_a_file_of_a_newer_version_is_left_alone(store: FactStore, path: Path) -> None:
    store.add("Ada likes tea")
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(DenizenError, match="was written by a newer Denizen"):
        store.add("Bob likes milk")


def test_a_full_disk_is_reported_and_leaves_the_file_as_it_was(store: FactStore, path: Path) -> None:
    store.add("Ada likes tea")
    most = path.stat().st_size

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    ran = subprocess.run(command(path, "x" * 100_000), preexec_fn=limit, capture_output=True, text=True, check=False)
    assert "memory.db can't be used: " in ran.stderr
    assert [fact.text for fact in store.latest()] == ["Ada likes tea"]


def test_a_folder_in_its_place_is_an_error(store: FactStore, path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(DenizenError, match="can't be used"):
        store.add("Ada likes tea")


def test_a_file_of_the_version_before_is_used_and_brought_up_to_date(store: FactStore, path: Path) -> None:
    store.add("The parser is generated")
    with closing(sqlite3.connect(path)) as db:
        db.executescript("DROP VIEW known; DROP TABLE untrusted; PRAGMA user_version = 1;")
    store.add("The office moved", untrusted=True)
    assert [(fact.text, fact.untrusted) for fact in store.latest()] == [
        ("The office moved", True),
        ("The parser is generated", False),
    ]
