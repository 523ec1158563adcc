"""Text in a command arrives as it was written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from denizen.worlds.moo.quoting import quoted, unescaped


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("All done. Then, rest; say x", '"All done. Then, rest; say x"'),
        ('she said "hi"', r'"she said \"hi\""'),
        ("don't", '"don\'t"'),
        ("two\nlines\x1b[0m", '"two lines [0m"'),
        ("[red]and[/nope]", r'"\[red]and\[/nope]"'),
        ("rooms [1] and [#9]", r'"rooms [1] and \[#9]"'),
        ("ends in \\", '"ends in \\ "'),
        ("x", "x"),
        (";", '"; "'),
        ("", '" "'),
    ],
)
def test_text_is_quoted_for_the_server(text: str, sent: str) -> None:
    assert quoted(text) == sent


def _as_parsed(argument: str) -> str:
    """The text of a quoted argument, as DjangoMOO's parser takes it."""
    if argument.isalnum():
        return argument
    inside = argument[1:-1]
    assert argument[0] == argument[-1] == '"'
    assert not inside.endswith("\\")
    assert all(inside[at - 1] == "\\" for at, char in enumerate(inside) if char == '"')
    return inside.replace("\\'", "'").replace('\\"', '"')


@given(st.text(alphabet="ab \"'\\[]/#@;.1", max_size=20) | st.text(max_size=20).filter(str.isprintable))
def test_nothing_ends_the_quotation_and_no_markup_is_left(text: str) -> None:
    said = _as_parsed(quoted(text))
    assert unescaped(said).strip() == text.strip()
    assert Text.from_markup(f"{said} []/x]", emoji=False)
