"""The work is linear in the length of a text, whatever it says; it is counted, not timed."""

import pytest
from tests.actions.recovery.offer import FORMS, HERMES, JSON, TOOLS
from tests.actions.recovery.work import steps

from denizen.actions import recover_calls
from denizen.actions.recovery.scanner import OfferedTools, Scanner, WorkLimitReached

UNITS = {
    "openers": "<tool_call>",
    "openers apart": "<tool_call> \n",
    "brackets": "(",
    "back-ticks": "`",
    "back-ticks of every length": "` `` ``` ",
    "objects in objects": '{"a":',
    "calls in calls": '{"name":',
    "arguments in arguments": '{"name": "bash", "arguments": {"command": "',
    "lists in lists": "[",
    "strings in lists": '["',
    "lists without an end": "<tool_call>[1,\n",
    "strings without an end": '<tool_call>{"name": "bash", "arguments": {"command": "x',
    "loose quotes": "<tool_call>bash(command='a' ",
    "program text": 'bash(command="\n',
    "listed program text": "[bash(command=1), \n",
    "open elements": "<function=bash><parameter=command>",
    "open pairs": "<tool_call>bash<arg_key>command</arg_key><arg_value>",
    "open messages": "<|channel|>commentary to=functions.bash<|message|>{",
    "nested elements": ']<]minimax[>[<invoke name="bash">]<]minimax[>[<a>',
    "thoughts": "<think>",
    "ends of thoughts": "x</think>",
    "fences": "```\n",
    "fences in fences": "````\n```\n",
    "quotes": "> a\n\n",
    "results": "<tool_response></tool_response>",
    "labels": "Output:\n\n",
    "lines": "\n",
    "blanks": " ",
    "escapes": '<tool_call>{"a": "\\\\',
    "tokens": "<|a|>",
    "quoted calls": f"The page says {HERMES}\n",
    "calls": HERMES,
    "objects": f"{JSON}\n",
    "headers": "to=functions.",
    "words": "a ",
}


@pytest.mark.parametrize("unit", UNITS)
def test_twice_the_text_is_at_most_twice_the_work(unit: str) -> None:
    once = 6_000 // len(UNITS[unit])
    one, two, four = (steps(lambda n=n: recover_calls(UNITS[unit] * once * n, TOOLS)) for n in (1, 2, 4))
    assert two <= 2.2 * one + 200
    assert four <= 2.2 * two + 200


@pytest.mark.parametrize("unit", UNITS)
def test_a_huge_text_is_read_to_its_end(unit: str) -> None:
    text = UNITS[unit] * (200_000 // len(UNITS[unit]))
    recovered = recover_calls(text, TOOLS)
    assert {call.name for call in recovered.calls} <= {"bash"}


def _search(scanner: Scanner) -> None:
    """Search for what isn't there, from everywhere."""
    for start in range(1_000):
        scanner.find("a" * (start + 1), start)


def test_whoever_looks_at_characters_pays_for_them_until_nothing_is_left() -> None:
    with pytest.raises(WorkLimitReached):
        _search(Scanner("x" * 1_000, OfferedTools(TOOLS)))


def test_deep_nesting_is_no_call() -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        deep = opening * 50_000 + "1" + closing * 50_000
        text = f'<tool_call>{{"name": "bash", "arguments": {{"command": {deep}}}}}</tool_call>'
        assert recover_calls(text, TOOLS).calls == []


def test_a_call_after_much_that_is_none_is_found() -> None:
    for unit in ("openers", "brackets", "words", "lines", "tokens"):
        assert len(recover_calls(UNITS[unit] * 5_000 + "\n\n" + FORMS["hermes"], TOOLS).calls) == 1
