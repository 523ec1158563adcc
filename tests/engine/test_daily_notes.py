"""Daily notes: what the agent writes there, and what a session begins with."""

from pathlib import Path
from typing import Any

from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host, call, results, say

from denizen import Agent, Config, run_agent, tool
from denizen.config.settings import AgentSettings, MemorySettings, PolicySettings, Rule
from denizen.ports import Traits
from denizen.testing import FakeClock, ScriptedModel

READS = Traits.READS | Traits.REPEATABLE


@tool(traits=READS | Traits.UNTRUSTED)
def page() -> str:
    """A page that others wrote."""
    return "The office moved"


def own(agent: Agent) -> Path:
    agent.config.agent.workspace_dir.mkdir(parents=True, exist_ok=True)
    return agent.config.agent.workspace_dir


def note(agent: Agent, day: str, text: str) -> None:
    path = own(agent) / "memory" / day[:6] / f"{day}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def prompt(model: Any) -> str:
    assert isinstance(model, ScriptedModel)
    return model.requests[-1].system


async def test_a_session_begins_with_the_last_three_days(agent_of: MakeAgent) -> None:
    agent = agent_of("Hello.", tools=())
    for day, text in (("20251229", "four days ago"), ("20251230", "first"), ("20260101", "second")):
        note(agent, day, f"- {text}")
    (own(agent) / "MEMORY.md").write_text("- Ada likes tea")
    (own(agent) / "HEARTBEAT.md").write_text("Water the plants.")
    await run_agent("hi", agent=agent)
    seen = prompt(agent.model)
    parts = ['<file path="MEMORY.md">', '<file path="memory/202512/20251230.md">\n- first', "20260101.md", "- second"]
    assert sorted(parts, key=seen.index) == parts
    assert "four days ago" not in seen
    assert "Water the plants" not in seen


async def test_how_many_days_is_a_setting(agent_of: MakeAgent) -> None:
    agent = agent_of("Hello.", tools=(), config=Config(memory=MemorySettings(recent_days=1)))
    note(agent, "20251231", "- yesterday")
    note(agent, "20260101", "- today")
    await run_agent("hi", agent=agent)
    assert "- today" in prompt(agent.model)
    assert "- yesterday" not in prompt(agent.model)


async def test_a_coder_begins_without_them(agent_of: MakeAgent) -> None:
    agent = agent_of("Hello.", tools=(), profile="coder")
    note(agent, "20260101", "- today")
    await run_agent("hi", agent=agent)
    assert "- today" not in prompt(agent.model)


async def test_the_agent_notes_in_the_day_of_its_user(agent_of: MakeAgent, host: Host) -> None:
    noted = call(("remember", {"text": "Ada called", "scope": "today"}))
    agent = agent_of(noted, say("Noted."), config=Config(agent=AgentSettings(timezone="Pacific/Auckland")))
    result = await run_agent("note it", agent=agent, io=host)
    assert results(result)[0].text == "Noted in memory/202601/20260102.md."
    assert (own(agent) / "memory/202601/20260102.md").read_text() == "- 01:00 Ada called\n"
    assert isinstance(agent.model, ScriptedModel)
    assert "<time>Friday 2026-01-02 01:00 UTC+13:00</time>" in str(agent.model.requests[0].messages)


async def test_a_note_made_in_sight_of_a_page_is_untrusted_later(agent_of: MakeAgent, host: Host) -> None:
    allows = Config(policy=PolicySettings(rules=[Rule(tool="*", match="*", decide="allow")]))
    noted = call(("remember", {"text": "The office moved", "scope": "today"}))
    remember = [each for each in agent_of().tools if each.name == "remember"]

    @tool(traits=Traits.SENDS)
    def send(text: str) -> str:
        """Send a message."""
        return "sent"

    agent = agent_of(call(("page", {})), noted, say("Noted."), tools=[page, *remember, send], config=allows)
    assert (await run_agent("read it", agent=agent, io=host)).stop_reason == "answered"
    assert "- [untrusted] 12:00 The office moved" in (own(agent) / "memory/202601/20260101.md").read_text()
    later = agent_of(call(("send", {"text": "x"})), say("Sent."), tools=[send], config=allows)
    assert (await run_agent("tell them", agent=later, io=host, session_key="later")).stop_reason == "answered"
    assert "The office moved" not in prompt(later.model)
    assert "only `recall` shows: 1]" in prompt(later.model)


async def test_where_no_notes_are_kept_the_model_is_told(agent_of: MakeAgent) -> None:
    agent = agent_of(say("$(remember 'Ada called' --scope today)"), say("Well."), profile="coder")
    result = await run_agent("note it", agent=agent)
    assert "this agent has no daily notes" in results(result)[0].text


async def test_the_prompt_is_renewed_when_the_users_day_begins(agent_of: MakeAgent, clock: FakeClock) -> None:
    zone = Config(agent=AgentSettings(timezone="Asia/Tokyo"))  # 21:00 at the beginning
    agent = agent_of("One.", "Two.", "Three.", tools=(), config=zone)
    await clock.sleep(3 * 3600 - 90)  # 23:58:30
    await run_agent("hi", agent=agent, session_key="s")
    note(agent, "20260101", "- noted meanwhile")
    await clock.sleep(60)
    await run_agent("hi", agent=agent, session_key="s")
    assert "noted meanwhile" not in prompt(agent.model)
    await clock.sleep(60)
    await run_agent("hi", agent=agent, session_key="s")
    assert "noted meanwhile" in prompt(agent.model)
