"""`keep`, `note` and `notes`: what a model does to its working memory."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from denizen.entries import AnyEntry, AssistantEntry, EndEntry, NoteEntry, ToolEntry, UserEntry
from denizen.errors import ToolRefused
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult, UserMessage
from denizen.ports import ToolContext, Traits
from denizen.worlds.code.tools.working_notes import keep, note, notes


def reply(*names: str) -> AssistantEntry:
    calls = [ToolCall(f"c{n}", name, {}) for n, name in enumerate(names, 1)]
    return AssistantEntry(message=AssistantMessage([*calls], stop_reason="tool_calls"))


def gave(number: int, name: str = "read", details: Any = None) -> ToolEntry:
    return ToolEntry(message=ToolResult(f"c{number}", name, [Text("x")], details=details))


SHOWN: Sequence[AnyEntry] = (
    UserEntry(message=UserMessage([Text("task")])),
    *(reply("read", "read"), gave(2), gave(1)),
    reply("keep"),
)


async def kept(turn: ToolContext, entries: Sequence[AnyEntry], **args: Any) -> ToolResult:
    return await keep.run(args, replace(turn, entries=entries))


@pytest.mark.parametrize(
    ("outputs", "numbers"),
    [([2], [2]), ([2, 1], [2, 1]), ([1, 1], [1]), (2, [2]), ("2", [2]), ("all", [1, 2]), ([], [1, 2]), (None, [1, 2])],
)
async def test_keep_says_which_outputs_it_means(turn: ToolContext, outputs: Any, numbers: list[int]) -> None:
    assert (await kept(turn, SHOWN, outputs=outputs)).details == {"keep": numbers}


async def test_keep_means_all_where_nothing_is_said(turn: ToolContext) -> None:
    answer = await kept(turn, SHOWN)
    assert (answer.text, answer.details) == ("Kept [1], [2].", {"keep": [1, 2]})


@pytest.mark.parametrize("wrong", [[0], [3], [-1], [1, 7], 9])
async def test_keep_refuses_a_number_that_was_not_shown_and_says_what_was(turn: ToolContext, wrong: Any) -> None:
    with pytest.raises(ToolRefused, match=r"there is no output \[-?\d\]: \[1\] to \[2\] were shown"):
        await kept(turn, SHOWN, outputs=wrong)


async def test_keep_refuses_before_anything_was_shown(turn: ToolContext) -> None:
    with pytest.raises(ToolRefused, match="no outputs were shown before this reply"):
        await kept(turn, [SHOWN[0], reply("read", "keep"), gave(1)])


async def test_the_outputs_of_an_earlier_turn_are_not_shown_any_more(turn: ToolContext) -> None:
    with pytest.raises(ToolRefused):
        await kept(turn, [*SHOWN[:-1], EndEntry(stop_reason="cancelled"), SHOWN[0], reply("keep")])


async def test_outputs_of_the_same_reply_do_not_count(turn: ToolContext) -> None:
    assert (await kept(turn, [*SHOWN, gave(5), gave(6), gave(7)])).details == {"keep": [1, 2]}


async def test_what_the_user_said_meanwhile_changes_nothing(turn: ToolContext) -> None:
    entries = [*SHOWN[:-1], SHOWN[0], SHOWN[-1]]
    assert (await kept(turn, entries, outputs=[1])).details == {"keep": [1]}


async def test_a_note_is_kept_as_it_is(turn: ToolContext) -> None:
    answer = await note.run({"text": " it's $(fine) "}, turn)
    assert (answer.text, answer.details) == ("Noted.", {"note": "it's $(fine)"})


async def test_an_empty_note_is_refused(turn: ToolContext) -> None:
    with pytest.raises(ToolRefused, match="empty"):
        await note.run({"text": " \n"}, turn)


async def test_notes_lists_what_the_model_and_hosts_noted(turn: ToolContext) -> None:
    noted = gave(1, "note", {"note": "uses clap"})
    entries = [NoteEntry(text="be brief"), reply("note"), noted, noted, EndEntry(stop_reason="answered")]
    assert (await notes.run({}, replace(turn, entries=entries))).text == "- be brief\n- uses clap"


async def test_notes_says_when_there_are_none(turn: ToolContext) -> None:
    assert (await notes.run({}, turn)).text == "Nothing was noted yet."


@pytest.mark.parametrize("tool", [keep, note, notes], ids=lambda tool: tool.name)
def test_they_change_nothing_outside_the_transcript(tool: Any) -> None:
    assert tool.traits == Traits.REPEATABLE


async def test_keep_says_which_commands_output_it_kept(turn: ToolContext) -> None:
    lent = replace(turn, commands=lambda reply: {call.id: f"{call.name} a.txt" for call in reply.tool_calls})
    assert (await kept(lent, SHOWN, outputs=[2])).text == "Kept [2] $ read a.txt."
