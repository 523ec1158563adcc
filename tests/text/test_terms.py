"""Under which words a text is found."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.text.terms import MAX_TERMS, index_terms, query_terms


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ada likes tea.", ["ada", "likes", "tea"]),
        ("parseHTTPResponse", ["parsehttpresponse", "parse", "http", "response"]),
        ("max_tool_result", ["max_tool_result", "max", "tool", "result"]),
        ("src/auth/login.py", ["src", "auth", "login", "py"]),
        ("__init__ text-search sha256", ["init", "text", "search", "sha256"]),
        ("Café NAÏVE", ["cafe", "naive"]),
        ("茶", ["茶"]),
        ("認証は JWT", ["認", "証", "は", "認証", "証は", "jwt"]),
        ("로그인", ["로", "그", "인", "로그", "그인"]),
        ("-> '\" * \x00 ()", []),
    ],
)
def test_the_words_a_text_is_kept_under(text: str, words: list[str]) -> None:
    assert index_terms(text) == words


def test_a_query_leaves_out_what_every_text_has() -> None:
    assert query_terms("What is the way to the tea?") == ["way", "tea"]
    assert query_terms("to be or not to be") == ["to", "be", "or", "not"]


def test_of_unspaced_scripts_a_query_wants_pairs_of_letters() -> None:
    assert query_terms("認証") == ["認証"]
    assert query_terms("茶") == ["茶"]


def test_a_query_as_long_as_a_task_has_an_end() -> None:
    assert len(query_terms(" ".join(f"word{number}" for number in range(100_000)))) == MAX_TERMS


@pytest.mark.parametrize("letters", ["茶", "aB"])
def test_long_runs_of_letters_are_not_kept_in_memory(letters: str) -> None:
    tracemalloc.start()
    try:
        for number in range(20):
            index_terms(f"{letters[number % len(letters)]}{letters * (5_000 + number)}")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000


@given(st.text())
def test_a_text_has_the_words_of_a_query_that_is_the_same(text: str) -> None:
    assert set(query_terms(text)) <= set(index_terms(text))
