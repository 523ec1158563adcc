"""Arguments come in the types that the tool's schema wants."""

from typing import Any

import pytest

from denizen import tool
from denizen.actions import recover_calls
from denizen.ports import Toolset


def _given(schema: dict[str, Any], written: str, **more: Any) -> Any:
    """What the parameter `x` gets where a form has only text for it."""
    tools = [{"name": "f", "parameters": {"properties": {"x": schema}, **more}}]
    call, *_ = recover_calls(f"<function=f><parameter=x>{written}</parameter></function>", tools).calls
    return call.args.get("x")


@pytest.mark.parametrize(
    ("schema", "written", "meant"),
    [
        ({"type": "string"}, "42", "42"),
        ({"type": "string"}, '"quoted"', '"quoted"'),
        ({"type": "string"}, "true", "true"),
        ({"type": "string"}, '{"a": 1}', '{"a": 1}'),
        ({"type": "string"}, "\nline\n\n", "line\n"),
        ({"type": "integer"}, "42", 42),
        ({"type": "integer"}, " 42 ", 42),
        ({"type": "integer"}, "007", 7),
        ({"type": "integer"}, "5.0", 5),
        ({"type": "integer"}, "many", "many"),
        ({"type": "number"}, "42", 42),
        ({"type": "number"}, "-1.5e3", -1500.0),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "False", False),
        ({"type": "boolean"}, "no", False),
        ({"type": "array"}, "['a', 'b']", ["a", "b"]),
        ({"type": "array", "items": {"type": "integer"}}, '["1", 2]', [1, 2]),
        ({"type": "object"}, '{"a": [1]}', {"a": [1]}),
        ({"type": "object", "properties": {"n": {"type": "string"}}}, '{"n": 1}', {"n": "1"}),
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["string", "null"]}, "nothing", "nothing"),
        ({"type": ["string", "integer"]}, "42", 42),
        ({"type": ["string", "integer"]}, "42 euros", "42 euros"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "3", 3),
        ({"enum": ["c", "f"]}, "c", "c"),
        ({"enum": [1, 2]}, "2", 2),
        ({"$ref": "#/$defs/Size"}, "3", 3),
        ({}, "3", 3),
        ({}, "[1, 2", [1, 2]),
        ({}, "plain words", "plain words"),
    ],
)
def test_text_becomes_what_the_schema_wants(schema: dict[str, Any], written: str, meant: Any) -> None:
    given = _given(schema, written, **{"$defs": {"Size": {"type": "integer"}}})
    assert given == meant
    assert type(given) is type(meant)


@pytest.mark.parametrize(
    ("schema", "written", "meant"),
    [
        ({"type": "string"}, "42", "42"),
        ({"type": "string"}, "true", "true"),
        ({"type": "integer"}, '"42"', 42),
        ({"type": "boolean"}, '"true"', True),
        ({"type": "integer"}, "5.0", 5),
        ({"type": "object"}, '"{\\"a\\": 1}"', {"a": 1}),
        ({"type": "array"}, '"[1]"', [1]),
        ({"type": "string"}, '"[1]"', "[1]"),
    ],
)
def test_values_of_another_type_are_converted(schema: dict[str, Any], written: str, meant: Any) -> None:
    tools = [{"name": "f", "parameters": {"properties": {"x": schema}}}]
    (call,) = recover_calls(f'<tool_call>{{"name": "f", "arguments": {{"x": {written}}}}}</tool_call>', tools).calls
    assert call.args == {"x": meant}


def test_arguments_that_the_tool_doesnt_take_are_left_out_where_it_has_what_it_needs() -> None:
    properties = {"properties": {"x": {"type": "string"}}}
    text = '<tool_call>{"name": "f", "arguments": {"x": "1", "y": 2}}</tool_call>'
    for more, kept in [({}, {"x": "1"}), ({"additionalProperties": True}, {"x": "1", "y": 2})]:
        (call,) = recover_calls(text, [{"name": "f", "parameters": properties | more}]).calls
        assert call.args == kept


def test_they_are_kept_where_something_is_missing_so_that_the_tool_can_say_what() -> None:
    parameters = {"properties": {"x": {}}, "required": ["x"]}
    (call,) = recover_calls('TOOL: f(y="2")', [{"name": "f", "parameters": parameters}]).calls
    assert call.args == {"y": "2"}


def test_arguments_without_names_are_the_tools_in_its_order() -> None:
    parameters = {"properties": {"path": {"type": "string"}, "lines": {"type": "integer"}}}
    (call,) = recover_calls("[f('a.txt', lines=3)]", [{"name": "f", "parameters": parameters}]).calls
    assert call.args == {"path": "a.txt", "lines": 3}


def test_quotes_within_a_quoted_argument_end_nothing() -> None:
    tools = [{"name": "bash", "parameters": {"properties": {"command": {"type": "string"}}}}]
    (call,) = recover_calls("<tool_call>bash(command='sed -n '1,2p' a.txt')</tool_call>", tools).calls
    assert call.args == {"command": "sed -n '1,2p' a.txt"}


def test_escapes_are_read_as_json_and_python_have_them() -> None:
    tools = [{"name": "f", "parameters": {}}]
    text = r'<tool_call>{"name": "f", "arguments": {"x": "a\n\t\"\u00e9\ud83d\ude00\/\\d"}}</tool_call>'
    assert recover_calls(text, tools).calls[0].args == {"x": 'a\n\t"é😀/\\d'}
    assert recover_calls(r"[f(x='it\'s \x41 \d')]", tools).calls[0].args == {"x": "it's A \\d"}
    assert recover_calls('<tool_call>f(x="""a "b"\nc""")</tool_call>', tools).calls[0].args == {"x": 'a "b"\nc'}


def test_half_a_surrogate_pair_can_be_written_anywhere() -> None:
    (call,) = recover_calls(
        r'<tool_call>{"name": "f", "arguments": {"x": "\ud83d"}}</tool_call>', [{"name": "f"}]
    ).calls
    assert call.args["x"].encode("utf-8")


@tool
def weather(city: str, days: int = 1) -> str:
    """The weather of a city."""
    return f"{city} {days}"


def test_our_own_tools_and_a_set_of_them_are_tools() -> None:
    city, days = "<arg_key>city</arg_key><arg_value>Rome</arg_value>", "<arg_key>days</arg_key><arg_value>2</arg_value>"
    text = f"<tool_call>weather{city}{days}</tool_call>"
    for tools in ([weather], Toolset([weather])):
        assert [call.args for call in recover_calls(text, tools).calls] == [{"city": "Rome", "days": 2}]


def test_tools_as_the_providers_are_told_them_are_tools() -> None:
    told = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": {"type": "integer"}}}}}
    assert recover_calls("f(x='1')", [told]).calls[0].args == {"x": 1}
    assert recover_calls("f(x='1')", [{"name": None, "parameters": None}, {}]).calls == []
