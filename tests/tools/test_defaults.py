"""Arguments that the user chose for calls that don't give them."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import pytest

from denizen.errors import ConfigError
from denizen.messages import ToolResult
from denizen.ports import Tool, ToolContext, Traits
from denizen.testing import ToolConformance
from denizen.tools import tool
from denizen.tools.defaults import may_default, with_defaults

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


def test_the_model_is_told() -> None:
    made = defaulted(context=2)
    assert made.schema.parameters["properties"]["context"] == {
        "type": "integer",
        "default": 2,
        "description": "Lines around each match.",
    }
    assert "default" not in grep.schema.parameters["properties"]["context"]
    assert (made.name, made.shell_names, made.traits) == (grep.name, grep.shell_names, grep.traits)


def test_without_settings_a_tool_is_itself() -> None:
    assert with_defaults([grep], {}) == with_defaults([grep], {"grep": {}}) == [grep]


def test_a_tool_of_another_profile_may_have_settings() -> None:
    assert with_defaults([grep], {"view": {"depth": 2}, "analyze": {"anything": 1}}) == [grep]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"grpe": {}}, "tools.grpe: there is no tool 'grpe'. Did you mean grep?"),
        ({"frobnicate": {"a": 1}}, "tools.frobnicate: there is no tool 'frobnicate'. There is: grep."),
        ({"grep": {"contxt": 2}}, "tools.grep.contxt is no argument of grep. Did you mean context?"),
        ({"grep": {"pattern": "x"}}, "tools.grep.pattern can't have a default: a call must say it. Take the line out."),
        ({"grep": {"path": "/"}}, "tools.grep.path can't have a default: a call must say it. Take the line out."),
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
