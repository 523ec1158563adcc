"""Lines that are broken to fit a screen."""

import pytest

from denizen.text.wrapping import wrap_line


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", [""]),
        ("exactly 10", ["exactly 10"]),
        ("exactly 10 and", ["exactly 10", "and"]),
        ("one two three", ["one two", "three"]),
        ("abcdefghijklmno", ["abcdefghij", "klmno"]),
        ("           indented", ["          ", "indented"]),
        ("é" * 12, ["é" * 10, "éé"]),
    ],
)
def test_lines_wrap_between_words_if_possible(text: str, rows: list[str]) -> None:
    assert list(wrap_line(text, 10)) == rows
