"""An agent that has had a session before, and one that begins anew in its place: both must ask the model the same."""

import shutil
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from denizen import Agent, load_config, run_agent
from denizen.events import RunResult
from denizen.messages import AssistantMessage, UserMessage
from denizen.sessions import JsonlStore
from denizen.testing import FakeClock, LoopbackOpenAI

SETTINGS = """
model = "test:scripted"
[providers.test]
base_url = "{}"
[policy]
rules = [{{ tool = "write", match = "*asked*", decide = "ask" }}]
"""
"""Nobody is there to answer what is asked, so a turn that would write such a file is parked."""


class Twins:
    """A home where the agent `kept` has had the session `work`, and the agent `other` hasn't."""

    def __init__(self, folder: Path, server: LoopbackOpenAI, agents: AsyncExitStack) -> None:
        self.home, self.workspace = folder / "home", folder / "workspace"
        self.home.mkdir(mode=0o700)
        subprocess.run(["git", "init", "--quiet", self.workspace], check=True)
        (self.home / "denizen.toml").write_text(SETTINGS.format(server.base_url))
        (self.home / "denizen.toml").chmod(0o600)
        self.server = server
        self._agents = agents
        self._clock = FakeClock(datetime.now(UTC))  # other processes have the real one
        self.kept, self.other = self.agent(self.home), self.agent(self.home)
        self.file = JsonlStore(self.home / "sessions", clock=self._clock).path("work")

    def agent(self, home: Path) -> Agent:
        """One of that home, which begins anew."""
        config = load_config(home=home, workspace=self.workspace, environ={})
        agent = Agent(config, clock=self._clock, environ={})
        self._agents.push_async_callback(agent.close)
        return agent

    async def turn(
        self, agent: Agent, message: str | UserMessage | None, *replies: str | AssistantMessage
    ) -> RunResult:
        """A turn of `work`; the model answers it so."""
        self.server.say(*replies)
        return await run_agent(message, session_key="work", agent=agent)

    async def the_model_is_asked(self, told: Sequence[str], untold: Sequence[str] = ()) -> None:
        """The next request of `kept` is the one of an agent that begins anew in a copy of the home.

        What was said before has the words `told`, and no text that begins with one of `untold`.
        """
        copy = self.home.with_name("copy")
        shutil.copytree(self.home, copy)
        await self.turn(self.agent(copy), "and then?", "fine")
        await self.turn(self.kept, "and then?", "fine")
        fresh, kept = [request.body.decode() for request in self.server.requests[-2:]]
        assert kept == fresh
        said = kept.partition('"messages":')[2]
        assert [word for word in told if word not in said] == []
        assert [word for word in untold if f'"{word}' in said] == []


@asynccontextmanager
async def twins(folder: Path, server: LoopbackOpenAI) -> AsyncGenerator[Twins]:
    """The twins, after two turns of `kept`: it was told `one` and `two`, and said `first` and `second`."""
    async with AsyncExitStack() as agents:
        both = Twins(folder, server, agents)
        await both.turn(both.kept, "one", "first")
        await both.turn(both.kept, "two", "second")
        yield both
