"""How a command is written, for the prompt, for `$(help …)` and for whoever got it wrong."""

import difflib
from collections.abc import Iterator

from denizen.actions.shell.parameters import Parameter, Parameters, parameters_of
from denizen.ports import Tool, Toolset
from denizen.tool_aliases import resolve_alias

SUMMARY = 70
"""Characters of a tool's description that stand in the prompt."""


def commands_of(tools: Toolset) -> dict[str, Tool]:
    """The tools by the names that commands call them by: each by the first of its names that means it."""
    return {name: tool for tool in tools for name in [command_name(tool, tools)] if name}


def command_name(tool: Tool, tools: Toolset) -> str:
    """What a command calls the tool; empty where its names all mean others."""
    return next((_dashed(name) for name in (*tool.shell_names, tool.name) if tools.named(name) is tool), "")


def find_tool(name: str, tools: Toolset) -> Tool | None:
    """The tool that `$(name …)` means; `-` and `_` are the same."""
    return tools.named(name) or tools.named(name.replace("-", "_"))


def nearest_command(name: str, tools: Toolset) -> str:
    """The command that does what elsewhere has that name, else the one whose name is most like it; or none: empty."""
    commands = commands_of(tools)
    if meant := resolve_alias(name, {"done", *(tool.name for tool in commands.values())}):
        tool = tools.get(meant)
        return command_name(tool, tools) if tool else meant
    return next(iter(difflib.get_close_matches(name, [*commands, "done"], 1, 0.5)), "")


def usage_of(name: str, parameters: Parameters) -> str:
    """`view PATH [--types-only] [--depth N]`."""
    options = [each for each in parameters.every if each not in parameters.positional]
    written = [*map(_positional, parameters.positional), *map(_option, options)]
    return " ".join([name, *written])


def summary_of(tool: Tool) -> str:
    """The first sentence of what the tool does, or what fits of it."""
    sentence = " ".join(tool.schema.description.split()).partition(". ")[0].rstrip(".")
    return sentence if len(sentence) <= SUMMARY else f"{sentence[:SUMMARY].rpartition(' ')[0].rstrip(',:;')} …"


def explain(name: str, tool: Tool, tools: Toolset) -> str:
    """All that there is to know of a command."""
    parameters = parameters_of(tool.schema)
    others = [_dashed(each) for each in (*tool.shell_names, tool.name) if tools.named(each) is tool]
    also = [f"$({other})" for other in dict.fromkeys(others) if other != _dashed(name)]
    lines = [
        f"usage: $({usage_of(_dashed(name), parameters)})",
        tool.schema.description,
        *_details(parameters),
        *([f"Also: {', '.join(also)}"] if also else []),
    ]
    return "\n".join(lines)


def _details(parameters: Parameters) -> Iterator[str]:
    for each in parameters.every:
        about = str(each.schema.get("description", ""))
        default = each.schema.get("default")
        usual = "" if default is None or each.flag else f"default: {default}"
        if known := "; ".join(filter(None, (about, usual))):
            yield f"  {each.option.upper() if each in parameters.positional else f'--{each.option}'}  {known}"


def _positional(parameter: Parameter) -> str:
    word = "|".join(parameter.choices) if parameter.choices and not parameter.several else parameter.option.upper()
    word += "…" if parameter.several else ""
    return word if parameter.required else f"[{word}]"


def _option(parameter: Parameter) -> str:
    if parameter.flag:
        return f"[--{parameter.option}]"
    written = f"--{parameter.option} {_value(parameter)}"
    return written if parameter.required else f"[{written}]"


def _value(parameter: Parameter) -> str:
    if parameter.choices:
        return "|".join(parameter.choices)
    words = {"integer": "N", "number": "N", "object": "JSON", "array": "VALUE…"}
    return next((words[kind] for kind in parameter.kinds if kind in words), "TEXT")


def _dashed(name: str) -> str:
    return name.replace("_", "-")
