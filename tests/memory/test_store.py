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
from hypothesis import given
from hypothesis import strategies as st

from denizen.errors import DenizenError
from denizen.memory.store import FactStore
from denizen.memory.terms import query_terms
from denizen.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> FactStore:
    return FactStore(tmp_path / "home" / "memory.db", "p", clock)


def found(store: FactStore, query: str) -> set[str]:
    return {each.fact.text for each in store.with_terms(query_terms(query))[1]}


def test_what_is_kept_is_there_for_the_next_process(store: FactStore, clock: FakeClock) -> None:
    assert store.add("The auth module uses JWT", context="architecture", weight=0.8, source="work")
    [fact] = FactStore(store.path, "p", clock).latest()
    assert (fact.id, fact.text, fact.context, fact.weight, fact.source) == (
        *("p1", "The auth module uses JWT", "architecture", 0.8, "work"),
    )
    assert fact.at == clock.now()


def test_the_file_is_for_the_user_alone(store: FactStore) -> None:
    store.add("Ada likes tea")
    holder = sqlite3.connect(store.path)
    holder.execute("SELECT * FROM facts").fetchall()
    files = [*store.path.parent.iterdir()]
    assert {file.name for file in files} == {"memory.db", "memory.db-wal", "memory.db-shm"}
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert store.path.parent.stat().st_mode & 0o777 == 0o700
    holder.close()


def test_looking_makes_no_file(store: FactStore) -> None:
    assert (store.latest(), store.with_terms(["tea"]), store.remove("tea"), store.by_id("p1")) == (
        [],
        (0, []),
        False,
        None,
    )
    assert not store.path.parent.exists()


async def test_a_fact_that_is_said_again_is_the_latest_and_not_another(store: FactStore, clock: FakeClock) -> None:
    store.add("Ada likes tea", context="taste", weight=0.9)
    store.add("Bob likes milk")
    await clock.sleep(60)
    assert not store.add("ada  likes TEA", weight=0.2, source="later")
    latest, other = store.latest()
    assert (latest.text, latest.context, latest.weight, latest.source) == ("Ada likes tea", "taste", 0.9, "later")
    assert latest.at == clock.now()
    assert other.text == "Bob likes milk"


def test_an_id_never_means_another_fact(store: FactStore) -> None:
    store.add("one")
    assert store.remove("ONE")
    store.add("two")
    assert store.by_id("p1") is None
    assert [fact.id for fact in store.latest()] == ["p2"]


@pytest.mark.parametrize("wrong", ["p", "u1", "1", "p-1", "p１", "p99999999999999999999999", "p1 OR 1=1", ""])
def test_what_is_no_id_names_nothing(store: FactStore, wrong: str) -> None:
    store.add("one")
    assert store.by_id(wrong) is None


def test_what_is_forgotten_is_not_found_any_more(store: FactStore) -> None:
    store.add("Ada likes tea")
    assert store.remove("Ada likes tea")
    assert not store.remove("Ada likes tea")
    assert found(store, "tea") == set()


@pytest.mark.parametrize(
    ("fact", "query"),
    [
        ("The parser is in parseHTTPResponse", "http"),
        ("The parser is in parseHTTPResponse", "parse_http"),
        ("Set max_tool_result_chars to 9", "maxToolResultChars"),
        ("Set max_tool_result_chars to 9", "result chars"),
        ("It reads src/auth/login.py", "login"),
        ("The tests are configured in tox", "configuration of a test"),
        ("Her preferences are known", "prefer"),
        ("認証モジュールは JWT を使う", "認証"),
        ("認証モジュールは JWT を使う", "モジュール"),
        ("我喜欢绿茶", "绿茶"),
        ("我喜欢绿茶", "茶"),
        ("로그인은 세션을 쓴다", "세션"),
        ("Le café est fermé", "cafe ferme"),
    ],
)
def test_a_fact_is_found(store: FactStore, fact: str, query: str) -> None:
    store.add("Something else entirely")
    store.add(fact)
    assert found(store, query) == {fact}


def test_a_fact_is_found_by_what_it_is_about_and_by_its_day(store: FactStore) -> None:
    store.add("Use JWT", context="authentication")
    assert found(store, "authentication") == found(store, "2026-01-01") == {"Use JWT"}


