"""Special tokens are taken out of a text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.text.special_tokens import scrub


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Hello.<|im_end|>", "Hello."),
        ("<|tool_call>x<tool_call|>", "x"),
        ("a<|endoftext|>b", "ab"),
        ("<｜end▁of▁sentence｜>", ""),
        ('<|"|>a<|"|>', "a"),
        ("<|a<|b|>|>", ""),
        ("<|start_header_id|>assistant<|end_header_id|>", "assistant"),
        ("a < b | c > d", "a < b | c > d"),
        ("x <| f |> y", "x <| f |> y"),
        ("<|", "<|"),
        ("<p>|</p>", "<p>|</p>"),
        ("", ""),
    ],
)
def test_only_special_tokens_go(text: str, left: str) -> None:
    assert scrub(text) == left


@given(st.text(alphabet="<|>｜a_ "))
def test_none_is_left_however_they_are_nested(text: str) -> None:
    left = scrub(text)
    assert not re.search(r"<\|\w+\|?>|<\w+\|>", left)
    assert scrub(left) == left
