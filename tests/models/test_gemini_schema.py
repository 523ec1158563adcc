"""Schemas as Gemini takes them."""

from typing import Any

import pytest

from denizen.models.gemini_schema import gemini_schema

TEXT = {"type": "string"}


def test_references_are_resolved_wherever_they_are() -> None:
    schema = {
        "type": "object",
        "properties": {
            "from": {"$ref": "#/$defs/Place", "description": "Where it starts."},
            "via": {"type": "array", "items": {"$ref": "#/definitions/a~1b"}},
            "to": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
        },
        "required": ["from"],
        "$defs": {"Place": {"type": "object", "properties": {"name": TEXT}}},
        "definitions": {"a/b": {"$ref": "#/$defs/Place"}},
    }
    place = {"type": "object", "properties": {"name": TEXT}}
    assert gemini_schema(schema) == {
        "type": "object",
        "properties": {
            "from": place | {"description": "Where it starts."},
            "via": {"type": "array", "items": place},
            "to": {"anyOf": [place, {"type": "null"}]},
        },
        "required": ["from"],
    }


def test_schema_within_itself_ends() -> None:
    node = {"type": "object", "properties": {"name": TEXT, "next": {"$ref": "#/$defs/Node"}}}
    made = gemini_schema({"$ref": "#/$defs/Node", "$defs": {"Node": node}})
    assert made == {"type": "object", "properties": {"name": TEXT, "next": {"type": "object"}}}


def test_schemas_that_refer_to_each_other_do_not_explode() -> None:
    fields = {f"n{number}": {"$ref": f"#/$defs/N{number}"} for number in range(30)}
    defs = {name.upper(): {"type": "object", "properties": fields} for name in fields}
    made = gemini_schema({"type": "object", "properties": fields, "$defs": defs})
    assert 400 < str(made).count("properties") < 600
    assert made["properties"]["n29"]["type"] == "object"


def test_all_of_is_merged() -> None:
    base = {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}
    schema = {
        "allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"b": TEXT}, "required": ["b"]}],
        "description": "Both.",
        "$defs": {"Base": base},
    }
    assert gemini_schema(schema) == {
        "type": "object",
        "properties": {"a": TEXT, "b": TEXT},
        "required": ["a", "b"],
        "description": "Both.",
    }


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "format": "email", "minLength": 1, "default": "x"}, TEXT),
        ({"type": "string", "format": "date-time", "pattern": "^2"}, {**TEXT, "format": "date-time", "pattern": "^2"}),
        ({"type": "integer", "exclusiveMinimum": 0, "maximum": 5}, {"type": "integer", "maximum": 5}),
        ({"const": "a", "$comment": "x"}, {"enum": ["a"]}),
        ({"type": ["string", "null"], "enum": ["a", None]}, {"type": ["string", "null"], "enum": ["a"]}),
        ({"type": "boolean", "const": True}, {"type": "boolean"}),
        ({"oneOf": [TEXT, {"const": 1}]}, {"anyOf": [TEXT, {"enum": [1]}]}),
        ({"type": "array", "prefixItems": [{"const": 1}]}, {"type": "array", "prefixItems": [{"enum": [1]}]}),
        (
            {"type": "object", "additionalProperties": {"const": 1}},
            {"type": "object", "additionalProperties": {"enum": [1]}},
        ),
        (
            {"type": "object", "properties": {"pattern": {"type": "x", "not": {}}}},
            {"type": "object", "properties": {"pattern": {"type": "x"}}},
        ),
        (
            {"type": "object", "properties": {"any": True}, "required": ["any"], "allOf": [True]},
            {"type": "object", "properties": {"any": {}}, "required": ["any"]},
        ),
        (
            {"properties": None, "required": None, "allOf": [{"properties": {"a": TEXT}, "required": ["a"]}]},
            {"properties": {"a": TEXT}, "required": ["a"]},
        ),
        ({"$ref": "https://example.com/schema", "title": "T"}, {"title": "T"}),
        ({"$ref": "#/$defs/None"}, {}),
    ],
)
def test_what_is_refused_is_taken_out(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    assert gemini_schema(schema) == expected