def test_a_piece_of_a_word_is_found(store: FactStore) -> None:
    store.add("Use C++ -> not Rust")
    assert [fact.text for fact in store.containing("c++ ->", 5)] == ["Use C++ -> not Rust"]
    assert store.containing("%", 5) == []


@given(st.text(), st.text())
def test_any_text_can_be_looked_for(tmp_path_factory: pytest.TempPathFactory, fact: str, query: str) -> None:
    store = FactStore(tmp_path_factory.mktemp("store") / "memory.db", "p", FakeClock())
    fact, query = (text.encode(errors="replace").decode() for text in (fact, query))
    store.add(fact)
    total, hits = store.with_terms(query_terms(query))
    assert total == 1
    assert {each.fact.text for each in hits} <= {fact}
    assert {each.fact.text for each in store.with_terms(query_terms(fact))[1]} == (
        {fact} if query_terms(fact) else set()
    )


# Several processes, crashes, damage

KEEP = """
import sys
from pathlib import Path
from denizen.clock import SystemClock
from denizen.memory.store import FactStore
store = FactStore(Path(sys.argv[1]), "p", SystemClock())
for fact in sys.argv[2:]:
    store.add(fact)
    print(fact, flush=True)
"""


def command(path: Path, *facts: str) -> list[str]:
    return [sys.executable, "-c", KEEP, str(path), *facts]


def test_several_processes_lose_and_repeat_nothing(store: FactStore) -> None:
    facts = [f"fact {number}" for number in range(30)]

    def keep_all(mine: str) -> None:
        subprocess.run(command(store.path, *facts, mine), check=True, capture_output=True)

    with ThreadPoolExecutor() as pool:
        list(pool.map(keep_all, "abcd"))
    assert sorted(fact.text for fact in store.latest()) == sorted([*facts, *"abcd"])
    assert len(found(store, "fact")) == len(facts)


def test_a_process_that_is_killed_loses_nothing_that_it_acknowledged(store: FactStore) -> None:
    facts = [f"fact {number}" for number in range(5000)]
    with subprocess.Popen(command(store.path, *facts), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        acknowledged = [process.stdout.readline().strip() for _ in range(20)]
        process.send_signal(signal.SIGKILL)
        acknowledged += process.stdout.read().splitlines()
    kept = [fact.text for fact in store.latest()]
    assert {*acknowledged} <= {*kept}
    assert len(found(store, "fact")) == len(kept)
    assert store.add("and it goes on")


@pytest.mark.parametrize("damage", [b"not a database at all, but long enough to be looked at" * 100, None])
def test_a_damaged_file_says_what_to_do(store: FactStore, damage: bytes | None) -> None:
    for number in range(200):
        store.add(f"fact {number} {'x' * 500}")
    data = store.path.read_bytes()
    store.path.write_bytes(damage or data[:4096] + os.urandom(len(data) - 4096))
    with pytest.raises(DenizenError, match=r"memory\.db is damaged: .* Move it away to start over"):
        store.latest()
    store.path.rename(store.path.with_name("damaged.db"))
    assert store.add("a new beginning")


def test_a_file_of_a_newer_version_is_left_alone(store: FactStore) -> None:
    store.add("Ada likes tea")
    with sqlite3.connect(store.path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(DenizenError, match="was written by a newer Denizen"):
        store.add("Bob likes milk")


def test_a_full_disk_is_reported_and_leaves_the_file_as_it_was(store: FactStore) -> None:
    store.add("Ada likes tea")
    most = store.path.stat().st_size

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    ran = subprocess.run(
        command(store.path, "x" * 100_000), preexec_fn=limit, capture_output=True, text=True, check=False
    )
    assert "memory.db can't be used: " in ran.stderr
    assert [fact.text for fact in store.latest()] == ["Ada likes tea"]


def test_a_folder_in_its_place_is_an_error(store: FactStore) -> None:
    store.path.mkdir(parents=True)
    with pytest.raises(DenizenError, match="can't be used"):
        store.add("Ada likes tea")


def test_a_file_of_the_version_before_is_used_and_brought_up_to_date(store: FactStore) -> None:
    store.add("The parser is generated")
    with closing(sqlite3.connect(store.path)) as db:
        db.executescript("DROP VIEW known; DROP TABLE untrusted; PRAGMA user_version = 1;")
    store.add("The office moved", untrusted=True)
    assert [(fact.text, fact.untrusted) for fact in store.latest()] == [
        ("The office moved", True),
        ("The parser is generated", False),
    ]
