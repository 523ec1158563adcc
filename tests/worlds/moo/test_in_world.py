"""A builder in a real DjangoMOO world."""

from pathlib import Path

import msgspec
import pytest
from tests.worlds.moo.djangomoo import DjangoMoo
from tests.worlds.moo.in_world import PATIENCE, player, reply, until

from denizen.ports import Sent
from denizen.sessions.request_socket import SessionRequest
from denizen.worlds.moo.channel import MooChannel
from denizen.worlds.moo.tools import ALWAYS_OFFERED, NAMES

pytestmark = pytest.mark.needs("redis-server")

WAYS = ("north", "east") * 5
MANY = 5 * PATIENCE
"""Seconds for dozens of commands."""


CALLS: tuple[tuple[str, dict[str, str], str], ...] = (
    ("create_object", {"name": "Workshop", "parent": "$room"}, "(Workshop) in"),
    ("teleport", {"destination": "Workshop"}, "You move to Workshop"),
    ("dig", {"direction": "n", "room_name": "Shed"}, 'Dug an exit north to "Shed"'),
    ("burrow", {"direction": "up", "room_name": "Attic"}, "You are now in Attic"),
    ("go", {"direction": "down"}, "(Workshop)."),
    ("go", {"direction": "up"}, "(Attic)."),
    ("go", {"direction": "d"}, "(Workshop)."),
    ("go", {"direction": "north"}, "(Shed)."),
    ("tunnel", {"direction": "south", "destination": "Workshop"}, 'Tunnelled an exit south to "Workshop"'),
    ("go", {"direction": "s"}, "(Workshop)."),
    ("describe", {"target": "here", "text": "From floor to roof; dry."}, "Description set for"),
    ("create_object", {"name": "iron lamp"}, "(iron lamp) in"),
    ("create_object", {"name": "tin cup"}, "(tin cup) in"),
    ("create_object", {"name": "workbench"}, "(workbench) in"),
    ("create_object", {"name": "tool chest", "parent": "$container"}, "(tool chest) in"),
    ("alias", {"target": "iron lamp", "name": "lantern"}, "Added alias 'lantern'"),
    ("obvious", {"target": "lantern"}, "iron lamp is now obvious."),
    ("look", {}, "From floor to roof; dry."),
    ("look", {"target": "lantern"}, "Not much to see here."),
    ("write_verb", {"verb": "polish", "on": "lantern", "source": 'print("It shines.")'}, "Created verb polish"),
    ("take", {"target": "tin cup"}, "You take tin cup."),
    ("drop", {"target": "tin cup"}, "You drop tin cup."),
    ("take", {"target": "tin cup"}, "You take tin cup."),
    ("open", {"target": "tool chest"}, "You open the container."),
    ("put", {"target": "tin cup", "container": "tool chest"}, "You placed tin cup in tool chest."),
    ("take", {"target": "tin cup", "source": "tool chest"}, "You took tin cup from tool chest."),
    ("close", {"target": "tool chest"}, "You close the container."),
    (
        "place",
        {"target": "lantern", "preposition": "on", "other": "workbench"},
        "You place iron lamp on the workbench.",
    ),
    ("move_object", {"target": "workbench", "destination": "Shed"}, "Moved"),
    ("show", {}, "Details for"),
    ("survey", {}, "State:"),
    ("exits", {}, "Exits defined for this room:"),
    ("rooms", {}, "Rooms in the world:"),
    ("divine", {}, "Impressions surface"),
    ("divine", {"subject": "child", "of": "$room"}, "Shapes coalesce"),
    ("page", {"player": "tinker", "message": "All done; rest."}, "Your message has been sent."),
    ("send_report", {"body": "All built."}, "Message sent to Foreman."),
    ("post_board", {"topic": "sheds", "rooms": "#9, #22"}, "Posted to topic 'sheds'."),
    ("read_board", {"topic": "sheds"}, "#9, #22"),
    ("write_book", {"topic": "sheds", "room": "9", "entry": "cold"}, "Entry written for #9"),
    ("read_book", {"topic": "sheds"}, "[Tinker] cold"),
    ("read_book", {"topic": "sheds", "room": "9"}, "[Tinker] cold"),
    ("raw", {"command": "inventory"}, "You are carrying:"),
)
"""A call of each tool, and what the server answers."""


