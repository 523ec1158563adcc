"""Facts, in an SQLite file and in PostgreSQL."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.memory.conftest import TableOf

from denizen.memory.store import FactStore
from denizen.testing import FakeClock
from denizen.text.terms import query_terms, storable


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(table_of: TableOf, clock: FakeClock) -> FactStore:
    return FactStore(table_of("here"), "p", clock)


def found(store: FactStore, query: str) -> set[str]:
    return {each.fact.text for each in store.with_terms(query_terms(query))[1]}


def test_what_is_kept_is_there_for_the_next_process(store: FactStore, table_of: TableOf, clock: FakeClock) -> None:
    assert store.add("The auth module uses JWT", context="architecture", weight=0.8, source="work")
    [fact] = FactStore(table_of("here"), "p", clock).latest()
    assert (fact.id, fact.text, fact.context, fact.weight, fact.source) == (
        *("p1", "The auth module uses JWT", "architecture", 0.8, "work"),
    )
    assert fact.at == clock.now()


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
        ("\U00010428" * 2000, "\U00010428" * 2000),
        ("".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(2000)), "\u4e00\u6cef"),
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


@given(st.text(st.characters()), st.text(st.characters()))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_can_be_kept_and_looked_for(store: FactStore, fact: str, query: str) -> None:
    for earlier in store.latest():
        store.remove(earlier.text)
    store.add(fact, context=query)
    total, hits = store.with_terms(query_terms(query))
    assert total == 1
    assert {each.fact.text for each in hits} <= {storable(fact)}
    assert bool(store.with_terms(query_terms(fact))[1]) == bool(query_terms(fact))
    assert store.by_text(fact)
    store.containing(query, 5)
    assert store.remove(fact)


def test_each_has_its_own(table_of: TableOf, clock: FakeClock) -> None:
    here, there = (FactStore(table_of(place), "p", clock) for place in ("here", "there"))
    here.add("Ada likes tea")
    assert there.add("Ada likes tea", weight=0.9)
    assert there.add("Bob likes tea")
    [fact] = here.latest()
    assert (fact.weight, found(here, "tea"), here.with_terms(["tea"])[0]) == (0.5, {"Ada likes tea"}, 1)
    assert there.by_id(fact.id) != fact
    assert here.remove("Ada likes tea")
    assert len(there.latest()) == 2


def test_several_at_once_lose_and_repeat_nothing(table_of: TableOf, clock: FakeClock) -> None:
    facts = [f"fact {number}" for number in range(30)]
    stores = [FactStore(table_of("here"), "p", clock) for _ in range(4)]

    def keep_all(store: FactStore, mine: str) -> int:
        return sum(store.add(fact, untrusted=mine == "a") for fact in [*facts, mine])

    with ThreadPoolExecutor() as pool:
        assert sum(pool.map(keep_all, stores, "abcd")) == len(facts) + 4
    assert sorted(fact.text for fact in stores[0].latest()) == sorted([*facts, *"abcd"])
    assert len(found(stores[0], "fact")) == len(facts)
    assert {fact.text for fact in stores[0].latest() if not fact.untrusted} == {*"bcd"}
