"""Of a reply with commands the words before them stream, or the answer; no command does."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.actions.recovery.offer import HERMES
from tests.actions.shell.offer import TOOLS, read
from tests.actions.streams import begins, cut, shown

from denizen.actions import Shell

SHELL = Shell()
WORDS = st.lists(
    st.sampled_from(["I'll look.", " ", "\n", "\n\n", "- ", "`x`", "(a) ", "[1] ", "it's ", "$5 ", "$", "`", "```\n"]),
    max_size=8,
).map("".join)
COMMANDS = st.lists(
    st.sampled_from(
        ["$(view x)", "$(run ls -l)\n", "```\n$(view x)\n```", "$(note a (b))", "Output:\nx", "[1] $ view x\n"]
    ),
    max_size=4,
).map("".join)
PLACES = st.lists(st.integers(0, 120), max_size=30)


def _shown(text: str, places: Sequence[int] | None = None) -> str:
    ends = range(len(text)) if places is None else places
    return shown(SHELL.stream_filter(TOOLS), cut(text, [end for end in ends if end < len(text)]))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello there, you.\n", "Hello there, you.\n"),
        ("I'll look. $(view x) and $(view y)", "I'll look. "),
        ("I'll look.\n```\n$(view x)\n```\nDone.", "I'll look.\n"),
        ("I'll look.\n`$(view x)`\n", "I'll look.\n"),
        ("I'll look.\n```\n# First,\n$(view x)\n```\nDone.", "I'll look.\n"),
        ("A script:\n```sh\n# First,\nls\n```\nand so on.", "A script:\n```sh\n# First,\nls\n```\nand so on."),
        ("Run it:\n```sh\nls $(pwd)\n```\nand see.", "Run it:\n```sh\nls $(pwd)\n```\nand see."),
        ("I'd write `$(view x)` for $5, X=$(date) or so", "I'd write `$(view x)` for $5, X=$(date) or so"),
        ("Well.\n[1] $ view x\nfn main", "Well.\n"),
        (f"I'll look. {HERMES}", "I'll look. "),
        ("<think>$(view x)</think>I'll look.", "I'll look."),
    ],
)
def test_words_are_shown_up_to_the_first_command(text: str, words: str) -> None:
    assert _shown(text) == words
    assert _shown(text, []) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("$(done It is 5 (or 6), `)` aside.)", "It is 5 (or 6), `)` aside."),
        ('\n$( done\nTwo\n\nparagraphs, "(" and more', 'Two\n\nparagraphs, "(" and more'),
        ("$(done Yes.) $(view x)", "Yes."),
        (r"$(done a \( b)", "a "),
        ("$(done 'quoted')", ""),
        ("$(done", ""),
        ("$(domino x)", ""),
    ],
)
def test_an_answer_that_the_reply_begins_with_is_shown_as_it_comes(text: str, words: str) -> None:
    assert _shown(text) == words
    assert _shown(text, []) == words


@given(WORDS, COMMANDS, PLACES)
def test_what_is_shown_is_what_the_reply_says_however_it_is_cut(words: str, commands: str, places: list[int]) -> None:
    text = words + commands
    assert begins(read(text).reply, _shown(text, places))


@given(WORDS, PLACES)
def test_so_it_is_with_an_answer(words: str, places: list[int]) -> None:
    text = f"$(done {words})"
    assert begins(read(text).reply, _shown(text, places))


@pytest.mark.parametrize("unit", ['5" ', "a", " ", "`", '"$(', "x)", "\\"])
@pytest.mark.parametrize("beginning", ["", "$(", "$(done ", '$(done 5" '])
def test_a_huge_answer_is_taken_in_passing(beginning: str, unit: str) -> None:
    """A quadratic reader would need minutes for these."""
    text = beginning + unit * (60_000 // len(unit))
    assert _shown(text) in text
    assert _shown(f"{text}\n", []) in f"{text}\n"
