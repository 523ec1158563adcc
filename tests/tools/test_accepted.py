"""Tools of other packages are offered under names and with schemas that every provider takes."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engine.scene import call

from denizen import Agent, load_config
from denizen.messages import Text, ToolResult
from denizen.ports import Schema, ToolContext, Traits
from denizen.testing import LoopbackOpenAI


class ForeignTool:
    """A tool that isn't made by `@tool`."""

    shell_names: Sequence[str] = ()
    traits = Traits.READS | Traits.REPEATABLE

    def __init__(self, name: str, parameters: dict[str, Any], description: str = "Look it up.") -> None:
        self.name = name
        self.schema = Schema(name, description, parameters)

    async def run(self, args: dict[str, Any], turn: ToolContext) -> ToolResult:
        return ToolResult(turn.call_id, self.name, [Text(f"{self.name}: {args}")])


async def offered(home: Path, server: LoopbackOpenAI, *tools: ForeignTool, calls: str = "") -> tuple[Any, str]:
    """The functions that the provider was sent, and the result of a call of the first."""
    provider = {"base_url": server.base_url, "auth_profiles": [{"id": "a", "api_key": "key"}]}
    overrides = {"model": "openai:gpt-4.1", "providers": {"openai": provider}}
    server.say(call((calls or tools[0].name, {"q": "x"})), "Done.")
    async with Agent(load_config(home=home, environ={}, cwd=home, overrides=overrides), tools=tools) as agent:
        result = await agent.run("Look.")
    functions = [each["function"] for each in server.requests[0].json["tools"]]
    return functions, next(each.text for each in result.messages if isinstance(each, ToolResult))


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "anyOf": [{"required": ["q"]}]},
        {"properties": {"q": {"type": "string"}}, "not": {"required": ["r"]}},
    ],
)
async def test_schemas_are_those_of_objects_without_what_providers_refuse(
    parameters: dict[str, Any], tmp_path: Path, loopback_openai: LoopbackOpenAI
) -> None:
    [function], _ = await offered(tmp_path, loopback_openai, ForeignTool("look", parameters, "x" * 2000))
    assert function["parameters"]["type"] == "object"
    assert "properties" in function["parameters"]
    assert not {"$schema", "anyOf", "not"} & function["parameters"].keys()
    assert len(function["description"]) == 1024


@pytest.mark.parametrize("name", ["shop.price", "Preis für Möbel", "7zip", "x" * 90, "🙂"])
async def test_names_are_valid_and_call_the_tool(name: str, tmp_path: Path, loopback_openai: LoopbackOpenAI) -> None:
    tools = [ForeignTool(name, {}), ForeignTool("shop_price", {})]
    functions, _ = await offered(tmp_path / "a", loopback_openai, *tools)
    names = [each["name"] for each in functions]
    assert len(set(names)) == 2
    assert all(re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}", each) for each in names)
    _, result = await offered(tmp_path / "b", loopback_openai, *tools, calls=names[0])
    assert result == f"{name}: {{'q': 'x'}}"
