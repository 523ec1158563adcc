"""A character of a text world that runs in its own process, instructed through the gateway."""

import asyncio
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.cli.conftest import PROGRAM, Run
from tests.cli.gateway import PATIENCE, GatewayProgram
from tests.cli.model import Model

from denizen.testing import LoopbackRequest

ASKED = "/in mason what are you doing?"


class Character:
    """Plays in a small world; `process` is the one that was started last."""

    process: Process

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self._folder = folder
        self._environ = environ | {"MOO_PASSWORD": "mason-pass-1"}

    async def start(self) -> None:
        """Start it, and wait until it has signed in."""
        command = [*PROGRAM, "moo", "run", "--plain", str(self._folder)]
        self.process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, env=self._environ)
        await self.prints("Signed in as Mason")

    async def prints(self, text: str) -> None:
        """Wait for a line with this text."""
        assert self.process.stdout
        async with asyncio.timeout(PATIENCE):
            while text not in (line := (await self.process.stdout.readline()).decode()):
                assert line

    async def end(self, number: int = signal.SIGTERM) -> None:
        if self.process.returncode is None:
            self.process.send_signal(number)
        await self.process.communicate()


async def serve_world(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"Welcome.\r\n> \xff\xf9")
    while (await reader.readline()).strip() not in {b"", b"@quit"}:
        writer.write(b"A quiet hall.\r\n> \xff\xf9")
    writer.close()


@pytest.fixture
async def mason(tmp_path: Path, environ: dict[str, str], model: Model) -> AsyncGenerator[Character]:
    """A character that thinks only when it is instructed, and isn't started yet."""
    world = await asyncio.start_server(serve_world, "127.0.0.1", 0)
    (folder := tmp_path / "Mason").mkdir()
    (folder / "SOUL.md").write_text("# Name\nMason\n")
    where = f'transport = "telnet"\nhost = "127.0.0.1"\nport = {world.sockets[0].getsockname()[1]}\nuser = "mason"\n'
    (folder / "denizen.toml").write_text(f"[moo]\n{where}idle_wakeup_seconds = 0.0\n")
    character = Character(folder, environ)
    yield character
    if hasattr(character, "process"):
        await character.end(signal.SIGKILL)
    world.close()


def instructions(model: Model) -> int:
    """How often the model was asked with the instruction in sight for the first time."""
    return len([request for request in model.requests if "what are you doing?" in str(request["messages"][-1])])


async def test_running_character_answers_in_the_chat_and_a_stopped_one_does_not(
    gateway: GatewayProgram, mason: Character, model: Model, denizen: Run
) -> None:
    model.plays("Laying bricks.")
    await mason.start()
    await gateway.start()
    ran = await asyncio.to_thread(denizen, "send", ASKED)
    assert (ran.out, ran.status) == ("mason: Laying bricks.\n", 0), ran.err
    await mason.end()
    assert mason.process.returncode == 0
    ran = await asyncio.to_thread(denizen, "chat", "--gateway", piped=f"{ASKED}\n/in tinker hello\n")
    assert ran.out.splitlines() == [
        "mason isn't running. Start it: denizen moo run DIR",
        "No character is called tinker. Characters: mason.",
    ]


async def test_character_that_is_killed_meanwhile_is_reported_and_not_instructed_again(
    gateway: GatewayProgram, mason: Character, model: Model
) -> None:
    def kill(_: LoopbackRequest) -> str:
        mason.process.kill()
        return "Too late."

    model.server.otherwise = kill
    await mason.start()
    await gateway.start()
    await gateway.post("ann", ASKED, id="1")
    [reply] = await gateway.replies("ann", 1)
    assert reply["content"].startswith("mason ended before it answered.")
    await mason.end()
    model.server.otherwise = lambda _: "Resting."
    await mason.start()
    await gateway.post("ann", "/in mason hello", id="2")
    assert (await gateway.replies("ann", 2))[1]["content"] == "mason: Resting."
    assert instructions(model) == 1


@pytest.mark.parametrize("both", [False, True], ids=["gateway", "gateway and character"])
async def test_gateway_that_is_killed_meanwhile_brings_one_answer(
    gateway: GatewayProgram, mason: Character, model: Model, both: bool
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
    expected = "mason: It had this instruction, and was stopped before" if both else "mason: Laying bricks."
    assert reply["content"].startswith(expected)
    assert (await gateway.request("GET", "/api/status"))[1]["inbox"] == {"done": 1}
    assert instructions(model) == 1
