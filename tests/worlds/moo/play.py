"""A world of data: what it answers to each command, and what others say; and an agent that plays in it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from denizen import Agent, tool
from denizen.config import Config
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult
from denizen.ports import ActionFormat, Tool, Traits
from denizen.prompt import Skill
from denizen.testing import FakeClock, ScriptedModel
from denizen.worlds.moo.brain import Brain
from denizen.worlds.moo.character import Character
from denizen.worlds.moo.listener import Facts, Kind, Status, Tally
from denizen.worlds.moo.server_text import CommandOutput, Room, ServerLine
from denizen.worlds.moo.session_log import SessionLog
from denizen.worlds.moo.settings import MooSettings


class FakeWorld:
    """Answers commands from a table; `sent` are those it got, each with the clock's seconds."""

    def __init__(self, clock: FakeClock, answers: Mapping[str, Sequence[str]] | None = None) -> None:
        self.name, self.room, self.is_lost = "Mason", Room("61", "The Library"), False
        self.names_talkers = True
        self.sent: list[str] = []
        self.times: list[float] = []
        self.on: dict[str, Callable[[], None]] = {}
        self.problems: dict[str, str] = {}
        self._clock = clock
        self._answers = answers or {}
        self._queue: asyncio.Queue[ServerLine | None] = asyncio.Queue()

    @property
    def lines(self) -> AsyncGenerator[ServerLine]:
        return self._lines()

    async def _lines(self) -> AsyncGenerator[ServerLine]:
        while line := await self._queue.get():
            yield line

    def say(self, text: str, channel: str = "", talker: str = "") -> None:
        self._queue.put_nowait(ServerLine(text, channel, talker, is_unproven=self.names_talkers and not channel))

    def page(self, text: str, talker: str = "Foreman") -> None:
        self.say(f'{talker} pages, "{text}"', "page", talker)

    def lose(self) -> None:
        self.is_lost = True
        self._queue.put_nowait(None)

    async def request(self, command: str) -> CommandOutput:
        self.sent.append(command)
        self.times.append(self._clock.monotonic())
        if happens := self.on.get(command):
            happens()
            await asyncio.sleep(0.01)  # it comes in, before the output is whole
        if problem := self.problems.get(command):
            return CommandOutput(command, problem=problem)
        return CommandOutput(command, self._answers.get(command, [f"You did: {command}"]))


class Watcher:
    """Keeps what a listener hears."""

    def __init__(self) -> None:
        self.statuses: list[Status] = []
        self.heard: list[tuple[Kind, str]] = []
        self.known: list[Facts] = []

    def status(self, status: Status) -> None:
        self.statuses.append(status)

    def line(self, kind: Kind, text: str) -> None:
        self.heard.append((kind, text))

    def facts(self, facts: Facts) -> None:
        self.known.append(facts)

    def told(self, kind: Kind) -> list[str]:
        return [text for each, text in self.heard if each == kind]


def tools(brain: Brain) -> Sequence[Tool]:
    """A few, each of which sends its commands."""

    @tool(traits=Traits.UNTRUSTED)
    async def raw(command: str) -> ToolResult:
        """Send a command."""
        return await brain.act([command])

    @tool(traits=Traits.UNTRUSTED)
    async def furnish(name: str) -> ToolResult:
        """Make a thing, and let it be seen."""
        return await brain.act([f'@create "{name}"', f'@obvious "{name}"'])

    @tool
    async def done(summary: str = "") -> ToolResult:
        """The work is done."""
        return await brain.finish(summary)

    return [raw, furnish, done]


def calls(*commands: str) -> AssistantMessage:
    """A reply with a call for each command."""
    asked = [ToolCall(f"call-{number}", "raw", {"command": each}) for number, each in enumerate(commands)]
    return AssistantMessage([*asked], stop_reason="tool_calls")


def text(words: str) -> AssistantMessage:
    return AssistantMessage([Text(words)])


class Play:
    """An agent in a world: `until` lets time pass until something is so."""

    def __init__(
        self, brain: Brain, world: FakeWorld, clock: FakeClock, model: ScriptedModel, watcher: Watcher
    ) -> None:
        self.brain, self.world, self.clock, self.model, self.watcher = brain, world, clock, model, watcher
        self.go_on(world)

    def go_on(self, world: FakeWorld) -> None:
        self.running = asyncio.create_task(self.brain.play(world))

    async def until(self, so: Callable[[], Any], steps: int = 1_000_000) -> None:
        for _ in range(steps):
            if so():
                return
            if self.running.done():
                await self.running
            await asyncio.sleep(0)
        raise AssertionError(f"it never came to that; sent {self.world.sent}, told {self.watcher.heard[-5:]}")

    async def seconds(self, count: float) -> None:
        end = self.clock.monotonic() + count
        await self.until(lambda: self.clock.monotonic() >= end)

    @property
    def tally(self) -> Tally:
        """What it has said of its cycles."""
        return self.watcher.known[-1].tally if self.watcher.known else Tally()

    @property
    def asked(self) -> int:
        return len(self.model.requests)


def agent_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "group" / "mason"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@asynccontextmanager
async def playing(
    tmp_path: Path,
    script: Sequence[Any] | None,
    answers: Mapping[str, Sequence[str]] | None = None,
    *,
    soul: str = "",
    began: datetime | None = None,
    user: str = "mason",
    actions: ActionFormat | None = None,
    config: Config | None = None,
    more: Sequence[Tool] = (),
    skills: Sequence[Skill] = (),
    make_world: type[FakeWorld] = FakeWorld,
    **settings: Any,
) -> AsyncGenerator[Play]:
    """An agent that plays in a world of data, with a scripted model (None: offline), on a clock that runs by itself.

    Its directory is `agent_folder(tmp_path)`, with a SOUL.md of that text. Left by an exception, its process has
    crashed.
    """
    clock, model, watcher = FakeClock(began), ScriptedModel(script or ()), Watcher()
    folder = agent_folder(tmp_path)
    (folder / "SOUL.md").write_text(soul)
    thinks = "offline" if script is None else model
    async with Agent(config, profile="denizen", model=thinks, clock=clock, environ={"HOME": str(tmp_path)}) as agent:
        session = await agent.open("agent:mason:channel:moo:account:mason@localhost:peer:direct:world")
        character = Character(folder, MooSettings(user=user, **settings), skills)
        log = SessionLog(watcher, folder, agent.record.now, agent.record.redact)
        record = replace(agent.record, actions=actions or agent.record.actions)
        brain = Brain(record, session, character, lambda actor: [*tools(actor), *more], log)
        world = make_world(clock, answers)
        await brain.begin()
        play = Play(brain, world, clock, model, watcher)
        try:
            yield play
            if play.running.done():
                await play.running
            await brain.end()
        finally:
            play.running.cancel()
            await asyncio.wait([play.running])
            await agent.leave(session)
