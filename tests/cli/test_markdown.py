"""Markdown on a terminal: whole words, no line too wide, and nothing lost, however it streams in."""

from pathlib import Path

import click
import pytest

from denizen.cli.markdown import last_lines, rendered, split_blocks
from denizen.cli.text import width

REPLY = (Path(__file__).parents[1] / "data" / "markdown" / "reply.md").read_text("utf-8")


def plain(text: str, columns: int = 60) -> list[str]:
    return [click.unstyle(line) for line in rendered(text, columns)]


@pytest.fixture
def blocks() -> list[str]:
    """The finished blocks of the reply as they come out when it streams in character by character, and the last."""
    found, rest = [], ""
    for character in REPLY:
        finished, rest = split_blocks(rest + character)
        found += filter(None, [finished])
    return [*found, rest]


def test_blocks_are_finished_one_by_one_and_nothing_is_lost(blocks: list[str]) -> None:
    beginnings = [block.split()[0] for block in blocks]
    assert beginnings == ["#", "The", "##", "-", "1.", ">", "|", "```python", "Done."]
    assert "".join(blocks) == REPLY


def test_blocks_look_as_they_do_in_the_whole(blocks: list[str]) -> None:
    shown = [line for block in blocks for line in [*plain(block), ""]]
    assert [line for line in shown if line] == [line for line in plain(REPLY) if line]


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_lines_are_broken_between_words_and_none_is_too_wide(columns: int) -> None:
    lines = plain(REPLY, columns)
    assert max(map(width, lines)) <= columns
    assert {"internationalisation-independent", "multiplication", "wrapped"} <= {*" ".join(lines).split()}


def test_marks_are_not_shown_and_words_are() -> None:
    lines = plain(REPLY, 100)
    assert lines[0] == "What I found"
    assert "The total is wrong for two lamps: List<int> holds each price, and the second one is" in lines
    assert "counted twice. See the docs (https://example.com/prices)." in lines
    assert " • test_shop.py" in lines
    assert " 2 second" in lines
    assert "▌ Prices are in cents." in lines
    assert not any("```" in line or "|" in line for line in lines)


def test_code_is_highlighted_and_keeps_its_lines() -> None:
    code = "```python\ndef one():\n\n    return 1\n```\n"
    assert plain(code) == ["  def one():", "", "      return 1"]
    assert "\x1b[94mdef\x1b[0m" in "".join(rendered(code, 60))


def test_of_an_unfinished_block_the_last_lines_are_shown() -> None:
    code = "```python\n" + "".join(f"line_{number} = {number}\n" for number in range(1000))
    assert [click.unstyle(line) for line in last_lines(code, 60, 2)] == ["  line_998 = 998", "  line_999 = 999"]
    assert last_lines("- one\n- two\n- thr", 60, 2) == rendered("- one\n- two\n- thr", 60)[-2:]
