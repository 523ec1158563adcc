"""The builder's tools: typed calls become commands that the server's parser takes as they are meant."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from denizen.errors import ToolRefused
from denizen.messages import Text, ToolResult
from denizen.ports import Answer, ToolContext, Toolset, Traits
from denizen.testing import FakeClock
from denizen.worlds.moo.tools import NAMES, NUDGES, builder_tools, norm_ref


class Hand:
    """An actor that notes what it is asked for."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.finished: list[str] = []
        self.todo: Sequence[str] = ()

    async def act(self, commands: Sequence[str]) -> ToolResult:
        self.sent += commands
        return ToolResult("", "", [Text("ok")])

    async def finish(self, summary: str) -> ToolResult:
        self.finished.append(summary)
        return ToolResult("", "", [Text("done")], ends_turn=True)

    async def keep_todo(self, items: Sequence[str]) -> ToolResult:
        self.todo = items
        return ToolResult("", "", [Text("kept")])


async def _nobody(question: str) -> Answer:
    return Answer("", allow=False)


CONTEXT = ToolContext("s", "c", Path("/"), FakeClock(), lambda text: None, _nobody)


async def call(hand: Hand, called: str, /, **args: Any) -> ToolResult:
    tool = Toolset(builder_tools(hand)).get(called)
    assert tool
    return await tool.run(args, CONTEXT)


@pytest.mark.parametrize(
    ("name", "args", "commands"),
    [
        ("dig", {"direction": "n", "room_name": "The Library"}, ['@dig north to "The Library"']),
        ("burrow", {"direction": "East", "room_name": "Annex"}, ['@burrow east to "Annex"']),
        ("tunnel", {"direction": "south", "destination": 30}, ["@tunnel south to #30"]),
        ("go", {"direction": "sw"}, ["go southwest"]),
        ("go", {"direction": "Up"}, ["up"]),
        ("go", {"direction": "d"}, ["down"]),
        ("teleport", {"destination": "Site Hut"}, ['teleport "Site Hut"']),
        (
            "describe",
            {"target": "here", "text": 'A "hut".\nCold; dark.'},
            [r'@describe here as "A \"hut\". Cold; dark."'],
        ),
        ("create_object", {"name": "brass lamp"}, ['@create "brass lamp" from "$thing" in here']),
        ("look", {}, ["look"]),
        ("look", {"target": "oak desk"}, ['look "oak desk"']),
        ("alias", {"target": "67", "name": "lamp"}, ['@alias #67 as "lamp"']),
        ("obvious", {"target": "#67"}, ["@obvious #67"]),
        ("move_object", {"target": 67, "destination": "$player_start"}, ["@move #67 to $player_start"]),
        ("place", {"target": "lamp", "preposition": "on", "other": "oak desk"}, ['place lamp on "oak desk"']),
        ("open", {"target": "chest"}, ["open chest"]),
        ("close", {"target": "chest"}, ["close chest"]),
        ("drop", {"target": "lamp"}, ["drop lamp"]),
        ("put", {"target": "lamp", "container": "chest"}, ["put lamp in chest"]),
        ("take", {"target": "lamp"}, ["take lamp"]),
        ("take", {"target": "lamp", "source": "chest"}, ["take lamp from chest"]),
        ("show", {}, ["@show here"]),
        ("survey", {"target": "22"}, ["@survey #22"]),
        ("survey", {}, ["@survey"]),
        ("exits", {}, ["@exits here"]),
        ("rooms", {}, ["@rooms"]),
        ("divine", {"subject": "child", "of": "$thing"}, ["@divine child of $thing"]),
        ("divine", {}, ["@divine location"]),
        (
            "page",
            {"player": "foreman", "message": "two\nlines; then rest"},
            ['page foreman with "two lines; then rest"'],
        ),
        ("send_report", {"body": "All built."}, [r'@send foreman with "Subject: Work Report\n\nAll built."']),
        (
            "post_board",
            {"topic": "huts", "rooms": "#9, #22"},
            ['teleport "The Agency"', 'post on "The Dispatch Board" under huts with "#9, #22"'],
        ),
        ("read_board", {"topic": "huts"}, ['teleport "The Agency"', 'read "The Dispatch Board" under huts']),
        (
            "write_book",
            {"topic": "huts", "room": "9", "entry": "cold"},
            ['teleport "The Agency"', 'write in "The Survey Book" under huts with "#9: cold"'],
        ),
        (
            "read_book",
            {"topic": "huts", "room": 9},
            ['teleport "The Agency"', 'read "The Survey Book" under huts from #9'],
        ),
        (
            "clear_topic",
            {"topic": "huts"},
            [
                'teleport "The Agency"',
                'erase "The Dispatch Board" under huts',
                'erase "The Survey Book" under huts',
            ],
        ),
        ("raw", {"command": "look\n say hi; there \n"}, ["look", "say hi; there"]),
    ],
)
async def test_a_call_becomes_its_commands(name: str, args: dict[str, Any], commands: list[str]) -> None:
    hand = Hand()
    await call(hand, name, **args)
    assert hand.sent == commands


