"""Profiles, by name."""

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import call, results, say

from denizen import Config, run_agent
from denizen.config.settings import AgentSettings
from denizen.errors import ConfigError
from denizen.worlds.world import find_world


def test_an_unknown_profile_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"^There is no profile 'wizard'; available: .*coder.*\.$"):
        find_world("wizard")


@pytest.mark.parametrize(
    ("profile", "said", "meant"),
    [
        *[
            ("coder", "read", "view"),
            ("coder", "ls", "view"),
            ("coder", "run", "bash"),
            ("coder", "str_replace", "edit"),
        ],
        *[("assistant", "cat", "read"), ("assistant", "list_dir", "ls"), ("assistant", "Glob", "find")],
    ],
)
async def test_a_name_from_elsewhere_leads_to_the_tool_that_does_its_job_in_the_profile(
    agent_of: MakeAgent, profile: str, said: str, meant: str
) -> None:
    config = Config(agent=AgentSettings(actions="native"))
    agent = agent_of(call((said, {})), say("Stop."), profile=profile, config=config)
    [refused] = results(await run_agent("go", agent=agent))
    assert refused.text == f"unknown tool {said!r}; did you mean {meant!r}?"
