"""Any text can be read."""

import re

from hypothesis import example, given
from hypothesis import strategies as st
from tests.actions.recovery.offer import FORMS, HERMES, TOOLS

from denizen.actions import recover_calls
from denizen.actions.recovery import may_hold_calls

NAMES = {tool["name"] for tool in TOOLS}
PIECES = sorted({piece for form in FORMS.values() for piece in re.findall(r"<[^<>]*>|\[\w+\]|\w+|\W", form)})
TEXTS = st.text() | st.lists(st.sampled_from([*PIECES, *FORMS.values(), "\n\n", "> ", "```\n"]), max_size=40).map(
    "".join
)


@given(TEXTS)
@example("<|tool_call>:")
@example("\ud800")
@example("<function=bash><parameter=command><![CDATA[")
def test_nothing_is_raised_and_only_offered_tools_are_called(text: str) -> None:
    got = recover_calls(text, TOOLS)
    assert {call.name for call in got.calls} <= NAMES
    assert all(type(name) is str for call in got.calls for name in call.args)
    assert len({call.id for call in got.calls}) == len(got.calls)
    assert not re.search(r"<\|\w+\|?>|<\w+\|>", got.text)
    assert got == recover_calls(text, TOOLS)


@given(TEXTS)
@example("tool_call:bash(command='ls'")
def test_where_a_quick_look_finds_nothing_there_is_nothing(text: str) -> None:
    got = recover_calls(text, TOOLS)
    assert may_hold_calls(text, NAMES) or (got.calls == [] and got.thinking == "" and got.text in text)


@given(st.text())
def test_what_is_not_a_call_stays(text: str) -> None:
    words = re.sub(r"[^\w .,]", "", text).strip()
    assert recover_calls(f"{words}\n\n{HERMES}", []).text.startswith(words)


@given(TEXTS)
def test_nothing_in_a_code_span_or_a_quotation_is_run(text: str) -> None:
    inner = re.sub(r"[`\n]", "", text)
    assert recover_calls(f"A span: `` {inner} `` and no more.", TOOLS).calls == []
    assert recover_calls(f"> {inner}", TOOLS).calls == []
    assert recover_calls(f"Result of read:\n{text}", TOOLS).calls == []