async def test_a_verb_is_written_with_its_shebang() -> None:
    hand = Hand()
    await call(hand, "write_verb", verb="polish", on="67", source='print("It shines.")')
    shebang = "#!moo verb polish --on #67 --dspec none"
    assert hand.sent == [rf'@edit verb polish on #67 with "{shebang}\nprint(\"It shines.\")"']
    hand.sent.clear()
    await call(hand, "write_verb", verb="polish", on="67", source=f"{shebang}\npass")
    assert hand.sent == [rf'@edit verb polish on #67 with "{shebang}\npass"']


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("22", "#22"),
        ("#22", "#22"),
        ("here", "here"),
        ("$player_start", "$player_start"),
        ('"mahogany desk"', '"mahogany desk"'),
        ("mahogany desk", '"mahogany desk"'),
        ("0", "0"),
        ("desk; say hi", '"desk; say hi"'),
    ],
)
def test_a_reference_is_made_what_the_parser_takes(written: str, meant: str) -> None:
    assert norm_ref(written) == meant


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("go", {"direction": "sideways"}),
        ("look", {"target": "examine #12"}),
        ("raw", {"command": " \n"}),
        ("obvious", {"target": " "}),
    ],
)
async def test_what_makes_no_command_is_refused(name: str, args: dict[str, str]) -> None:
    hand = Hand()
    with pytest.raises(ToolRefused):
        await call(hand, name, **args)
    assert not hand.sent


async def test_done_and_todo_go_to_the_actor() -> None:
    hand = Hand()
    await call(hand, "done", summary="two rooms")
    await call(hand, "todo", items=["lamp", "desk"])
    assert (hand.finished, hand.todo, hand.sent) == (["two rooms"], ["lamp", "desk"], [])


async def test_to_talk_without_acting_is_answered_more_and_more_urgently() -> None:
    tools = Toolset(builder_tools(Hand()))
    respond, look = tools.get("respond"), tools.get("look")
    assert respond
    assert look
    for nudge in (*NUDGES, NUDGES[-1]):
        assert (await respond.run({"text": "Hm."}, CONTEXT)).text == nudge
    await look.run({}, CONTEXT)
    assert (await respond.run({"text": "Hm."}, CONTEXT)).text == NUDGES[0]


def test_a_whitelist_leaves_what_every_agent_has() -> None:
    assert {each.name for each in builder_tools(Hand(), ["dig"])} == {"dig", "raw", "respond", "done", "todo"}
    assert {each.name for each in builder_tools(Hand())} == {*NAMES}


def test_what_a_world_answers_is_others_text_and_its_commands_run_one_by_one() -> None:
    [look] = [each for each in builder_tools(Hand()) if each.name == "look"]
    assert look.traits == Traits.UNTRUSTED
