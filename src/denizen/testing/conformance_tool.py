"""The conformance suite of tools: tests to subclass."""
# ruff: noqa: S101 - tests assert

import asyncio
import copy
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import EFFECTS, Answer, Tool, ToolContext, Traits
from denizen.testing.fake_clock import FakeClock

_KINDS = {"array", "boolean", "integer", "null", "number", "object", "string"}


class ToolConformance:
    """Subclass it in a test module as `TestMyTool`, with fixtures for the `tool` and for `args` that work.

    The tool runs in an empty `workspace`, unless the subclass has a fixture of that name, too. `most_bytes` is how long
    its schema may be as JSON: every model call carries it.
    """

    most_bytes = 1000

    @pytest.fixture
    def tool(self) -> Tool:
        """The tool."""
        raise NotImplementedError("give the suite a fixture `tool`")

    @pytest.fixture
    def args(self) -> dict[str, Any]:
        """Arguments with which a call succeeds, each needed one among them."""
        raise NotImplementedError("give the suite a fixture `args`")

    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Path:
        """The workspace of the tool."""
        return tmp_path

    @pytest.fixture
    def turn(self, workspace: Path) -> ToolContext:
        """The context that the engine passes to it; every question is answered with yes."""

        async def ask(question: str) -> Answer:
            return Answer("call-1", allow=True, text=question)

        return ToolContext("session", "call-1", workspace, FakeClock(), lambda line: None, ask)

    def test_its_name_suits_every_provider(self, tool: Tool) -> None:
        assert re.fullmatch(r"[a-z][a-z0-9_]{0,63}", tool.name)
        assert tool.schema.name == tool.name
        assert not isinstance(tool.shell_names, str)

    def test_it_says_what_it_does(self, tool: Tool) -> None:
        assert 0 < len(tool.schema.description.strip()) <= 1024

    def test_its_schema_describes_an_object(self, tool: Tool) -> None:
        parameters = tool.schema.parameters
        assert parameters["type"] == "object"
        assert set(parameters.get("required", [])) <= set(parameters["properties"])
        _require_schema(parameters)

    def test_its_schema_is_short(self, tool: Tool) -> None:
        assert len(msgspec.json.encode(tool.schema)) <= self.most_bytes

    def test_its_traits_agree(self, tool: Tool) -> None:
        assert isinstance(tool.traits, Traits)
        assert not (Traits.REPEATABLE in tool.traits and tool.traits & EFFECTS), "what has an effect may not run twice"

    async def test_its_result_answers_the_call(self, tool: Tool, args: dict[str, Any], turn: ToolContext) -> None:
        result = await tool.run(args, turn)
        assert (result.call_id, result.name) == (turn.call_id, tool.name)
        assert result.content
        assert not result.is_error

    async def test_its_result_survives_the_transcript(
        self, tool: Tool, args: dict[str, Any], turn: ToolContext
    ) -> None:
        result = await tool.run(args, turn)
        written = msgspec.json.encode(result)
        assert msgspec.json.encode(msgspec.json.decode(written, type=ToolResult)) == written

    async def test_it_leaves_its_arguments_as_they_were(
        self, tool: Tool, args: dict[str, Any], turn: ToolContext
    ) -> None:
        given = copy.deepcopy(args)
        await tool.run(args, turn)
        assert args == given

    async def test_a_missing_argument_is_named(self, tool: Tool, args: dict[str, Any], turn: ToolContext) -> None:
        for name in tool.schema.parameters.get("required", []):
            with pytest.raises(ToolRefused, match=rf"\b{name}\b"):
                await tool.run({key: value for key, value in args.items() if key != name}, turn)

    async def test_an_unknown_argument_is_named(self, tool: Tool, args: dict[str, Any], turn: ToolContext) -> None:
        with pytest.raises(ToolRefused, match="no_such_argument"):
            await tool.run({**args, "no_such_argument": 1}, turn)

    async def test_a_wrong_argument_is_named(self, tool: Tool, args: dict[str, Any], turn: ToolContext) -> None:
        for name, schema in tool.schema.parameters["properties"].items():
            if "type" in schema:
                wrong: Any = 7 if schema["type"] in {"object", "array"} else {"of": ["another", "type"]}
                with pytest.raises(ToolRefused, match=rf"\b{name}\b"):
                    await tool.run({**args, name: wrong}, turn)

    async def test_it_ends_when_it_is_cancelled(self, tool: Tool, args: dict[str, Any], turn: ToolContext) -> None:
        task = asyncio.create_task(tool.run(args, turn))
        await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=30)
        assert done


def _require_schema(schema: dict[str, Any]) -> None:
    """Fail unless it is a valid JSON Schema of the kind that tools use."""
    kinds = schema.get("type", [])
    assert {*([kinds] if isinstance(kinds, str) else kinds)} <= _KINDS
    assert isinstance(schema.get("description", ""), str)
    assert isinstance(schema.get("enum", []), list)
    for part in [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]:
        _require_schema(part)
    if isinstance(schema.get("items"), dict):
        _require_schema(schema["items"])
