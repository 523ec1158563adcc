"""JSON schemas as Gemini takes them.

https://ai.google.dev/gemini-api/docs/structured-output, `responseJsonSchema` and `parametersJsonSchema` in
https://ai.google.dev/api/generate-content
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

Json = dict[str, Any]

_ALLOWED_KEYWORDS: Final = frozenset(
    {
        "additionalProperties",
        "anyOf",
        "description",
        "enum",
        "format",
        "items",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "pattern",
        "prefixItems",
        "properties",
        "propertyOrdering",
        "required",
        "title",
        "type",
    }
)  # anything else is refused, or passed over; whoever asked for the answer checks it
_FORMATS: Final = frozenset({"date-time", "date", "time", "duration", "int32", "int64", "float", "double"})

MAX_REFERENCES: Final = 500
"""References that are resolved: definitions that refer to each other would grow without end."""

MAX_REFERENCE_DEPTH: Final = 20
"""References within each other that are."""


def gemini_schema(schema: Json) -> Json:
    """The schema with its references resolved, and without what is refused."""
    return _cleaned(schema, _Source(schema, iter(range(MAX_REFERENCES))), ())


class _Source(NamedTuple):
    """The whole schema, and how many more references of it are resolved."""

    schema: Json
    left: Iterator[int]


def _cleaned(node: Json, source: _Source, inside: Sequence[str]) -> Json:
    """A part of a schema; `inside` are the references that led to it: one that leads to itself ends there."""
    node, inside = _merged(node, source, inside)
    made = {name: value for name, value in node.items() if name in _ALLOWED_KEYWORDS}
    if "const" in node:
        made["enum"] = [node["const"]]
    if isinstance(values := made.pop("enum", None), list):
        known = [each for each in values if isinstance(each, str | int | float) and not isinstance(each, bool)]
        made |= {"enum": known} if known else {}
    if made.get("format") not in _FORMATS:
        made.pop("format", None)
    if isinstance(choices := node.get("oneOf"), list):
        made["anyOf"] = choices
    for name in ("anyOf", "prefixItems"):
        if isinstance(made.get(name), list):
            made[name] = [_cleaned(each, source, inside) for each in made[name] if isinstance(each, dict)]
    for name in ("items", "additionalProperties"):
        if isinstance(made.get(name), dict):
            made[name] = _cleaned(made[name], source, inside)
    if isinstance(fields := made.get("properties"), dict):
        made["properties"] = {
            name: _cleaned(each, source, inside) if isinstance(each, dict) else {} for name, each in fields.items()
        }
    return made


def _merged(node: Json, source: _Source, inside: Sequence[str]) -> tuple[Json, Sequence[str]]:
    """The schema with what it refers to, and with all that `allOf` holds."""
    if isinstance(reference := node.get("$ref"), str):
        rest = {name: value for name, value in node.items() if name != "$ref"}
        if reference in inside or len(inside) == MAX_REFERENCE_DEPTH or next(source.left, None) is None:
            return {"type": "object"} | rest, inside
        return _merged(_found(reference, source.schema) | rest, source, (*inside, reference))
    for part in [each for each in node.get("allOf") or () if isinstance(each, dict)]:
        part, inside = _merged(part, source, inside)
        fields = {**(node.get("properties") or {}), **(part.get("properties") or {})}
        required = [*dict.fromkeys([*(node.get("required") or ()), *(part.get("required") or ())])]
        node = part | node | ({"properties": fields} if fields else {}) | ({"required": required} if required else {})
    return node, inside


def _found(reference: str, root: Json) -> Json:
    """The target of a reference within the schema; empty if it points elsewhere."""
    place: Any = root
    for step in reference.split("/")[1:]:
        place = place.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(place, dict) else None
    return place if isinstance(place, dict) and reference.startswith("#") else {}
