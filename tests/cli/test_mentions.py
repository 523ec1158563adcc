"""Which paths the letters after `@` find."""

import pytest

from denizen.cli.completion import best_matches

PATHS = ["shop/", "shop/basket.py", "docs/bucket list.md", "tests/shop/test_basket.py", "[odd]^\\-.txt"]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("basket", ["shop/basket.py", "tests/shop/test_basket.py"]),
        ("SHBSK", ["shop/basket.py", "tests/shop/test_basket.py"]),
        ("]^\\-", ["[odd]^\\-.txt"]),
        ("tekb", []),
        ("", sorted(PATHS, key=len)),
    ],
)
def test_letters_find_the_paths_that_have_them_in_this_order(typed: str, found: list[str]) -> None:
    assert best_matches(typed, PATHS) == found


def test_letters_that_a_long_path_has_in_many_ways_but_the_last_are_looked_for_once() -> None:
    assert best_matches("test" * 20 + "z", ["test_" * 100]) == []
