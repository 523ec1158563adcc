"""The types of settings, in the words of a person who writes TOML."""

import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from denizen.config.settings import Config

_FOUND_BY_US = {"home", "workspace"}
_WORDS: dict[Any, str] = {
    str: "a string",
    Path: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
}
_FOUND = _WORDS | {list: "a list", dict: "a table", type(None): "nothing"}


def fields(table: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """The settings of a table by name, its own before those that it shares with others, and its tables last."""
    skipped = _FOUND_BY_US if table is Config else frozenset[str]()
    shared = {field.name for field in msgspec.structs.fields(table)} - table.__annotations__.keys()
    found = sorted(msgspec.structs.fields(table), key=lambda field: (is_table(field.type), field.name in shared))
    return {field.name: field for field in found if field.name not in skipped}


def is_table(kind: Any) -> bool:
    """Whether a setting of that type is a table with settings of its own."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def choices(kind: Any) -> tuple[str, ...]:
    """What may be chosen from; empty where anything of the type is right."""
    return get_args(kind) if get_origin(kind) is Literal else ()


def describe(kind: Any) -> str:
    """What a setting of that type takes."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        meta = args[1]
        return f"{describe(args[0])} {'above 0' if meta.ge is None else f'of at least {meta.ge}'}"
    if origin in {types.UnionType, Union}:
        return " or ".join(describe(each) for each in args if each is not type(None))
    if origin is Literal:
        quoted = [f'"{choice}"' for choice in args]
        return f"{', '.join(quoted[:-1])} or {quoted[-1]}"
    if origin is list:
        return "a list of tables" if is_table(args[0]) else "a list of strings"
    if origin is dict and args[1] is str:
        return "a table of strings"
    return _WORDS.get(kind, "a table")


def describe_found(value: Any, kind: Any) -> str:
    """What stands there instead; the text itself only where a choice is wanted, for elsewhere it may be a secret."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float) and get_origin(kind) is Annotated:
        return str(value)
    if isinstance(value, str) and choices(kind):
        return f'"{value}"'
    return _FOUND.get(type(value), "a date or a time")


def as_path(kind: Any, value: Any) -> Any:
    """A path from its text: what msgspec asks for a type that it doesn't know."""
    if not isinstance(value, str | Path):
        raise TypeError("a path is a string")
    return kind(value)
