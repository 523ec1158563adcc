"""JSON schemas as providers take them that make a model's answer fulfil one."""

from typing import Any, Final

_KEPT: Final = frozenset(
    {"$ref", "const", "default", "description", "enum", "format", "required", "title", "type"}
)  # limits of numbers and lengths are refused; whoever asked for the answer checks them
_NAMED: Final = ("$defs", "definitions", "properties")
_NESTED: Final = ("allOf", "anyOf", "items")


class _Open(Exception):
    """An object may hold fields that the schema doesn't name."""


def closed(schema: dict[str, Any], *, all_required: bool = False) -> dict[str, Any] | None:
    """The schema with every object closed to further fields; None where that would change its meaning.

    `all_required`: also None where a field may be left out.
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
    made = {key: value for key, value in node.items() if key in _KEPT}
    made |= {key: _closed(node[key], all_required) for key in _NESTED if key in node}
    for key in _NAMED:
        if key in node:
            made[key] = {name: _closed(each, all_required) for name, each in node[key].items()}
    if node.get("type") == "object":
        _check(node, all_required)
        made["additionalProperties"] = False
    return made


def _check(node: dict[str, Any], all_required: bool) -> None:
    fields = node.get("properties")
    if fields is None or node.get("additionalProperties"):
        raise _Open
    if all_required and set(fields) - set(node.get("required", ())):
        raise _Open
