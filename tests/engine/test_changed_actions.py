"""A session may change between commands in text and structured calls: what was kept, noted and said stays."""

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import call, requests_of

from denizen import Config, run_agent, tool
from denizen.config.settings import AgentSettings
from denizen.ports import Traits

SHELL = Config(agent=AgentSettings(actions="shell"))
NATIVE = Config(agent=AgentSettings(actions="native"))


@tool(traits=Traits.READS)
def look(path: str) -> str:
    """Look at something."""
    return f"{path} holds gold"


def _sent(agent: object) -> str:
    return "\n".join(message.text for message in requests_of(agent)[0].messages)  # pyrefly: ignore


async def test_kept_outputs_and_notes_outlive_a_change_to_structured_calls(agent_of: MakeAgent) -> None:
    from denizen.worlds.code.tools.working_notes import keep, note

    tools = [look, keep, note]
    first = agent_of(
        "$(look a)", "$(keep 1) $(note it's there)", "$(done All is well.)", config=SHELL, profile="coder", tools=tools
    )
    await run_agent("go", agent=first, session_key="work")
    second = agent_of("Yes.", config=NATIVE, profile="coder", tools=tools)
    await run_agent("and now?", agent=second, session_key="work")
    sent = _sent(second)
    assert "[kept] $ look a\na holds gold" in sent
    assert "[note] it's there" in sent
    assert "All is well." in sent
    assert "$(" not in sent


async def test_a_transcript_holds_the_answer_and_not_the_command_that_gave_it(agent_of: MakeAgent) -> None:
    first = agent_of("$(look a)", "So. $(done All is well.)", config=SHELL, tools=[look])
    await run_agent("go", agent=first, session_key="work")
    second = agent_of("Yes.", config=NATIVE, tools=[look])
    await run_agent("and now?", agent=second, session_key="work")
    texts = [message.text for message in requests_of(second)[0].messages]
    assert "[1] $ look\na holds gold" in texts
    assert "All is well." in texts
    assert not any("$(done" in text for text in texts)


@pytest.mark.parametrize("profile", ["coder", "assistant"])
async def test_the_other_way_holds_too(agent_of: MakeAgent, profile: str) -> None:
    first = agent_of(call(("look", {"path": "a"})), "All is well.", config=NATIVE, profile=profile, tools=[look])
    await run_agent("go", agent=first, session_key="work")
    second = agent_of("$(done Yes.)", config=SHELL, profile=profile, tools=[look])
    await run_agent("and now?", agent=second, session_key="work")
    assert "All is well." in _sent(second)
