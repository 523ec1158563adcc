"""The skill that tells a coder how to investigate speaks of commands that there are."""

import re

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import requests_of, say

from denizen import run_agent
from denizen.messages import AssistantMessage, Text
from denizen.ports import MISUSED


async def test_every_command_of_it_is_understood(agent_of: MakeAgent) -> None:
    agent = agent_of(profile="coder")
    [skill] = [skill for skill in agent.skills if skill.name == "investigate"]
    commands = [f"$({command})" for command in re.findall(r"\$\(([^)]+)\)", skill.path.read_text("utf-8"))]
    assert len(commands) > 10
    wrong = []
    for command in commands:
        intent = agent.record.actions.read(AssistantMessage([Text(command)]), agent.tools)
        said = [*intent.calls, *intent.directives]
        wrong += [command] if not said or any(MISUSED in each.args for each in intent.calls) else []
    assert wrong == []


@pytest.mark.parametrize(("profile", "told"), [("coder", True), ("assistant", False)])
async def test_only_a_coder_is_told_of_it(agent_of: MakeAgent, profile: str, told: bool) -> None:
    agent = agent_of(say("Hello."), profile=profile)
    await run_agent("Hello", agent=agent)
    [request] = requests_of(agent)
    assert ("- investigate: Find out how code works" in request.system) == told
