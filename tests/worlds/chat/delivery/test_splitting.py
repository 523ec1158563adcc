"""Long messages are split where readers expect it, and code stays code."""

import re

import pytest
from hypothesis import given, strategies

from denizen.ports import AnswerChoice, ChannelLimits, OutboundMessage
from denizen.ports.channel import LengthUnit
from denizen.worlds.chat.delivery.splitting import split_message, split_text


def pieces(text: str, length: int, unit: LengthUnit = "characters") -> list[str]:
    return [*split_text(text, ChannelLimits(length=length, unit=unit))]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("short", ["short"]),
        ("one two three", ["one two", "three"]),
        ("one\ntwo three", ["one\ntwo", "three"]),
        ("0123456789", ["01234567", "89"]),
        ("do:\n  a\n  b", ["do:\n  a", "  b"]),
        ("one\n \n  two", ["one\n ", "  two"]),
        ("one two   three", ["one two ", "three"]),
        ("", []),
    ],
)
def test_text_is_cut_at_lines_and_words(content: str, found: list[str]) -> None:
    assert pieces(content, 8) == found


def test_parts_have_their_own_ids_and_the_last_one_has_media_and_choices() -> None:
    choices = (AnswerChoice("Yes", "/approve k4"),)
    message = OutboundMessage("irc", "den", "one two", media=("a.png",), choices=choices, edits="7", id="1")
    first, last = split_message(message, ChannelLimits(length=5))
    assert (first.id, first.content, first.media, first.choices, first.edits) == ("1/1", "one", (), (), "7")
    assert (last.id, last.content, last.media, last.choices, last.edits) == ("1/2", "two", ("a.png",), choices, "")
    assert split_message(message, ChannelLimits()) == [message]


def test_message_of_media_alone_is_one_part() -> None:
    message = OutboundMessage("irc", "den", "", media=("a.png",))
    assert split_message(message, ChannelLimits(length=5)) == [message]


@pytest.mark.parametrize(
    ("text", "length", "unit", "found"),
    [
        ("äöü", 4, "bytes", ["äö", "ü"]),
        ("😀😀😀", 4, "utf16", ["😀😀", "😀"]),
        ("😀😀", 5, "bytes", ["😀", "😀"]),
        ("abcde\u0301", 5, "characters", ["abcd", "e\u0301"]),
        ("abc👩\u200d💻", 5, "characters", ["abc", "👩\u200d💻"]),
        ("abc👍🏽", 4, "characters", ["abc", "👍🏽"]),
        ("abc🇩🇪🇫🇷", 6, "characters", ["abc🇩🇪", "🇫🇷"]),
    ],
)
def test_characters_are_never_cut(text: str, length: int, unit: LengthUnit, found: list[str]) -> None:
    assert pieces(text, length, unit) == found


def test_fence_that_is_cut_is_closed_and_opened_again() -> None:
    text = "Look:\n\n```py\n" + "\n".join(f"line({number})" for number in range(9)) + "\n```\n\nDone."
    found = pieces(text, 60)
    assert found[0].startswith("Look:\n\n```py\nline(0)")
    assert found[0].endswith("\n```")
    assert found[1].startswith("```py\nline(")
    assert found[-1].endswith("\n```\n\nDone.")
    assert all(len(each) <= 60 for each in found)
    assert all(each.count("```") % 2 == 0 for each in found)


def test_code_that_does_not_fit_begins_in_the_next_piece() -> None:
    found = pieces("x" * 30 + "\n```py\n" + "y" * 20 + "\n```", 40)
    assert found == ["x" * 30, "```py\n" + "y" * 20 + "\n```"]


def test_blank_lines_of_code_are_kept() -> None:
    found = pieces("```\n" + "a" * 20 + "\n\n" + "b" * 20 + "\n```", 30)
    assert found == ["```\n" + "a" * 20 + "\n\n```", "```\n" + "b" * 20 + "\n```"]


_MARKDOWN = strategies.lists(
    strategies.sampled_from(["```py\n", "```\n", "~~~\n", "word ", "längeres ", "👩\u200d💻", "\n", "\n\n", "  x", "`"])
).map("".join)


@given(_MARKDOWN, strategies.integers(1, 80), strategies.sampled_from(["characters", "utf16", "bytes"]))
def test_every_piece_fits_and_nothing_is_lost(text: str, length: int, unit: LengthUnit) -> None:
    limits = ChannelLimits(length=length + 20, unit=unit)
    found = [*split_text(text, limits)]
    assert all(limits.measure(each) <= limits.length for each in found)

    def visible(text: str) -> str:
        return re.sub(r"\s|`{3,}(py)?|~~~|`", "", text)

    assert visible("".join(found)) == visible(text)
