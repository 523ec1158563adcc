"""The tools as commands: how each is written, what the prompt says of them, and `$(help)`."""

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from denizen.config.pattern import pattern
from denizen.errors import ToolRefused
from denizen.messages import Text, ToolResult
from denizen.ports import Schema, Tool, ToolContext, Toolset, Traits
from denizen.text.tool_aliases import resolve_alias

MAX_COMMANDS = 10
"""Commands of one reply that are run (decisions, "Commands in text")."""

PROSE = frozenset({"done", "note", "ask", "memorize", "remember", "store"})
"""Commands that take what follows their name as a person would write it."""

COMMAND_LINES = frozenset({"command", "args"})
"""Parameters that are a command line themselves: they get the rest of the command unchanged."""

_MAX_SUMMARY_CHARS = 70
"""Characters of a tool's description in the prompt."""

_INTEGER = pattern(r"[+-]?[0-9]+")
_NUMBER = pattern(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_CONSTANTS: dict[str, dict[str, Any]] = {"boolean": {"true": True, "false": False}, "null": {"null": None}}

_GRAMMAR = """\
Act by commands in $(cmd) syntax, in plain text: not in code, not in a quotation. Multiple per turn OK: up to {most} run
in order, and the next message holds their outputs, numbered: [1] $ cmd. Never write an output yourself: it would be
made up. End your reply after the last command, and wait.

WordSplitter are as in a shell, but nothing is expanded. Quote what has blanks: 'it is' or "it's". Long text comes last:
$(write PATH <<'END'
any lines
END
)
The text of {prose} needs no quotes. $(help CMD) tells more. To mention a command put it in `code`.

$(done YOUR FINAL ANSWER) ends the session: the user sees the answer alone. So does a reply without a command."""

_MEMORY = """
Command outputs disappear after each turn. To retain information:
- $(keep) or $(keep 1 3) saves outputs to working memory
- $(note key fact here) records insights"""


class Parameter(msgspec.Struct, frozen=True):
    """One parameter as a command takes it: `name` is the schema's, `option` comes after `--`."""

    name: str
    option: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def flag(self) -> bool:
        """Whether it is given by its name alone."""
        return self.kinds == ["boolean"]

    @property
    def several(self) -> bool:
        """Whether it takes more than one word."""
        return "array" in self.kinds

    @property
    def choices(self) -> list[str]:
        """The words that it may be, where it is one of a few."""
        return [str(value) for option in _alternatives(self.schema) for value in _values(option)]

    @property
    def kinds(self) -> list[str]:
        """The JSON types that it may have, but for null."""
        return [kind for option in _alternatives(self.schema) if (kind := _kind(option)) != "null"]

    @property
    def expected(self) -> str:
        """What it takes, in words."""
        if self.choices and set(self.kinds) <= {"string"}:
            return "one of " + ", ".join(self.choices)
        return " or ".join({"object": "a JSON object"}.get(kind, kind) for kind in dict.fromkeys(self.kinds)) or "text"

    def value(self, text: str) -> Any:
        """The word as a value of the type that is wanted. Raises ValueError."""
        return _convert(text, self.schema)

    def usage(self, *, by_place: bool) -> str:
        """How it is written: `PATH`, `[--depth N]`."""
        if by_place:
            words = "|".join(self.choices) if self.choices and not self.several else self.option.upper()
            words += "…" if self.several else ""
        else:
            kinds = {"integer": "N", "number": "N", "object": "JSON", "array": "VALUE…"}
            value = next((kinds[kind] for kind in self.kinds if kind in kinds), "TEXT")
            words = f"--{self.option}" if self.flag else f"--{self.option} {'|'.join(self.choices) or value}"
        return words if self.required and not self.flag else f"[{words}]"


class Parameters(msgspec.Struct, frozen=True):
    """All that a tool takes. `positional` ones are given by their place, in this order; each also as an option."""

    every: Sequence[Parameter]
    positional: Sequence[Parameter]

    @property
    def command_line(self) -> bool:
        """Whether what follows the options is a command line of its own."""
        return [parameter.name in COMMAND_LINES for parameter in self.positional] == [True]

    def usage(self, name: str) -> str:
        """`view PATH [--types-only] [--depth N]`."""
        options = [each for each in self.every if each not in self.positional]
        places = [each.usage(by_place=True) for each in self.positional]
        return " ".join([name, *places, *(each.usage(by_place=False) for each in options)])


def parameters_of(schema: Schema) -> Parameters:
    """What the tool takes, and how.

    By place: what is required, in order, or the first of all if nothing is; after a choice (`add`, `list`) the text
    that follows it in the schema; and `path`. Flags never are.
    """
    required = schema.parameters.get("required", ())
    every = [
        Parameter(name, name.strip("_").replace("_", "-"), about if isinstance(about, dict) else {}, name in required)
        for name, about in schema.parameters.get("properties", {}).items()
    ]
    candidates = [parameter for parameter in every if not parameter.flag]
    chosen = [parameter for parameter in candidates if parameter.required] or candidates[:1]
    if chosen and chosen[-1].choices and not chosen[-1].several:
        after = candidates[candidates.index(chosen[-1]) + 1 :]
        chosen += [each for each in after if each.kinds == ["string"] and each not in chosen][:1]
    return Parameters(every, [*chosen, *(each for each in candidates if each.name == "path" and each not in chosen)])


# Values by their schema


def _alternatives(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return [option for option in options if isinstance(option, dict)]
    kind = schema.get("type")
    return [{**schema, "type": each} for each in kind] if isinstance(kind, list) else [schema]


def _values(schema: Mapping[str, Any]) -> list[Any]:
    return [schema["const"]] if "const" in schema else [*schema.get("enum", ())]


def _kind(schema: Mapping[str, Any]) -> str:
    return schema.get("type") or ("string" if _values(schema) else "")


def _convert(text: str, schema: Mapping[str, Any]) -> Any:
    """The first alternative that fits; text only if nothing else does."""
    order = {"array": 2, "object": 2, "": 3, "string": 4}
    for option in sorted(_alternatives(schema), key=lambda each: 0 if _values(each) else order.get(_kind(each), 1)):
        try:
            return _as(text, option)
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    raise ValueError(text)


def _as(text: str, schema: Mapping[str, Any]) -> Any:
    if values := _values(schema):
        return {plain_text(value): value for value in values}[text]
    match _kind(schema):
        case "string":
            return text
        case "integer" if _INTEGER.fullmatch(text):
            return int(text)
        case "number" if _NUMBER.fullmatch(text) and math.isfinite(float(text)):
            return int(text) if _INTEGER.fullmatch(text) else float(text)
        case ("boolean" | "null") as kind:
            return _CONSTANTS[kind][text]
        case "array":
            return _json(text, list) if text.startswith("[") else [_convert(text, schema.get("items", {}))]
        case "object":
            return _json(text, dict)
        case "":
            return _json(text, object) if text[:1] in {"[", "{"} else text
        case _:
            raise ValueError(text)


def plain_text(value: Any) -> str:
    """A value as a word: text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _json(text: str, kind: type[Any]) -> Any:
    value = msgspec.json.decode(text)
    if not isinstance(value, kind):
        raise TypeError(text)
    return value


# Names


def _commands_of(tools: Toolset) -> dict[str, Tool]:
    """The tools by the names that commands call them by: each by the first of its names that means it."""
    return {name: tool for tool in tools.listed for name in [command_name(tool, tools)] if name}


def command_name(tool: Tool, tools: Toolset) -> str:
    """What a command calls the tool; empty if its names all mean others."""
    return next(iter(_names_of(tool, tools)), "")


def _names_of(tool: Tool, tools: Toolset) -> list[str]:
    names = [name.replace("_", "-") for name in (*tool.shell_names, tool.name) if tools.named(name) is tool]
    return [*dict.fromkeys(names)]


def find_tool(name: str, tools: Toolset) -> Tool | None:
    """The tool that `$(name …)` means; `-` and `_` are the same."""
    return tools.named(name) or tools.named(name.replace("-", "_"))


def unknown_command(name: str, tools: Toolset) -> str:
    """Tells the model which command does what that name means elsewhere, or has the nearest name."""
    commands = _commands_of(tools)
    near = resolve_alias(name, {"done", *(tool.name for tool in commands.values())})
    if near and (tool := tools.get(near)):
        near = command_name(tool, tools)
    near = near or next(iter(difflib.get_close_matches(name, [*commands, "done"], 1, 0.5)), "")
    maybe = f"; did you mean $({near})?" if near else ";"
    return f"unknown command {name!r}{maybe} $(help) lists them"


# What the model sees


def grammar_of(tools: Toolset) -> str:
    """The end of the system prompt, with a line for each tool: the same tools give the same bytes."""
    commands = _commands_of(tools)
    lines = [f"$({parameters_of(tool.schema).usage(name)}) {_summary_of(tool)}" for name, tool in commands.items()]
    prose = ", ".join(["done", *(name for name in commands if name in PROSE)])
    memory = [_MEMORY] if "keep" in commands and "note" in commands else []
    grammar = _GRAMMAR.format(most=MAX_COMMANDS, prose=prose)
    return "\n".join(["<commands>", grammar, *memory, "", "$(done The answer is X because Y)", *lines, "</commands>"])


def _summary_of(tool: Tool) -> str:
    """The first sentence of what the tool does, or what fits of it."""
    sentence = " ".join(tool.schema.description.split()).partition(". ")[0].rstrip(".")
    if len(sentence) <= _MAX_SUMMARY_CHARS:
        return sentence
    return f"{sentence[:_MAX_SUMMARY_CHARS].rpartition(' ')[0].rstrip(',:;')} …"


class Help:
    """The tool that `$(help)` calls. `tools` are the others."""

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
        """All commands in a line each, or one in full. Raises ToolRefused for an unknown name."""
        if wrong := [key for key in args if key != "command"]:
            raise ToolRefused(f"help: `{wrong[0]}` is unknown; it takes (command?)")
        if name := str(args.get("command") or "").strip("$() "):
            text = self._about(name)
        else:
            commands = _commands_of(self._tools).items()
            lines = [f"{parameters_of(tool.schema).usage(name)}  {_summary_of(tool)}" for name, tool in commands]
            text = "\n".join(["done ANSWER  End the turn with this answer", *lines])
        return ToolResult(turn.call_id, self.name, [Text(text)])

    def _about(self, name: str) -> str:
        tool = find_tool(name, self._tools)
        if tool is None and name == "done":
            return (
                "usage: $(done ANSWER)\nEnd the turn with this answer, once the other commands of the reply have run."
            )
        if tool is None:
            raise ToolRefused(unknown_command(name, self._tools))
        name, parameters = name.replace("_", "-"), parameters_of(tool.schema)
        lines = [f"usage: $({parameters.usage(name)})", tool.schema.description]
        for each in parameters.every:
            default = each.schema.get("default")
            usual = "" if default is None or each.flag else f"default: {default}"
            if about := "; ".join(filter(None, (str(each.schema.get("description", "")), usual))):
                written = each.option.upper() if each in parameters.positional else f"--{each.option}"
                lines.append(f"  {written}  {about}")
        others = [f"$({other})" for other in _names_of(tool, self._tools) if other != name]
        return "\n".join([*lines, *([f"Also: {', '.join(others)}"] if others else [])])
