"""Markdown in Telegram's dialect: never refused, and nothing of it lost."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.worlds.chat.delivery.channels.servers.markdown_v2 import visible_text

from denizen.worlds.chat.delivery.channels.markdown_v2 import markdown_v2

_PIECES = [
    "*",
    "**",
    "_",
    "__",
    "~~",
    "`",
    "```",
    "```py\n",
    "\n",
    "\n\n",
    "    ",
    "- ",
    "1. ",
    "> ",
    "# ",
    "| ",
    "|-|-|\n",
]
_MORE = ["[a](b)", "![a](b)", "[", ")", "<b>", "&lt;", "\\", "a", "b c", ".", "!", "é", "🙂", "---\n", "[x]: y"]


@given(st.lists(st.sampled_from(_PIECES + _MORE), max_size=30).map("".join) | st.text(max_size=60))
def test_markup_is_well_formed_and_keeps_the_words(text: str) -> None:
    shown = visible_text(markdown_v2(text))
    assert [*re.findall("[é🙂]", shown)] == [*re.findall("[é🙂]", text)]


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("# One *two* **three**", "*One _two_ three*"),
        ("a_b costs 1.50!", r"a\_b costs 1\.50\!"),
        ("*a*_b_", "_a_**_b_"),
        ("~~no~~ `x\\y`", "~no~ `x\\\\y`"),
        ("[l](https://a.b/(c))", r"[l](https://a.b/(c\))"),
        ("- a\n  - b\n- c", "• a\n   • b\n• c"),
        ("3. x\n4. y", "3\\. x\n4\\. y"),
        ("> a\n>\n> ```\n> b\n> ```", ">a\n>`b`"),
        ("```python\nx = `1`\n```", "```python\nx = \\`1\\`\n```"),
        ("~~~é x\ny\n~~~", "```\né x\ny\n```"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "```\n| a | b |\n|---|---|\n| 1 | 2 |\n```"),
    ],
)
def test_markdown_is_converted(text: str, markup: str) -> None:
    assert markdown_v2(text) == markup
    visible_text(markup)
