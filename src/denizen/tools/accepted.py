"""Names and schemas of tools as every provider takes them."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from denizen.config.pattern import pattern
from denizen.ports import Schema, Tool
from denizen.tools.policy.defaults import ToolWithDefaults

MAX_NAME_CHARS: Final = 64
MAX_DESCRIPTION_CHARS: Final = 1024
_REFUSED_AT_THE_TOP: Final = {"$schema", "$id", "anyOf", "oneOf", "allOf", "not"}
_FOREIGN: Final = pattern(r"[^a-zA-Z0-9_-]+|^[^a-zA-Z]+")


def accepted_tools(tools: Sequence[Tool]) -> list[Tool]:
    """The tools, each under a name and with a schema that every provider takes."""
    names = accepted_names({tool.name: _FOREIGN.sub("_", tool.name).strip("_") or "tool" for tool in tools})
    accepted: list[Tool] = []
    for tool in tools:
        name = names[tool.name]
        schema = accepted_schema(name, tool.schema.description, tool.schema.parameters)
        if (name, schema) != (tool.name, tool.schema):
            tool = ToolWithDefaults(tool, {}, name, tool.shell_names, tool.traits, schema)
        accepted.append(tool)
    return accepted


def accepted_schema(name: str, description: str, parameters: Mapping[str, Any]) -> Schema:
    """The schema of an object, without what providers refuse at its top, and with a description of bounded length."""
    kept = {key: value for key, value in parameters.items() if key not in _REFUSED_AT_THE_TOP}
    if len(description) > MAX_DESCRIPTION_CHARS:
        description = f"{description[: MAX_DESCRIPTION_CHARS - 1]}…"
    return Schema(name, description or name, {"type": "object", "properties": {}, **kept})


def accepted_names(wanted: Mapping[str, str], reserved: Iterable[str] = ()) -> dict[str, str]:
    """A name for each key: the wanted one, unless it is too long, reserved or wanted twice."""
    taken = Counter([*reserved, *wanted.values()])

    def unique(key: str, name: str) -> str:
        if taken[name] == 1 and len(name) <= MAX_NAME_CHARS:
            return name
        return f"{name[: MAX_NAME_CHARS - 7]}_{hashlib.sha256(key.encode()).hexdigest()[:6]}"

    return {key: unique(key, name) for key, name in wanted.items()}
