"""What `.env` may say."""

from pathlib import Path

import pytest

from denizen.config.env import fill_in, parse_dotenv, read_dotenv
from denizen.errors import ConfigError


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=plain", "plain"),
        ("  A = spaced out  ", "spaced out"),
        ("export A=exported", "exported"),
        ("A=", ""),
        ("A= # nothing", ""),
        ("A=some # a comment", "some"),
        ("A=a#b", "a#b"),
        ("A='single # ${B} \\n' # a comment", "single # ${B} \\n"),
        ('A="double # ${B}"', "double # ${B}"),
        (r'A="a\nb\t\"c\" \\d"', 'a\nb\t"c" \\d'),
        ("A=it's", "it's"),
        ("A=k=v==", "k=v=="),
        ("A=ключ", "ключ"),
    ],
)
def test_a_line_gives_a_variable(line: str, value: str) -> None:
    assert parse_dotenv(line, ".env") == {"A": value}


def test_comments_and_empty_lines_are_passed_over() -> None:
    assert parse_dotenv("# first\n\n  # second\nA=1\r\nB=2\n", ".env") == {"A": "1", "B": "2"}


@pytest.mark.parametrize(
    "line", ["canary", "A", "1A=canary", 'A="canary', "A='canary' more", "A B=canary", "A=#canary"]
)
def test_an_invalid_line_is_reported_by_its_number_and_not_shown(line: str) -> None:
    with pytest.raises(ConfigError, match=r"\.env:2: ") as caught:
        parse_dotenv(f"B=1\n{line}", ".env")
    assert "canary" not in str(caught.value)


def test_a_home_without_dotenv_adds_nothing(tmp_path: Path) -> None:
    assert read_dotenv(tmp_path) == {}


def test_settings_are_filled_in_at_every_depth() -> None:
    filled = fill_in({"a": ["${X}", {"b": "<${X}>", "c": 1}]}, {"X": "x"})
    assert filled == {"a": ["x", {"b": "<x>", "c": 1}]}
