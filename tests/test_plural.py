"""How many there are of something."""

import pytest

from denizen.plural import counted


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
