"""How many there are of something, and which."""

import pytest

from denizen.text.plural import counted, first_of


@pytest.mark.parametrize(
    ("number", "what", "said"),
    [
        (1, "match", "1 match"),
        (0, "file", "0 files"),
        (2000, "file", "2,000 files"),
        (3, "match", "3 matches"),
        (2, "class", "2 classes"),
        (2, "dependency", "2 dependencies"),
    ],
)
def test_one_is_named_alone_and_several_in_the_plural(number: int, what: str, said: str) -> None:
    assert counted(number, what) == said


def test_of_many_names_the_first_are_named_and_the_rest_counted() -> None:
    assert first_of(["a", "b"], 2) == "a, b"
    assert first_of(["a", "b", "c", "d", "e"], 2) == "a, b and 3 more"
    assert first_of([], 2) == ""
