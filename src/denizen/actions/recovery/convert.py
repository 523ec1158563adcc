"""Arguments in the types that a tool's schema wants."""

from collections.abc import Mapping
from typing import Any, Final

from denizen.actions.recovery.scanner import Scanner, WorkLimitReached
from denizen.actions.recovery.values import Unreadable, Untyped, Verbatim, read_whole

_KINDS: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}
_BOOLEANS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_WRAPPED: Final = ("arguments", "args", "parameters", "params", "input", "kwargs")
"""Names of a single argument that holds all the others."""


class Converter:
    """Converts the arguments of one call, by its tool's JSON schema."""

    def __init__(self, schema: Mapping[str, Any], scanner: Scanner) -> None:
        self._schema = schema
        self._scanner = scanner
        self._parts = {**schema.get("definitions", {}), **schema.get("$defs", {})}

    def arguments(self, args: dict[str, Any]) -> dict[str, Any]:
        """The arguments; what can't be converted stays as it is, for the tool to refuse.

        Models that write calls as text invent arguments: they are left out where all that is required is there.
        """
        properties = self._schema.get("properties") or {}
        args = self._unwrapped(args, properties)
        converted = {name: self.value(value, properties.get(name, {})) for name, value in args.items()}
        required = self._schema.get("required") or []
        if (
            not properties
            or self._schema.get("additionalProperties")
            or any(name not in converted for name in required)
        ):
            return converted
        return {name: value for name, value in converted.items() if name in properties}

    def value(self, value: Any, schema: Any) -> Any:
        """One value by its schema."""
        schema = self._resolved(schema)
        kinds = _kinds(schema)
        if isinstance(value, Untyped | Verbatim) or (isinstance(value, str) and kinds and "string" not in kinds):
            return self._typed(value, schema, kinds)
        if isinstance(value, dict):
            properties = self._alternative(schema, "object").get("properties") or {}
            if kinds == {"array"} and len(value) == 1:  # elements in an element (MiniMax)
                (items,) = value.values()
                return self.value(items if isinstance(items, list) else [items], schema)
            return {name: self.value(item, properties.get(name, {})) for name, item in value.items()}
        if isinstance(value, list):
            items = self._alternative(schema, "array").get("items", {})
            return [self.value(item, items) for item in value]
        if kinds == {"string"} and isinstance(
            value, int | float
        ):  # a number or a truth value as the text that was meant
            return str(value).lower() if isinstance(value, bool) else str(value)
        return int(value) if kinds == {"integer"} and isinstance(value, float) and value.is_integer() else value

    def _typed(self, written: str, schema: Mapping[str, Any], kinds: set[str]) -> Any:
        """The text as a value of one of the kinds; where it is none of them, as it is."""
        text = written[:]  # a plain string
        if kinds == {"string"} or (not kinds and isinstance(written, Verbatim)):
            return text
        try:
            value: Any = read_whole(text.strip(), self._scanner)
        except (Unreadable, WorkLimitReached):
            value = text
        if isinstance(value, Untyped) and value.isascii() and value.lstrip("+-").isdigit() and len(value) < 300:
            value = int(value)
        kind = _KINDS.get(type(value), "string")
        if kind != "string":
            if not kinds or kind in kinds or (kind == "integer" and "number" in kinds):
                return self.value(value, schema) if kind in {"array", "object"} else value
            if kind == "number" and "integer" in kinds and float(value).is_integer():
                return int(value)
        if "boolean" in kinds and "string" not in kinds:
            return _BOOLEANS.get(text.strip().lower(), text)
        return text

    def _unwrapped(self, args: dict[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that a single one holds, where that isn't the tool's own."""
        name = next(iter(args), "")
        if len(args) != 1 or name not in _WRAPPED or name in properties:
            return args
        inner = self.value(args[name], {"type": "object"})
        return inner if isinstance(inner, dict) and inner.keys() <= properties.keys() else args

    def _alternative(self, schema: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
        """The one of a union's schemas that a value of this kind fulfils; else the schema."""
        choices = map(self._resolved, (*(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())))
        return next((choice for choice in choices if kind in _kinds(choice)), schema)

    def _resolved(self, schema: Any) -> Mapping[str, Any]:
        for _ in range(8):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                break
            schema = self._parts.get(schema["$ref"].rpartition("/")[2], {})
        return schema if isinstance(schema, dict) else {}


def _kinds(schema: Mapping[str, Any], depth: int = 0) -> set[str]:
    """The types that a schema allows; empty: any."""
    if "enum" in schema and "type" not in schema:
        return {_KINDS.get(type(value), "string") for value in schema["enum"]}
    kind = schema.get("type")
    if isinstance(kind, str):
        return {kind}
    if isinstance(kind, list):
        return {*kind}
    choices = [*(schema.get("anyOf") or []), *(schema.get("oneOf") or [])]
    found = [_kinds(choice, depth + 1) for choice in choices if isinstance(choice, dict) and depth < 8]
    return set[str]().union(*found) if all(found) else set()
