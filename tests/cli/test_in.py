"""A character of a text world that runs in its own process, instructed through the gateway."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.cli.character import CharacterProgram
from tests.cli.conftest import Run
from tests.cli.gateway import PATIENCE, GatewayProgram
from tests.cli.model import Model

from denizen.testing import LoopbackRequest

ASKED = "/in mason what are you doing?"


async def serve_world(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"Welcome.\r\n> \xff\xf9")
    while (await reader.readline()).strip() not in {b"", b"@quit"}:
        writer.write(b"A quiet hall.\r\n> \xff\xf9")
    writer.close()


@pytest.fixture
async def mason(tmp_path: Path, environ: dict[str, str], model: Model) -> AsyncGenerator[CharacterProgram]:
    """A character that thinks only when it is instructed, and isn't started yet."""
    world = await asyncio.start_server(serve_world, "127.0.0.1", 0)
    port = world.sockets[0].getsockname()[1]
    settings = f'transport = "telnet"\nhost = "127.0.0.1"\nport = {port}\n'
    character = CharacterProgram(tmp_path / "Mason", environ, [sys.executable], settings)
    yield character
    await character.end(signal.SIGKILL)
    world.close()


def instructions(model: Model) -> int:
    """How often the model was asked with the instruction in sight for the first time."""
    return len([request for request in model.requests if "what are you doing?" in str(request["messages"][-1])])


async def test_running_character_answers_in_the_chat_and_a_stopped_one_does_not(
    gateway: GatewayProgram, mason: CharacterProgram, model: Model, denizen: Run
) -> None:
    model.plays("Laying bricks.")
    await mason.start()
    await gateway.start()
    ran = await asyncio.to_thread(denizen, "send", ASKED)
    assert (ran.out, ran.status) == ("mason: Laying bricks.\n", 0), ran.err
    assert await mason.end() == 0
    ran = await asyncio.to_thread(denizen, "chat", "--gateway", piped=f"{ASKED}\n/in tinker hello\n")
    assert ran.out.splitlines() == [
        "mason isn't running. Start it: denizen moo run DIR",
        "No character is called tinker. Characters: mason.",
    ]


async def test_character_that_is_killed_meanwhile_is_reported_and_not_instructed_again(
    gateway: GatewayProgram, mason: CharacterProgram, model: Model
) -> None:
    def kill(_: LoopbackRequest) -> str:
        mason.process.kill()
        return "Too late."

    model.server.otherwise = kill
    await mason.start()
    await gateway.start()
    await gateway.post("ann", ASKED, id="1")
    [reply] = await gateway.replies("ann", 1)
    assert reply["content"].startswith("mason stopped before it answered.")
    await mason.end()
    model.server.otherwise = lambda _: "Resting."
    await mason.start()
    await gateway.post("ann", "/in mason hello", id="2")
    assert (await gateway.replies("ann", 2))[1]["content"] == "mason: Resting."
    assert instructions(model) == 1


@pytest.mark.parametrize("both", [False, True], ids=["gateway", "gateway and character"])
async def test_gateway_that_is_killed_meanwhile_brings_one_answer(
    gateway: GatewayProgram, mason: CharacterProgram, model: Model, both: bool
) -> None:
    asked, answers = asyncio.Event(), "Laying bricks."
    loop = asyncio.get_running_loop()

    def kill(_: LoopbackRequest) -> str:
        gateway.kill()
        if both:
            mason.process.kill()
        loop.call_soon_threadsafe(asked.set)
        return answers

    model.server.otherwise = kill
    await mason.start()
    await gateway.start()
    await gateway.post("ann", ASKED, id="1")
    await asyncio.wait_for(asked.wait(), PATIENCE)
    await gateway.end(signal.SIGKILL)
    if both:
        await mason.end()
        await mason.start()
    await gateway.start()
    [reply] = await gateway.replies("ann", 1)
    expected = "mason: It was stopped after it got this instruction" if both else "mason: Laying bricks."
    assert reply["content"].startswith(expected)
    assert (await gateway.request("GET", "/api/status"))[1]["inbox"] == {"done": 1}
    assert instructions(model) == 1
