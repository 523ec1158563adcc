"""Fields that requests of several formats share: tools, the schema of the answer, the user's own fields."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from denizen.ports import ModelRequest, Schema


def tools_and_format(
    request: ModelRequest, when: Literal["never", "object", "alone", "always"]
) -> tuple[Sequence[Schema], dict[str, Any] | None]:
    """The tools that go along, and the format of the answer in OpenAI's terms; `when` is the provider's `json_schema`.

    Where a schema can't go with tools, they are left out once no more of them are needed.
    """
    schema = request.output_schema
    tools = () if schema and request.answers_now and when in {"alone", "object"} else request.tools
    if not schema or when == "never" or (tools and when != "always"):
        return tools, None
    if when == "object":
        return tools, {"type": "json_object"}
    strict = closed(schema, all_required=True)  # held to strictly where that is possible
    return tools, {"type": "json_schema", "name": "answer", "schema": strict or schema, "strict": strict is not None}


def shortened(id: str, most: int) -> str:
    """The id of a call, or a hash of it where a provider takes no id of that many characters."""
    return id if len(id) <= most else hashlib.sha256(id.encode("utf-8", "replace")).hexdigest()[:most]


def with_options(fields: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request with the user's own over them.

    Tools and includes in `extra_body` are added to ours; a tool replaces ours of the same name.
    """
    extra = options.get("extra_body") or {}
    chosen = {name: value for name, value in options.items() if value is not None and name != "extra_body"}
    merged = {**fields, **chosen, **extra}
    if "include" in fields and extra.get("include"):
        merged["include"] = [*fields["include"], *extra["include"]]
    if "tools" in fields and extra.get("tools"):
        taken = {tool.get("name", "") for tool in extra["tools"]}
        merged["tools"] = [*(tool for tool in fields["tools"] if tool.get("name") not in taken), *extra["tools"]]
    return merged


_ALLOWED_KEYWORDS: Final = frozenset(
    {"$ref", "const", "default", "description", "enum", "format", "required", "title", "type"}
)  # limits of numbers and lengths are refused; whoever asked for the answer checks them
_SCHEMA_MAPS: Final = ("$defs", "definitions", "properties")
_SUBSCHEMAS: Final = ("allOf", "anyOf", "items")


class _Open(Exception):
    """An object may hold fields that the schema doesn't name."""


def closed(schema: dict[str, Any], *, all_required: bool = False) -> dict[str, Any] | None:
    """The schema with every object closed to further fields; None if that would change its meaning.

    `all_required`: also None if a field may be left out.
    """
    try:
        return _closed(schema, all_required)
    except _Open:
        return None


def _closed(node: Any, all_required: bool) -> Any:
    if isinstance(node, list):
        return [_closed(each, all_required) for each in node]
    if not isinstance(node, dict):
        return node
    made = {key: value for key, value in node.items() if key in _ALLOWED_KEYWORDS}
    made |= {key: _closed(node[key], all_required) for key in _SUBSCHEMAS if key in node}
    for key in _SCHEMA_MAPS:
        if key in node:
            made[key] = {name: _closed(each, all_required) for name, each in node[key].items()}
    if node.get("type") == "object":
        fields = node.get("properties")
        if fields is None or node.get("additionalProperties"):
            raise _Open
        if all_required and set(fields) - set(node.get("required", ())):
            raise _Open
        made["additionalProperties"] = False
    return made
