"""Text for a terminal: safe, and no wider than it looks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.cli.text import cut, printable, shorten, visible, wrapped


@pytest.mark.parametrize(
    "sequence",
    [
        "\x1b[31m",
        "\x1b[2J",
        "\x1b[?1049h",
        "\x1b]0;title\x07",
        "\x1b]52;c;aGFjaw==\x1b\\",
        "\x1bP+q544e\x1b\\",
        "\x1b(B",
        "\x1bc",
        "\x9b31m",
        "\x9d0;title\x9c",
        "\x07",
        "\x08",
        "\r",
        "\x7f",
        "\x85",
        "\u202e",
        "\u2066",
    ],
)
def test_what_could_paint_a_terminal_is_left_out(sequence: str) -> None:
    assert printable(f"before{sequence}after") == "beforeafter"


@given(st.text(st.sampled_from("\x1b[]()\\;\x07\x9b\x9c\x9dab10Pm\n\t日é")))
def test_no_control_character_is_left_whatever_the_text(text: str) -> None:
    assert not [c for c in printable(text) if not c.isprintable() and c not in "\n\t"]


def test_words_tabs_and_lines_stay() -> None:
    assert printable("Zeile\t1\n日本語 é 👩‍💻\n") == "Zeile\t1\n日本語 é 👩‍💻\n"


def test_what_is_approved_hides_nothing() -> None:
    assert visible("rm\u200b -rf \x1b[8m/\u202e\r\n\tx") == "rm\\u200b -rf \\x1b[8m/\\u202e\\r\n\tx"


@pytest.mark.parametrize(
    ("text", "cells", "shown"),
    [
        ("short", 10, "short"),
        ("exactly", 7, "exactly"),
        ("too long", 5, "too …"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
        ("", 5, ""),
    ],
)
def test_a_line_is_cut_to_the_cells_that_there_are(text: str, cells: int, shown: str) -> None:
    assert cut(text, cells) == shown


def test_a_long_text_says_how_much_is_missing_and_how_to_see_it() -> None:
    assert shorten("1\n2\n3\n", lines=2, characters=100, how="--all") == "1\n2\n… 3 more characters: --all"
    assert shorten("12345", lines=2, characters=2, how="--all") == "12\n… 3 more characters: --all"
    assert shorten("short", lines=2, characters=100, how="--all") == "short"


def test_longer_lines_are_broken_between_words_and_stay_as_far_in() -> None:
    assert wrapped("  one two 日本 three\n  as it  is", 11) == "  one two\n  日本\n  three\n  as it  is"
