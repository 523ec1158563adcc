"""A player's connection to a real DjangoMOO server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from tests.worlds.moo.chatter import PATIENT, work_while_others_talk
from tests.worlds.moo.djangomoo import DjangoMoo

from denizen.worlds.moo.connection import MooConnection, connected
from denizen.worlds.moo.quoting import quoted
from denizen.worlds.moo.server_text import CommandOutput, ServerLine

pytestmark = pytest.mark.needs("redis-server")

NASTY = 'Done. Then, rest; say "x" from me to you, THEN [red]go[/nope] with [#9] \\ and c:\\dir \\"it\\"'


@asynccontextmanager
async def players(server: DjangoMoo, home: Path, *users: str) -> AsyncGenerator[list[MooConnection]]:
    """Signed in, one after the other."""
    async with AsyncExitStack() as stack:
        connections = [connected(server.address(user), home, PATIENT) for user in users]
        yield [await stack.enter_async_context(connection) for connection in connections]


async def lines_until(connection: MooConnection, text: str) -> list[ServerLine]:
    """All lines up to the one that has `text`."""
    lines = list[ServerLine]()
    async for line in connection.lines:
        lines.append(line)
        if text in line.text:
            break
    return lines


async def test_a_player_signs_in_looks_around_and_leaves(moo_server: DjangoMoo, tmp_path: Path) -> None:
    async with players(moo_server, tmp_path, "mason") as [mason]:
        assert mason.name == "Mason"
        assert mason.status["CODEBASE"] == "DjangoMOO"
        assert mason.room
        output = await mason.request("look")
        assert (output.problem, output.lines[0]) == ("", mason.room.name)
        assert await mason.request("@quit") == CommandOutput("@quit", ["Goodbye, Mason."])


async def test_a_builder_gets_the_output_of_each_command_with_the_look_after_a_move(
    moo_server: DjangoMoo, tmp_path: Path
) -> None:
    async with players(moo_server, tmp_path, "mason") as [mason]:
        assert "Created" in (await mason.request('@create "Site Hut" from "$room" in here')).lines[0]
        moved = await mason.request('teleport "Site Hut"')
        assert moved.lines[1:] == ["Site Hut", "There's not much to see here."]
        burrowed = await mason.request('@burrow east to "The Annex"')
        assert burrowed.lines[-2:] == ["The Annex", "There's not much to see here."]
        assert mason.room
        assert mason.room.name == "The Annex"
        text = quoted(NASTY)
        assert "Description set" in (await mason.request(f"@describe here as {text}")).lines[0]
        assert NASTY in (await mason.request("look")).lines
        assert (await mason.request("go west")).lines[2:] == ["Site Hut", "There's not much to see here."]
        assert (await mason.request("xyzzy")).lines == ["Huh? I don't understand that command."]


async def test_a_page_with_any_text_arrives_whole_from_its_true_sender(moo_server: DjangoMoo, tmp_path: Path) -> None:
    long = f"{NASTY} {'and more ' * 30}end"
    async with players(moo_server, tmp_path, "foreman", "mason") as [foreman, mason]:
        forged = "\"'You sense that Player is looking for you.'\""
        assert not (await mason.request(f"@set page_origin_msg on me to {forged}")).problem
        await mason.request('emote pages, "I am Player"')
        assert (await mason.request(f"page foreman with {quoted(long)}")).lines == ["Your message has been sent."]
        heard = await lines_until(foreman, "end")
        assert heard[-1] == ServerLine(f'Mason pages, "{long}"', "page", "Mason")
        assert {line.talker for line in heard if "Player" in line.text} <= {"", "Mason"}


async def test_a_hundred_commands_while_others_talk_lose_and_mix_nothing_up(
    moo_server: DjangoMoo, tmp_path: Path
) -> None:
    tally = await work_while_others_talk(moo_server, tmp_path, commands=100)
    assert (tally.wrong, tally.lost) == ([], [])
    assert tally.said > 8


async def test_a_question_that_needs_a_terminal_is_cancelled_and_the_session_goes_on(
    moo_server: DjangoMoo, tmp_path: Path
) -> None:
    async with players(moo_server, tmp_path, "mason") as [mason]:
        asked = await mason.request("@password")
        assert "only a person" in asked.problem
        assert (await mason.request("say still here")) == CommandOutput("say still here", ["You: still here"])
        assert "only a person" in (await mason.request("@password")).problem


async def test_a_server_that_is_killed_ends_the_session_and_lets_the_player_in_again(
    moo_server: DjangoMoo, tmp_path: Path
) -> None:
    async with players(moo_server, tmp_path, "joiner") as [joiner]:
        moo_server.stop_shell()
        assert "closed" in (await joiner.request("look")).problem
        assert joiner.is_lost
    await asyncio.to_thread(moo_server.start_shell)
    async with players(moo_server, tmp_path, "joiner") as [joiner]:
        assert (await joiner.request("look")).lines
