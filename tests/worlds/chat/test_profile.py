"""Which tools the agent of a gateway has."""

from pathlib import Path

import pytest

from denizen import Agent
from denizen.config import load_config
from denizen.errors import ToolRefused
from denizen.messages import ToolCall
from denizen.ports import CheckedTool, Traits
from denizen.testing import ScriptedModel


def agent(home: Path, settings: str = "") -> Agent:
    (home / "denizen.toml").write_text(settings)
    config = load_config(home=home, environ={}, cwd=home)
    return Agent(config, profile="gateway", model=ScriptedModel([]), environ={})


def test_a_search_that_is_not_set_up_says_how(tmp_path: Path) -> None:
    [search] = [tool for tool in agent(tmp_path).tools if tool.name == "web_search"]
    assert isinstance(search, CheckedTool)
    with pytest.raises(ToolRefused, match="no web search is set up"):
        search.check({"query": "Ada"})


def test_one_that_is_set_up_is_there_once(tmp_path: Path) -> None:
    made = agent(tmp_path, '[web.search]\nprovider = "duckduckgo"')
    assert [tool.name for tool in made.tools].count("web_search") == 1


def test_setting_for_hardware_says_what_to_install(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    agent(tmp_path)
    assert not caplog.messages
    agent(tmp_path, "[gateway]\nhardware = true")
    assert "Install denizen-hardware" in caplog.text


def verdict(made: Agent, in_sight: Traits = Traits.NONE) -> str:
    call = ToolCall("1", "web_fetch", {"url": "https://rome.example/"})
    [fetch] = [tool for tool in made.tools if tool.name == call.name]
    return made.record.policy.decide(call, fetch, in_sight).verdict


def test_pages_are_fetched_unasked_within_the_rule_of_two_unless_the_user_says_otherwise(tmp_path: Path) -> None:
    assert verdict(agent(tmp_path)) == "allow"
    assert verdict(agent(tmp_path), Traits.PRIVATE | Traits.UNTRUSTED) == "ask"
    rule = '[policy]\nrules = [{ tool = "web_fetch", decide = "ask" }]'
    assert verdict(agent(tmp_path, rule)) == "ask"
