"""An agent that has had a session before, and one that begins anew in its place: both must ask the model the same."""

import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from denizen import Agent, Config, run_agent
from denizen.config.settings import PolicySettings, ProviderSettings, Rule
from denizen.errors import DenizenError
from denizen.events import RunResult
from denizen.messages import AssistantMessage, UserMessage
from denizen.ports import Session
from denizen.testing import FakeClock, LoopbackOpenAI

ASKING = PolicySettings(rules=[Rule(tool="write", decide="ask")])
"""Nobody is there to answer what is asked, so a turn that writes is parked."""


class Twins:
    """A home where the agent `kept` has had the session `work`, and the agent `other` hasn't."""

    def __init__(self, folder: Path, server: LoopbackOpenAI, agents: AsyncExitStack) -> None:
        self.home, self.workspace = folder / "home", folder / "workspace"
        self.home.mkdir(mode=0o700)
        self.workspace.mkdir()
        self.server = server
        self._agents = agents
        self._clock = FakeClock(datetime.now(UTC))  # other processes have the real one
        self.kept, self.other = self.agent(self.home), self.agent(self.home)
        self.file = self.kept.store.path("work")

    def agent(self, home: Path) -> Agent:
        """One of that home, which begins anew."""
        server = ProviderSettings(base_url=self.server.base_url)
        config = Config(
            home=home, workspace=self.workspace, model="test:scripted", providers={"test": server}, policy=ASKING
        )
        agent = Agent(config, clock=self._clock, environ={})
        self._agents.push_async_callback(agent.close)
        return agent

    async def turn(
        self, agent: Agent, message: str | UserMessage | None, *replies: str | AssistantMessage
    ) -> RunResult:
        """A turn of `work`; the model answers it so."""
        self.server.say(*replies)
        return await run_agent(message, session_key="work", agent=agent)

    async def next_requests(self, message: str | None = "and then?") -> tuple[str, str]:
        """What a fresh agent asks the model next in a copy of the home, and what `kept` asks."""
        copy = self.home.with_name("copy")
        shutil.copytree(self.home, copy)
        await self.turn(self.agent(copy), message, "fine")
        await self.turn(self.kept, message, "fine")
        fresh, kept = [request.body.decode() for request in self.server.requests[-2:]]
        return fresh, kept


@asynccontextmanager
async def twins(folder: Path, server: LoopbackOpenAI) -> AsyncGenerator[Twins]:
    """The twins, after two turns of `kept`: it was told `one` and `two`, and said `first` and `second`."""
    async with AsyncExitStack() as agents:
        both = Twins(folder, server, agents)
        await both.turn(both.kept, "one", "first")
        await both.turn(both.kept, "two", "second")
        yield both