async def test_a_builder_digs_describes_and_furnishes_ten_rooms_and_finds_them_there(
    moo_server: DjangoMoo, tmp_path: Path
) -> None:
    script = [reply(("raw", {"command": '@create "Yard" from "$room" in here'}), ("teleport", {"destination": "Yard"}))]
    for number, way in enumerate(WAYS):
        room = f"Chamber {number}"
        script.append(
            reply(
                ("burrow", {"direction": way, "room_name": room}),
                (
                    "describe",
                    {"target": "here", "text": f"Chamber [{number}], with a door; it is dry, from top to bottom."},
                ),
                ("create_object", {"name": f"lamp {number}"}),
                ("obvious", {"target": f"lamp {number}"}),
            )
        )
    async with player(moo_server, tmp_path, "mason", script, tool_calls_per_cycle=100) as mason:
        watcher, connection = mason.watcher, mason.connection
        mason.brain.instruct("Build ten rooms.")
        await until(
            lambda: "[system] done" in watcher.told("system") or len(watcher.told("action")) == 2 + 4 * len(WAYS),
            MANY,
        )
        await until(lambda: any("[Cycle]" in told for told in watcher.told("system")))
        assert watcher.told("server_error") == []
        listed = (await connection.request("@rooms")).lines
        for number in range(len(WAYS)):
            assert any(line.endswith(f" Chamber {number}") for line in listed)
            await connection.request(f'teleport "Chamber {number}"')
            seen = " ".join((await connection.request("look")).lines)
            assert f"Chamber [{number}], with a door; it is dry, from top to bottom." in seen
            assert f"lamp {number}" in seen


async def test_the_server_does_what_each_tool_is_for(moo_server: DjangoMoo, tmp_path: Path) -> None:
    script = [reply(*((name, args) for name, args, _ in CALLS))]
    settings = {"tool_calls_per_cycle": 100, "command_rate_per_second": 100}
    async with player(moo_server, tmp_path, "tinker", script, **settings) as tinker:
        watcher = tinker.watcher
        tinker.brain.instruct("Try everything.")
        await until(lambda: any("[Cycle]" in told for told in watcher.told("system")), MANY)
        assert watcher.told("server_error") == []
        told = iter(watcher.told("server"))
        for name, _, answer in CALLS:
            assert any(answer in line for line in told), (name, answer, watcher.heard)
    assert {name for name, _, _ in CALLS} | {"clear_topic", *ALWAYS_OFFERED} == {
        *NAMES
    }  # only the owner clears a topic


async def test_a_page_of_the_channel_arrives_whole_once_its_player_is_there(
    moo_server: DjangoMoo, tmp_path: Path
) -> None:
    def page(text: str, player: str = "Harbinger") -> SessionRequest:
        return SessionRequest(text[:9], text, page=player)

    longest = ("brick; wall, roof. " * MooChannel.limits.length)[: MooChannel.limits.length - 1] + "!"
    async with player(moo_server, tmp_path, "mason") as mason:

        async def outcome(request: SessionRequest) -> Sent:
            return msgspec.json.decode(await mason.brain.answer(request), type=Sent)

        await until(lambda: mason.watcher.statuses)
        assert (await outcome(page("Hello.", "Nobody"))).state == "failed"
        away = await outcome(page(longest))
        assert (away.state, away.reason) == ("later", "Harbinger is not currently logged in.")
        async with player(moo_server, tmp_path, "harbinger") as harbinger:
            assert [await outcome(page(longest)) for _ in range(2)] == [Sent(), Sent()]
            await harbinger.hears(longest)
            assert len(harbinger.heard(longest)) == 1
