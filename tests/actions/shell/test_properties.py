"""Any text at all: nothing breaks, and nothing is run that a person wouldn't see there."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.actions.shell.offer import TOOLS, read

from denizen.actions import Shell
from denizen.actions.shell.reply import read_reply
from denizen.messages import AssistantMessage, Text, ToolCall
from denizen.ports import MISUSED, Intent

PIECES = [
    "$(", ")", "(", "view", "run", "note", "done", "ask", " ", "\n", "'", '"', "`", "```", "~~~", "\\", "$", "<<",
    "<<<", "END", "--", "--depth", "=", ">", "- ", "[1] $ ", "Output:", "<think>", "</think>", "a", "it's", "$'", "\t",
    ";", "é", "$(view x)", "$(run ls)", "$(note a b)", "$(done yes)", "<<END\nx\nEND\n", "```\n$(view x)\n```\n",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=30).map("".join)
WORDS = st.text(st.characters(), max_size=12) | TEXTS


@given(TEXTS)
@example("$(view $'a\\')")
def test_a_command_is_in_the_text_as_it_is_read(text: str) -> None:
    reply = read_reply(text)
    end = 0
    for command in reply.commands:
        assert end <= command.start < command.end <= len(text)
        assert re.match(rf"\$\(\s*{command.name}(?=[\s)])", text[command.start :])
        assert text[command.end - 1] == ")" or command.name == "done"
        end = command.end


@given(TEXTS)
def test_no_command_is_in_a_quotation(text: str) -> None:
    for command in read_reply(text).commands:
        line = text[text.rfind("\n", 0, command.start) + 1 : command.start]
        assert not line.lstrip().startswith(">")
        assert line[-1:] not in {"\\", '"', "'", "=", "$", "@"}


@given(TEXTS)
def test_what_is_in_a_fence_of_other_text_is_not_run(text: str) -> None:
    inside = text.replace("```", "")
    assert read_reply(f"````\nsome text\n{inside}\n````\n").commands == []


@given(TEXTS)
def test_what_is_in_code_amid_words_is_not_run(text: str) -> None:
    inside = text.replace("`", "").replace("\n", "")
    assert read_reply(f"Use ``a{inside}`` there").commands == []


@given(TEXTS)
def test_reading_is_pure_and_its_ids_differ(text: str) -> None:
    found = read(text)
    assert found == read(text)
    assert len({call.id for call in found.calls}) == len(found.calls)
    assert (
        found.kept_text is None
        or found.kept_text == "(Outputs that were made up, cut off.)"
        or text.startswith(found.kept_text)
    )


@given(TEXTS)
def test_a_command_that_is_shown_reads_as_the_same_call(text: str) -> None:
    for call in read(text).calls:
        if MISUSED not in call.args and call.name in TOOLS:
            _same_when_shown(call.name, call.args)


@given(st.data())
def test_any_arguments_can_be_written_as_a_command(data: st.DataObject) -> None:
    kinds = {
        "view": {"path": WORDS, "types_only": st.booleans(), "depth": st.integers(), "lines": WORDS},
        "grep": {"pattern": WORDS, "path": WORDS, "mode": st.sampled_from(["lines", "files"])},
        "write": {"path": WORDS, "content": WORDS},
        "bash": {"command": WORDS, "timeout": st.floats(0, 1e6)},
        "remember": {"text": WORDS.filter(str.strip), "weight": st.floats(0, 1)},
        "tag": {"names": st.lists(WORDS), "marks": st.dictionaries(st.text(max_size=3), st.integers(0, 9))},
    }
    name = data.draw(st.sampled_from([*kinds]))
    given_: dict[str, object] = {key: data.draw(values) for key, values in kinds[name].items()}
    _same_when_shown(name, given_)


def _same_when_shown(name: str, args: dict[str, object]) -> None:
    shown = Shell().show(ToolCall("1", name, args), TOOLS)
    assert "\n" not in shown
    [call] = _read_only(f"$({shown})").calls
    assert (call.name, call.args) == (name, args)


def _read_only(text: str) -> Intent:
    return Shell().read(AssistantMessage([Text(text)]), TOOLS)


HOSTILE = [
    "$(", "(", '"', "'", "`", "$(view x ", "$(note ", "$(view) ", "$(view (\n", "```\n$(view (\n```\n",
    "```\n$(view)\nx\n```\n", "`a ", "`$(view (`\n", "$(write x <<E\n", "$(note 'x) ", '$(note "x) ', "$(view don't) ",
    "a'", "> $(view)\n", "- ", "```\n", "[1] $ x\n", "\\", "--a", "$(done x) ) ", '$(note a "$( ', "<think>", " ", "\n",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("before", ["", "$(view)\n$(view "], ids=["alone", "in a command"])
def test_hostile_text_is_read_in_passing(before: str, piece: str) -> None:
    """A quadratic reader would need hours for these."""
    text = before + piece * (100_000 // len(piece))
    assert all(command.name in {"view", "note", "done", "write"} for command in read_reply(text).commands)
