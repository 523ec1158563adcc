"""Default arguments that the user set for tools: `[tools.grep] context = 2`."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from denizen.config.settings import Rule
from denizen.errors import ConfigError
from denizen.messages import ToolResult
from denizen.ports.model import Schema
from denizen.ports.tool import CautiousTool, CheckedTool, PlanningTool, ReplyingTool, Tool, ToolContext, Toolset, Traits
from denizen.text.tool_aliases import resolve_alias

POLICY_ARGUMENTS = frozenset({"command", "path", "paths", "patch", "url", "unsandboxed"})
"""Arguments that the policy decides by: the call itself must give them."""
BUILT_IN_TOOLS = frozenset(
    {
        *("read", "write", "edit", "apply_patch", "ls", "find", "grep", "bash", "git", "web_fetch", "web_search"),
        *("view", "edit_symbol", "analyze", "package", "remember", "recall", "forget", "task", "ask", "message"),
        *("spawn", "subagent", "cron", "i2c", "spi", "checkpoint", "rollback", "jobs"),
        *("keep", "memory", "note", "notes"),
    }
)
"""Tools that not every profile has: the settings are for all profiles."""


class ToolWithDefaults(msgspec.Struct):
    """A tool whose calls get `defaults` for arguments they don't give; its schema tells the model."""

    tool: Tool
    defaults: Mapping[str, Any]
    name: str
    shell_names: Sequence[str]
    traits: Traits
    schema: Schema

    @property
    def plans(self) -> bool:
        """Whether the tool says what it would change in files."""
        return isinstance(self.tool, PlanningTool) and self.tool.plans

    def needs_yes(self, args: dict[str, Any]) -> bool:
        """Whether a person must agree."""
        return isinstance(self.tool, CautiousTool) and self.tool.needs_yes(self._with_defaults(args))

    def is_reply(self, args: dict[str, Any], chat: tuple[str, str]) -> bool:
        """Whether a call sends to the chat that its turn is for, and to no other."""
        return isinstance(self.tool, ReplyingTool) and self.tool.is_reply(self._with_defaults(args), chat)

    def check(self, args: dict[str, Any]) -> None:
        """Raises ToolRefused for what the tool would refuse."""
        if isinstance(self.tool, CheckedTool):
            self.tool.check(self._with_defaults(args))

    async def run(self, args: dict[str, Any], turn: ToolContext) -> ToolResult:
        """Run the tool; null isn't an argument."""
        return await self.tool.run(self._with_defaults(args), turn)

    def _with_defaults(self, args: dict[str, Any]) -> dict[str, Any]:
        return {**args, **{name: value for name, value in self.defaults.items() if args.get(name) is None}}


def with_defaults(tools: Sequence[Tool], settings: Mapping[str, Mapping[str, Any]]) -> list[Tool]:
    """The tools, with the defaults of the settings `tools`.

    Raises ConfigError for unknown tools and arguments, arguments that a call must give, and values that don't fit.
    """
    names = [tool.name for tool in tools]
    for name in settings:
        if name not in names and name not in BUILT_IN_TOOLS:
            raise ConfigError(f"tools.{name}: unknown tool {name!r}. {_nearest(name, names)}")
    found: list[Tool] = []
    for tool in tools:
        defaults, schema = settings.get(tool.name, {}), tool.schema
        if not defaults:
            found.append(tool)
            continue
        arguments = may_default(schema)
        for name, value in defaults.items():
            where = f"tools.{tool.name}.{name}"
            if name not in schema.parameters["properties"]:
                raise ConfigError(f"{where} isn't an argument of {tool.name}. {_nearest(name, arguments)}")
            if name not in arguments:
                raise ConfigError(f"{where} can't have a default: each call must give it. Remove the line.")
            if why := misfit(value, arguments[name]):
                given = msgspec.json.encode(value, enc_hook=str).decode()
                raise ConfigError(f"{where}{why}, and is {given}.")
        documented = {name: {**arguments[name], "default": value} for name, value in defaults.items()}
        parameters = {**schema.parameters, "properties": {**schema.parameters["properties"], **documented}}
        schema = msgspec.structs.replace(schema, parameters=parameters)
        found.append(ToolWithDefaults(tool, defaults, tool.name, tool.shell_names, tool.traits, schema))
    return found


def check_rules(rules: Sequence[Rule], tools: Toolset) -> None:
    """Raise ConfigError for a rule about an unknown tool: it would protect nothing.

    Tools of an installed extension that isn't loaded are known by its prefix: `notion_search`; so are those of MCP
    servers, also as a pattern: `mcp_github_*`.
    """
    from denizen.config.plugins import entry_points

    known = {"*", *BUILT_IN_TOOLS, *(tool.name for tool in tools)}
    unknown = {rule.tool for rule in rules} - known
    extensions = [f"{entry.name}_" for entry in entry_points("denizen.tools")] if unknown else []
    for number, rule in enumerate(rules):
        if rule.tool in unknown and not rule.tool.startswith(("mcp_", *extensions)):
            meant = resolve_alias(rule.tool, known)
            hint = f"Did you mean {meant}?" if meant else _nearest(rule.tool, known)
            raise ConfigError(f"policy.rules[{number}]: unknown tool {rule.tool!r}. {hint}")


def may_default(schema: Schema) -> dict[str, dict[str, Any]]:
    """The arguments of a tool that can be given a default, with their schemas."""
    required = {*schema.parameters.get("required", ())} | POLICY_ARGUMENTS
    return {name: kind for name, kind in schema.parameters["properties"].items() if name not in required}


def misfit(value: Any, schema: dict[str, Any]) -> str:
    """Why a value doesn't fit a schema, in words that follow the value's name; empty: it fits."""
    import fastjsonschema

    try:
        fastjsonschema.validate(schema, value)
    except fastjsonschema.JsonSchemaValueException as wrong:
        return wrong.message.removeprefix("data")
    return ""


def _nearest(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, 1, 0.5)
    return f"Did you mean {near[0]}?" if near else f"Available: {', '.join(known) or 'none'}."
