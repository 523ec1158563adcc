"""Schemas as providers take them."""

from typing import Any

import msgspec
import pytest

from denizen.models.request_fields import closed


class Point(msgspec.Struct):
    x: int
    y: float = 0.0


class Shape(msgspec.Struct):
    points: list[Point]
    name: str


def schema_of(type_: Any) -> dict[str, Any]:
    [schema], definitions = msgspec.json.schema_components([type_], ref_template="#/$defs/{name}")
    return {**schema, "$defs": definitions}


def test_every_object_is_closed_wherever_it_is() -> None:
    assert closed(schema_of(Shape)) == {
        "$ref": "#/$defs/Shape",
        "$defs": {
            "Shape": {
                "title": "Shape",
                "type": "object",
                "properties": {
                    "points": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
                    "name": {"type": "string"},
                },
                "required": ["points", "name"],
                "additionalProperties": False,
            },
            "Point": {
                "title": "Point",
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "number", "default": 0.0}},
                "required": ["x"],
                "additionalProperties": False,
            },
        },
    }


def test_optional_fields_can_be_ruled_out() -> None:
    assert closed(schema_of(Shape), all_required=True) is None
    assert closed({"type": "object", "properties": {}}, all_required=True)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "array", "items": {"type": "object", "properties": {}, "additionalProperties": True}},
        {"anyOf": [{"type": "string"}, {"type": "object"}]},
        {"type": "object", "properties": {"a": {"type": "object"}}},
    ],
)
def test_open_object_cannot_be_closed(schema: dict[str, Any]) -> None:
    assert closed(schema) is None


def test_limits_that_are_refused_are_left_out_but_not_fields_of_that_name() -> None:
    schema = {"type": "object", "properties": {"minimum": {"type": "integer", "minimum": 1}}, "minProperties": 1}
    assert closed(schema) == {
        "type": "object",
        "properties": {"minimum": {"type": "integer"}},
        "additionalProperties": False,
    }


def test_schema_itself_is_left_as_it_is() -> None:
    schema = schema_of(Shape)
    closed(schema)
    assert schema == schema_of(Shape)
