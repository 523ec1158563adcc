"""`subagent`: a task for an agent of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from denizen.messages import ToolResult
from denizen.ports import Tool, ToolContext, Traits
from denizen.tools.function import FunctionTool, tool


@tool(traits=Traits.READS | Traits.DELEGATES | Traits.REPEATABLE)  # its session goes on where it was
async def subagent(task: str, turn: ToolContext, agent: str = "") -> ToolResult:
    """Let a subagent do part of the work, and wait for it. It works here, with your tools, and knows only
    the task; several can look into different things at once.

    Args:
        task: All it must know, and what to answer with
        agent: Who does it; default: one like you
    """
    return await turn.subagent(task, agent)


def with_agents(tools: Sequence[Tool], defined: Mapping[str, str]) -> list[Tool]:
    """The tools, where `subagent` and `spawn` say what their `agent` may be: what each is for, by name."""
    return [
        _with_agents(each, defined) if isinstance(each, FunctionTool) and each.name in {"subagent", "spawn"} else each
        for each in tools
    ]


def _with_agents(made: FunctionTool, defined: Mapping[str, str]) -> FunctionTool:
    properties = {**made.schema.parameters["properties"]}
    agent = properties.pop("agent")
    if defined:
        known = "; ".join(f"{name}: {description}" for name, description in defined.items())
        properties["agent"] = {**agent, "description": f"{agent['description']}. {known}"}
    parameters = {**made.schema.parameters, "properties": properties}
    return replace(made, schema=msgspec.structs.replace(made.schema, parameters=parameters))
