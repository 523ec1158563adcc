"""An agent in an empty home, with a scripted model; and a host that records its events."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.engine.scene import DEFAULT, Host

from denizen import Agent, Config
from denizen.entries import AnyEntry
from denizen.testing import FakeClock, ScriptedModel


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


MakeAgent = Callable[..., Agent]


@pytest.fixture
async def agent_of(tmp_path: Path, clock: FakeClock) -> AsyncIterator[MakeAgent]:
    """`agent_of(*replies, tools=…, config=…)`: an agent whose model plays the replies."""
    async with AsyncExitStack() as stack:

        def make(*replies: Any, config: Config | None = None, **options: Any) -> Agent:
            workspace = tmp_path / "workspace"
            workspace.mkdir(exist_ok=True)
            given = config or Config()
            placed = {"home": tmp_path / "home", "workspace": workspace}
            settings = {name: getattr(given, name) for name in given.__struct_fields__ if name not in placed}
            options.setdefault("model", ScriptedModel(replies))
            options.setdefault("environ", {})
            agent = Agent(Config(**settings, **placed), clock=clock, **options)
            stack.push_async_callback(agent.close)
            return agent

        yield make


@pytest.fixture
def entries_of() -> Callable[[Agent], Awaitable[list[AnyEntry]]]:
    """`await entries_of(agent)`: the transcript of its session `default`, read anew from the disk."""

    async def read(agent: Agent) -> list[AnyEntry]:
        return [*await agent.store.read(DEFAULT)]

    return read
