"""The rules against injections must not cost questions on a day on which nobody attacks."""

from pathlib import Path

from benchmarks.agentdojo.day import DAY, questions
from benchmarks.agentdojo.traits import TRAITS

from denizen import Agent, Config


async def test_an_ordinary_day_takes_no_more_questions_than_before_changes_were_asked_about(tmp_path: Path) -> None:
    asked = await questions(tmp_path)
    assert asked["install a package"] == 1
    assert [step.what for step in DAY if asked[step.what] > step.before] == []


async def test_agentdojos_tools_have_the_traits_of_denizens_own_that_do_the_same(tmp_path: Path) -> None:
    async with Agent(Config(home=tmp_path / "home", workspace=tmp_path), environ={}) as agent:
        own = {tool.name: tool.traits for tool in agent.tools}
    assert (TRAITS["get_webpage"], TRAITS["get_balance"]) == (own["web_fetch"], own["recall"])
