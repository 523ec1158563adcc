"""Arguments that the user chose for calls that don't give them."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from denizen import Agent, Config
from denizen.config.settings import Rule
from denizen.errors import ConfigError
from denizen.messages import ToolResult
from denizen.ports import ReplyingTool, Tool, ToolContext, Toolset, Traits
from denizen.testing import ToolConformance
from denizen.tools import tool
from denizen.tools.policy.defaults import check_rules, may_default, with_defaults
from denizen.worlds.world import worlds

Call = Callable[..., Awaitable[ToolResult]]


@tool(traits=Traits.READS | Traits.REPEATABLE, shell_names=("text-search",))
def grep(pattern: str, path: str = ".", context: int = 0, mode: Literal["lines", "files"] = "lines") -> str:
    """Search.

    Args:
        context: Lines around each match.
    """
    return f"{pattern} {path} {context} {mode}"


def defaulted(**defaults: Any) -> Tool:
    [made] = with_defaults([grep], {"grep": defaults})
    return made


class TestDefaulted(ToolConformance):
    """A tool with defaults is a tool like any other."""

    @pytest.fixture
    def tool(self) -> Tool:
        return defaulted(context=2)

    @pytest.fixture
    def args(self) -> dict[str, Any]:
        return {"pattern": "x"}


async def test_a_call_that_says_nothing_gets_the_default(call: Call) -> None:
    assert (await call(defaulted(context=2, mode="files"), pattern="x")).text == "x . 2 files"


async def test_what_a_call_says_counts(call: Call) -> None:
    assert (await call(defaulted(context=2), pattern="x", context=0)).text == "x . 0 lines"
    assert (await call(defaulted(context=2), pattern="x", context=None)).text == "x . 2 lines"


def test_the_schema_has_the_defaults() -> None:
    made = defaulted(context=2)
    assert made.schema.parameters["properties"]["context"] == {
        "type": "integer",
        "default": 2,
        "description": "Lines around each match.",
    }
    assert "default" not in grep.schema.parameters["properties"]["context"]
    assert (made.name, made.shell_names, made.traits) == (grep.name, grep.shell_names, grep.traits)


def test_a_tool_with_defaults_still_answers_in_its_own_chat() -> None:
    @tool(traits=Traits.SENDS, replies=lambda args, chat: args["chat"] == chat[1])
    def send(chat: str = "") -> str:
        """Send."""
        return chat

    [made] = with_defaults([send], {"send": {"chat": "ann"}})
    assert isinstance(made, ReplyingTool)
    assert made.is_reply({}, ("http", "ann"))
    assert not made.is_reply({"chat": "ben"}, ("http", "ann"))


def test_without_settings_a_tool_is_itself() -> None:
    assert with_defaults([grep], {}) == with_defaults([grep], {"grep": {}}) == [grep]


def test_a_tool_of_another_profile_may_have_settings() -> None:
    assert with_defaults([grep], {"view": {"depth": 2}, "analyze": {"anything": 1}}) == [grep]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"grpe": {}}, "tools.grpe: unknown tool 'grpe'. Did you mean grep?"),
        ({"frobnicate": {"a": 1}}, "tools.frobnicate: unknown tool 'frobnicate'. Available: grep."),
        ({"grep": {"contxt": 2}}, "tools.grep.contxt isn't an argument of grep. Did you mean context?"),
        (
            {"grep": {"pattern": "x"}},
            "tools.grep.pattern can't have a default: each call must give it. Remove the line.",
        ),
        ({"grep": {"path": "/"}}, "tools.grep.path can't have a default: each call must give it. Remove the line."),
        ({"grep": {"context": "two"}}, 'tools.grep.context must be integer, and is "two".'),
        ({"grep": {"mode": "all"}}, "tools.grep.mode must be one of ['files', 'lines'], and is \"all\"."),
    ],
)
def test_what_cannot_be_is_refused_with_what_was_meant(settings: dict[str, dict[str, Any]], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        with_defaults([grep], settings)
    assert str(refused.value) == message


def test_nothing_that_the_policy_judges_by_can_have_a_default() -> None:
    @tool(traits=Traits.EXECUTES)
    def bash(command: str, turn: ToolContext, timeout: float = 120, unsandboxed: bool = False) -> str:
        """Run a command."""
        return command

    assert [*may_default(bash.schema)] == ["timeout"]
    with pytest.raises(ConfigError, match=r"tools\.bash\.unsandboxed can't have a default"):
        with_defaults([bash], {"bash": {"unsandboxed": True}})


# Rules


@pytest.mark.parametrize("profile", [world.profile.name for world in worlds()])
def test_rules_for_the_tools_of_another_profile_are_fine(profile: str, tmp_path: Path) -> None:
    config = Config(home=tmp_path / "home", workspace=tmp_path)
    names = {"*", *(tool.name for tool in Agent(config, profile=profile, model="offline", environ={}).tools)} - {"help"}
    check_rules([Rule(tool=name, decide="deny") for name in names], Toolset([grep]))


@pytest.mark.parametrize(
    ("name", "meant"),
    [("gerp", "Did you mean grep?"), ("run", "Did you mean bash?"), ("web_*", "Did you mean web_fetch?")],
)
def test_a_rule_for_a_tool_that_there_is_not_names_the_nearest(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"policy.rules[0]: unknown tool {name!r}. {meant}")):
        check_rules([Rule(tool=name, decide="deny")], Toolset([grep]))


def test_tools_of_an_extension_that_is_not_loaded_are_known_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "weather-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: weather\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[denizen.tools]\nweather = weather_tools:all\n")
    monkeypatch.syspath_prepend(tmp_path)
    check_rules([Rule(tool="weather_today", decide="deny")], Toolset([grep]))
    with pytest.raises(ConfigError, match="unknown tool 'wether_today'"):
        check_rules([Rule(tool="wether_today", decide="deny")], Toolset([grep]))
