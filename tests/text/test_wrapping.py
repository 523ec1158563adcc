"""Lines that are broken to fit a screen."""

import pytest

from denizen.text.wrapping import broken


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
def test_lines_break_between_words_where_there_are_some(text: str, rows: list[str]) -> None:
    assert list(broken(text, 10)) == rows
