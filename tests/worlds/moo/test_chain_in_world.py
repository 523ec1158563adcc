"""A chain of four workers and their foreman, supervised as a group, in a real DjangoMOO world."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.worlds.moo.djangomoo import DjangoMoo
from tests.worlds.moo.in_world import PATIENCE, until
from tests.worlds.moo.play import Watcher, text

from denizen import Agent
from denizen.messages import AssistantMessage, ToolCall
from denizen.runtime.clock import SystemClock
from denizen.testing import FakeClock, ScriptedModel
from denizen.worlds.moo.brain import Brain
from denizen.worlds.moo.character import Character
from denizen.worlds.moo.group import Group, open_group
from denizen.worlds.moo.live import live
from denizen.worlds.moo.supervisor import Seat, supervise
from denizen.worlds.moo.tools import builder_tools

pytestmark = pytest.mark.needs("redis-server")

WORKERS = ("Mason", "Tinker", "Joiner", "Harbinger")


class Cable:
    """A player's way to the server, which can be cut."""

    def __init__(self, port: int) -> None:
        self.port = 0
        self._to = port
        self._writers: list[asyncio.StreamWriter] = []

    @asynccontextmanager
    async def laid(self) -> AsyncGenerator[None]:
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            self.cut()

    def cut(self) -> None:
        while self._writers:
            self._writers.pop().close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers += [writer, ours]
        await asyncio.gather(_copy(reader, ours), _copy(theirs, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
    except OSError:
        pass  # cut off
    writer.close()


class UntilGone(FakeClock):
    """Whoever signs in again waits until the world has seen the player go.

    DjangoMOO takes whoever is back earlier for away: the end of the old session signs the new one out. No page would
    come any more. The seconds that an agent waits are for that.
    """

    def __init__(self, witness: Watcher, player: str) -> None:
        super().__init__()
        self._witness, self._player = witness, player

    async def sleep(self, seconds: float) -> None:
        await until(lambda: any(f"({self._player}) has disconnected." in each for each in self._witness.told("server")))
        await super().sleep(seconds)


def turn(name: str) -> AssistantMessage:
    """A worker's part: it says that it works, reports, and is done."""
    work = ToolCall("1", "raw", {"command": f'say "{name} works"'})
    page = ToolCall("2", "page", {"player": "foreman", "message": f"Token: {name} done. All is well."})
    return AssistantMessage([work, page, ToolCall("3", "done", {"summary": "my part"})], stop_reason="tool_calls")


def make_group(home: Path, ports: dict[str, int]) -> Group:
    for name, port in ports.items():
        folder = home / "town" / name
        folder.mkdir(parents=True)
        (folder / "SOUL.md").write_text(f"# Name\n{name}\n")
        (folder / "denizen.toml").write_text(
            f'[moo]\nhost = "127.0.0.1"\nport = {port}\nuser = "{name.lower()}"\npassword = "{name.lower()}-password"\n'
            "idle_wakeup_seconds = 0\ncommand_timeout = 300\n"
        )
    chain = ", ".join(f'"{name.lower()}"' for name in WORKERS)
    agents = ", ".join(f'"{name}"' for name in ports)
    (home / "town" / "group.toml").write_text(f"agents = [{agents}]\nchain = [{chain}]\n")
    group = open_group(home / "town", {"HOME": str(home)})
    group.shared.mkdir(parents=True)
    return group


async def test_the_token_goes_round_once_though_its_holder_is_cut_off_and_nothing_is_lost_or_doubled(
    moo_server: DjangoMoo, tmp_path: Path
) -> None:
    cable, stop, is_thinking = Cable(moo_server.port), asyncio.Event(), asyncio.Event()

    async def is_cut_off_while_it_thinks(_: object) -> AssistantMessage:
        is_thinking.set()
        await asyncio.Event().wait()
        return turn("Tinker")

    async def play(seat: Seat) -> None:
        name = seat.folder.name
        thinks = [is_cut_off_while_it_thinks] if name == "Tinker" else []
        model = "offline" if name == "Foreman" else ScriptedModel([*thinks, turn(name), *[text("...")] * 20])
        environ = {"HOME": str(tmp_path)}
        async with Agent(seat.folder.loaded.config, environ=environ, profile="denizen", model=model) as agent:
            session = await agent.open(seat.folder.session_key)
            brain = Brain(agent.record, session, Character(seat.folder.path, seat.folder.settings), builder_tools, seat)
            await live(brain, seat.folder, UntilGone(watchers["Mason"], "Tinker"), stop)
            await agent.leave(session)

    def came_to(name: str) -> int:
        """How often the token came to a worker."""
        return watchers[name].told("system").count("[Chain] The token came.")

    async with cable.laid():
        ports = {name: cable.port if name == "Tinker" else moo_server.port for name in ("Foreman", *WORKERS)}
        group = make_group(tmp_path, ports)
        members = group.members(environ={"HOME": str(tmp_path)})
        watchers = {member.name: Watcher() for member in members}
        seats = [Seat(group, member, watchers[member.name], SystemClock()) for member in members]
        running = asyncio.create_task(supervise(seats, play, SystemClock(), stop))
        try:
            await until(lambda: running.done() or is_thinking.is_set())
            cable.cut()
            await until(
                lambda: running.done() or watchers["Mason"].told("system").count("[Chain] The token came.") == 2
            )
        finally:
            stop.set()
            await asyncio.wait_for(running, PATIENCE)

    told = watchers["Foreman"].told("system")
    assert [each for each in told if each.endswith("gets the token.")] == [
        f"[Chain] {name} gets the token." for name in (*WORKERS, "Mason")
    ]
    again = {each for each in told if "told again" in each}  # twice, where it takes Tinker half a minute to say so
    assert again == {"[Chain] Tinker is told again that it has the token."}
    for name in WORKERS:
        system, actions = watchers[name].told("system"), watchers[name].told("action")
        assert came_to(name) == (2 if name == "Mason" else 1)
        signed_in = [
            each for each in system if each.lower() == f"signed in as {name.lower()}."
        ]  # the user, or its avatar
        assert len(signed_in) == (2 if name == "Tinker" else 1)
        assert actions.count(f'say "{name} works"') == 1
        assert len([each for each in actions if f"Token: {name} done. All is well." in each]) == 1
        assert not [each for each in system if each.startswith("[Forged]")]
    assert [each for each in watchers["Tinker"].told("action") if "reconnected" in each]
