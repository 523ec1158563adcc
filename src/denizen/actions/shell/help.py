"""`$(help)`: the commands there are, and how one is used."""

from collections.abc import Iterable, Sequence
from typing import Any

from denizen.actions.shell.parameters import parameters_of
from denizen.actions.shell.usage import commands_of, explain, find_tool, nearest_command, summary_of, usage_of
from denizen.errors import ToolRefused
from denizen.messages import Text, ToolResult
from denizen.ports import Schema, Tool, ToolContext, Toolset, Traits


class Help:
    """The tool behind `$(help)`. `tools` are the others."""

    name = "help"
    shell_names: Sequence[str] = ()
    traits = Traits.READS | Traits.REPEATABLE
    schema = Schema(
        "help",
        "List the commands, or show how one is used.",
        {"type": "object", "properties": {"command": {"type": "string"}}, "required": []},
    )

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = Toolset([self, *tools])

    async def run(self, args: dict[str, Any], turn: ToolContext) -> ToolResult:
        """All commands in a line each, or one in full. Raises ToolRefused where there is none of that name."""
        if wrong := [key for key in args if key != "command"]:
            raise ToolRefused(f"help: `{wrong[0]}` is unknown; it takes (command?)")
        name = str(args.get("command") or "").strip("$() ")
        return ToolResult(turn.call_id, self.name, [Text(self._about(name) if name else self._list())])

    def _about(self, name: str) -> str:
        tool = find_tool(name, self._tools)
        if tool:
            return explain(name, tool, self._tools)
        if name == "done":
            return (
                "usage: $(done ANSWER)\nEnd the turn with this answer, once the other commands of the reply have run."
            )
        near = nearest_command(name, self._tools)
        maybe = f"; did you mean $({near})?" if near else ";"
        raise ToolRefused(f"there is no command {name!r}{maybe} $(help) lists them")

    def _list(self) -> str:
        lines = [
            f"{usage_of(name, parameters_of(tool.schema))}  {summary_of(tool)}"
            for name, tool in commands_of(self._tools).items()
        ]
        return "\n".join(["done ANSWER  End the turn with this answer", *lines])
