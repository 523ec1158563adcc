"""An agent in another folder: what it shares with the agent that it was made of."""

from pathlib import Path

import pytest

from denizen import Agent, Config
from denizen.config.settings import Rule
from denizen.messages import ToolCall
from denizen.ports import Traits
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore
from denizen.testing import ScriptedModel


class Closing(ScriptedModel):
    closed = False

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    for name in ("work", "there"):
        (tmp_path / name).mkdir()
    config = Config(home=tmp_path / "home", workspace=tmp_path / "work")
    store = JsonlStore(tmp_path / "sessions", clock=SystemClock())
    return Agent(config, model=Closing(["Hello."]), store=store, environ={})


def may_send(agent: Agent, what: str) -> bool:
    call, tool = ToolCall("1", "web_fetch", {"url": what}), agent.tools.get("web_fetch")
    assert tool
    return agent.record.policy.decide(call, tool, Traits.NONE).verdict == "allow"


async def test_it_works_there_and_keeps_the_same_sessions(agent: Agent, tmp_path: Path) -> None:
    async with agent.elsewhere(tmp_path / "there") as there:
        await there.run("Hello", session_key="s")
        assert there.workspace == tmp_path / "there"
    assert [entry.workspace for entry in await agent.store.list()] == [str(tmp_path / "there")]


async def test_it_leaves_the_model_open(agent: Agent, tmp_path: Path) -> None:
    async with agent, agent.elsewhere(tmp_path / "there"):
        pass
    model = agent.model
    assert isinstance(model, Closing)
    assert model.closed
    model.closed = False
    async with agent.elsewhere(tmp_path / "there"):
        pass
    assert not model.closed


async def test_what_was_allowed_for_ever_is_allowed_in_both(agent: Agent, tmp_path: Path) -> None:
    agent.record.policy.keep(Rule(tool="web_fetch", match="https://a/*", decide="allow"))
    async with agent.elsewhere(tmp_path / "there") as there:
        assert may_send(there, "https://a/x")
        there.record.policy.keep(Rule(tool="web_fetch", match="https://b/*", decide="allow"))
    assert may_send(agent, "https://b/x")
    assert not may_send(agent, "https://c/x")
