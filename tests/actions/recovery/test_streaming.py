"""Words stream as they come, up to what opens a call."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.actions.recovery.offer import FORMS, HERMES, JSON, QWEN, SHOWN, TOOLS
from tests.actions.recovery.rows import ROWS, Row, tools_of
from tests.actions.recovery.work import steps
from tests.actions.streams import begins, cut, shown

from denizen.actions import Native, recover_calls
from denizen.actions.recovery import may_hold_calls
from denizen.actions.recovery.forms import OPENERS
from denizen.actions.recovery.marks import OPENS, THOUGHTS
from denizen.actions.recovery.scanner import Tools
from denizen.actions.recovery.streaming import HoldCalls, Openings
from denizen.ports import Toolset

OFFERED = Openings([tool["name"] for tool in TOOLS])
LEADS = {"alone": "", "after words": "I'll look.\n", "after a thought": "<think>Hm, `a`.</think>\n\nI'll look.\n"}
END_OF_A_THOUGHT = ("</think>", "</thinking>", "<|END_THINKING|>")
PLACES = st.lists(st.integers(0, 400), max_size=40)
ONE_LINE = st.characters(min_codepoint=0x20, max_codepoint=0x7E) | st.sampled_from("▁｜")
REPLIES = [row for row in ROWS if row["tools"]]


def _openings(tools: list[dict[str, Any]]) -> Openings:
    return Openings([tool["name"] for tool in tools])


def _shown(text: str, places: Sequence[int] | None = None, openings: Openings = OFFERED) -> str:
    ends = range(len(text)) if places is None else places
    return shown(HoldCalls(openings), cut(text, [end for end in ends if end < len(text)]))


def _reply(text: str, tools: Tools) -> str:
    names = [tool["name"] if isinstance(tool, dict) else "" for tool in tools]
    return recover_calls(text, tools).text if may_hold_calls(text, names) else text


def _taken_back(text: str) -> bool:
    """A thought whose beginning stood in the prompt shows at its end only, and JSON in a sentence opens nothing."""
    return any(mark in text for mark in END_OF_A_THOUGHT) or text.startswith("Here is the result: {")


@pytest.mark.parametrize("row", REPLIES, ids=lambda row: row["id"])
def test_what_is_shown_of_a_real_reply_is_its_words_however_it_is_cut(row: Row) -> None:
    tools = tools_of(row)
    openings = _openings(tools)
    for text in {row["raw"], (row.get("prefix") or "") + row["raw"]}:
        for places in (None, [], range(0, len(text), 3), range(0, len(text), 7)):
            words = _shown(text, places, openings)
            assert begins(_reply(text, tools), words) or _taken_back(text), words


@given(st.sampled_from([row for row in REPLIES if not _taken_back(row["raw"])]), PLACES)
def test_that_holds_for_any_cut(row: Row, places: list[int]) -> None:
    tools = tools_of(row)
    assert begins(_reply(row["raw"], tools), _shown(row["raw"], places, _openings(tools)))


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("form", FORMS)
def test_no_piece_of_a_call_is_shown_in_whatever_form(form: str, lead: str) -> None:
    if (form in SHOWN and lead != "alone") or form == "as the provider's":  # its name is found too late
        return
    text = LEADS[lead] + FORMS[form]
    for places in (None, [], range(0, len(text), 2), range(0, len(text), 5)):
        assert _shown(text, places).strip() in {"", "I'll look."}


@pytest.mark.parametrize("marks", [OPENS, OPENERS], ids=["marks around calls", "beginnings of forms"])
@pytest.mark.parametrize("lead", ["", "I'll look.\n"])
@given(data=st.data())
def test_no_mark_that_the_recovery_of_calls_knows_is_shown(marks: str, lead: str, data: st.DataObject) -> None:
    call = data.draw(st.from_regex(rf"\A(?:{marks})", alphabet=ONE_LINE))
    assert _shown(lead + call) == lead


@pytest.mark.parametrize("mark", THOUGHTS)
def test_no_mark_of_a_thought_is_shown(mark: str) -> None:
    assert _shown(f"{mark}So it goes.{THOUGHTS[mark]}Well.") in {"Well.", ""}


def test_the_words_before_a_call_come_at_once() -> None:
    assert _shown(f"I'll look. {HERMES}").rstrip() == "I'll look."
    assert _shown(f"I'll look. {QWEN}").rstrip() == "I'll look."


ORDINARY = [
    "Hello! How are you?\n\n- one (or two)\n- [a link](https://example.org) and **bold**\n\n1. First: `code`, a < b.\n",
    "Use it so:\n\n```python\nprint({'a': [1]})\n# bash(command='ls')\n```\n\nand `<tool_call>` is a mark.\n",
    '# Read\n\nreads a file; bash is a shell.\ncalled: no.\n> a quotation\n\nA note: [1], {x}, [x] and "y" == `z`.\n',
    "<div>\n  <p>text</p>\n</div>\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    'The data are {"a": [1, 2], "b": {"c": null}} and {\'d\': \'e\'}, no more than that: 27 characters follow here.\n',
]


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_answer_is_shown_as_it_comes(text: str) -> None:
    assert _shown(text) == text
    assert _shown(text, []) == text
    spoken, held = HoldCalls(OFFERED), 0
    for piece in re.findall(r"\s?\S+|\s", text):
        held += len(piece) - len(spoken.feed(piece))
        assert held < 60, piece


def test_a_piece_in_which_nothing_begins_is_passed_as_it_is() -> None:
    spoken = HoldCalls(OFFERED)
    spoken.feed("Well,")
    piece = " as it is"
    assert spoken.feed(piece) is piece


def test_code_that_holds_a_call_is_shown_as_it_comes() -> None:
    text = f"It is written so:\n\n```html\n{HERMES}\n```\n\nor `{HERMES}` or so.\n"
    assert _shown(text) == text


def test_a_fence_that_holds_data_is_shown_after_its_first_line() -> None:
    text = 'So:\n```json\n[{"a": 1}]\n```\nThat is all that there is to say about it.\n'
    assert _shown(text) == text
    assert _shown('```json\n{"a": 1').strip() == ""
    assert _shown('```json\n{"a": 1,\n').strip() == '```json\n{"a": 1,'


def test_a_fence_whose_first_line_names_a_tool_waits_for_the_end() -> None:
    for fence in (
        '```json\n{"name": "bash"',
        '```\n[\n  {\n    "name": "bash",\n',
        "```\n# Look:\nbash(command='ls')\n",
    ):
        assert _shown(f"Look:\n{fence}") == "Look:\n"
    assert _shown("Look:\n```python\nbash(command='ls')\n") == "Look:\n```python\nbash(command='ls')\n"
    assert _shown("Look:\n```\nbash is a shell\n") == "Look:\n```\nbash is a shell\n"


def test_a_fence_that_says_that_it_is_a_call_is_not_shown() -> None:
    for fence in (f"Action:\n```json\n{JSON}\n```", f"Action: ```json\n{JSON}\n```", f"```tool_call\n{JSON}\n```"):
        assert _shown(f"Plan: look.\n{fence}") == "Plan: look.\n"


def test_an_example_is_held_back_to_the_end() -> None:
    assert _shown(f"For example: {HERMES} is a call.").rstrip() == "For example:"


def test_a_thought_at_the_beginning_is_not_shown_and_the_answer_after_it_is() -> None:
    assert _shown(f"<think>A call: {JSON}\n\n</think>\n\nHere it is.") == "Here it is."
    assert _shown("<think>So it goes on") == ""


def test_special_tokens_are_never_shown() -> None:
    for text in (
        "Hello.<|im_end|>",
        "```\ncode<|im_end|>\n```\n",
        "```\n<<|im_end|>x\n```\n",
        "`a<|b|>` c",
        '{"a": "<|b|>"} and more, and more',
    ):
        assert "|" not in _shown(text)


def test_without_tools_all_are_words() -> None:
    assert Native().stream_filter(Toolset()) is None


HOSTILE = [
    '{"a":',
    "[",
    "{",
    "[{",
    "{'",
    "`<",
    "`a ",
    "```\n",
    "```json\n[1]\n",
    "<",
    "a(b ",
    "- ",
    "`",
    '["',
    "<think>",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_what_looks_like_a_call_without_an_end_costs_no_more_the_longer_it_gets(unit: str) -> None:
    spoken = HoldCalls(OFFERED)

    def go_on() -> None:
        for character in unit * 300:
            spoken.feed(character)

    first, second = steps(go_on, characters=True), steps(go_on, characters=True)
    assert second <= 1.5 * first + 200


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_huge_reply_that_looks_like_a_call_is_taken_in(unit: str) -> None:
    text = unit * (20_000 // len(unit))
    assert text.startswith(_shown(text, range(0, len(text), 1_000)).lstrip("\n"))
    assert text.startswith(_shown(text, []).lstrip("\n"))
