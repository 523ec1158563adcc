"""An agent signs in, is cut off, signs in again, and leaves properly."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.worlds.moo.play import Watcher, tools

from denizen import Agent
from denizen.testing import FakeClock, ScriptedModel
from denizen.worlds.moo.brain import Brain
from denizen.worlds.moo.character import Character
from denizen.worlds.moo.folder import open_folder
from denizen.worlds.moo.live import live
from denizen.worlds.moo.transport import ServerUnreachable

PROMPT = b"> \xff\xf9"


class Mud:
    """A server that speaks telnet, or says nothing while it `is_slow`; `got`: its lines, `cut` closes connections.

    The first connections, `hangs_up` of them, are closed at once.
    """

    def __init__(self, hangs_up: int = 0) -> None:
        self.hangs_up = hangs_up
        self.got: list[str] = []
        self.port = 0
        self.is_slow = False
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server:
            self._server.close()
        self.cut()

    def cut(self) -> None:
        while self._writers:
            self._writers.pop().close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        if self.hangs_up:
            self.hangs_up -= 1
            self.cut()
            return
        writer.write(b"Welcome.\r\n" + PROMPT)
        while line := await reader.readline():
            self.got.append(line.decode().strip())
            if self.got[-1] == "@quit":
                break
            if self.is_slow:
                continue
            writer.write(b"You are in a hall.\r\n" + PROMPT)
        writer.close()


Life = tuple[Mud, Watcher, FakeClock, asyncio.Event, asyncio.Task[None]]


@asynccontextmanager
async def living(tmp_path: Path, hangs_up: int = 0) -> AsyncGenerator[Life]:
    mud, watcher, clock, stop = Mud(hangs_up), Watcher(), FakeClock(), asyncio.Event()
    await mud.open()
    folder = tmp_path / "Ann"
    folder.mkdir()
    (folder / "SOUL.md").write_text("# Name\nAnn\n")
    settings = (
        f'[moo]\ntransport = "telnet"\nhost = "127.0.0.1"\nport = {mud.port}\nuser = "ann"\npassword = "ann-pass-1"'
    )
    (folder / "denizen.toml").write_text(settings)
    opened = open_folder(folder, environ={"HOME": str(tmp_path)})
    async with Agent(opened.loaded.config, profile="denizen", model=ScriptedModel([]), clock=clock) as agent:
        session = await agent.open(opened.session_key)
        brain = Brain(agent.record, session, Character(folder, opened.settings), tools, watcher)
        life = asyncio.create_task(live(brain, opened, clock, stop))
        try:
            yield mud, watcher, clock, stop, life
        finally:
            stop.set()
            await asyncio.wait([life])
            await mud.close()
            await agent.leave(session)


async def until(so: Callable[[], object]) -> None:
    while not so():  # noqa: ASYNC110 (what it waits for has no event)
        await asyncio.sleep(0.01)


async def test_it_leaves_with_quit_when_it_is_stopped(tmp_path: Path) -> None:
    async with living(tmp_path) as (mud, watcher, _, stop, life):
        await until(lambda: watcher.told("system"))
        assert mud.got == ["connect ann ann-pass-1"]
        stop.set()
        await life
        assert mud.got[-1] == "@quit"


async def test_it_stops_while_it_still_signs_in(tmp_path: Path) -> None:
    async with living(tmp_path) as (mud, _, __, stop, life):
        mud.is_slow = True
        await until(lambda: mud.got)
        stop.set()
        await life
        await until(lambda: mud.got[-1] == "@quit")


async def test_it_signs_in_again_when_it_was_cut_off(tmp_path: Path) -> None:
    async with living(tmp_path) as (mud, watcher, clock, _, __):
        await until(lambda: watcher.told("system"))
        for times in (2, 3):
            mud.cut()
            await until(lambda times=times: watcher.told("system").count("Signed in as Ann.") == times)
        assert [each for each in clock.slept if each >= 5] == [5, 5]
        assert "The connection is lost. Attempt 1 of 5 to sign in again, in 5 s." in watcher.told("system")


async def test_it_gives_up_after_five_attempts_with_longer_waits(tmp_path: Path) -> None:
    async with living(tmp_path) as (mud, watcher, clock, _, life):
        await until(lambda: watcher.told("system"))
        await mud.close()
        with pytest.raises(ServerUnreachable, match="can't be reached"):
            await life
        assert [each for each in clock.slept if each >= 5] == [5, 10, 20, 40, 60]


async def test_a_first_sign_in_that_fails_is_reported_and_tried_again_like_any_other(tmp_path: Path) -> None:
    async with living(tmp_path, hangs_up=2) as (mud, watcher, clock, _, life):
        await until(lambda: life.done() or "Signed in as Ann." in watcher.told("system"))
        said = rf"127.0.0.1:{mud.port} didn't let us in: .* Attempt 1 of 5 to sign in again, in 5 s\."
        assert re.fullmatch(said, watcher.told("system")[0])
        assert [each for each in clock.slept if each >= 5] == [5, 10]


async def test_the_agent_sees_what_the_server_says_at_sign_in(tmp_path: Path) -> None:
    async with living(tmp_path) as (_, watcher, __, ___, ____):
        await until(lambda: len(watcher.told("server")) == 2)
        assert watcher.told("server") == ["Welcome.", "You are in a hall."]
