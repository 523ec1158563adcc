"""A tool's parameters as a command takes them, from its JSON schema alone."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from denizen.ports import Schema

COMMAND_LINES = frozenset({"command", "args"})
"""Parameters that are a command line themselves: they get the rest of the command as it stands."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_CONSTANTS: dict[str, dict[str, Any]] = {"boolean": {"true": True, "false": False}, "null": {"null": None}}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: `name` is the schema's, `option` what stands behind `--`."""

    name: str
    option: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def flag(self) -> bool:
        """Whether it is given by its name alone."""
        return self.kinds == ["boolean"]

    @property
    def several(self) -> bool:
        """Whether it takes more than one word."""
        return "array" in self.kinds

    @property
    def choices(self) -> list[str]:
        """The words that it may be, where it is one of a few."""
        return [str(value) for option in _alternatives(self.schema) for value in _values(option)]

    @property
    def kinds(self) -> list[str]:
        """The JSON types that it may have, but for null."""
        kinds = [_kind(option) for option in _alternatives(self.schema)]
        return [kind for kind in kinds if kind != "null"]

    @property
    def expected(self) -> str:
        """What it takes, in words."""
        if self.choices and set(self.kinds) <= {"string"}:
            return "one of " + ", ".join(self.choices)
        return " or ".join({"object": "a JSON object"}.get(kind, kind) for kind in dict.fromkeys(self.kinds)) or "text"

    def value(self, text: str) -> Any:
        """The word as a value of the type that is wanted. Raises ValueError."""
        return _convert(text, self.schema)


@dataclass(frozen=True, slots=True)
class Parameters:
    """All that a tool takes. `positional` ones are given by their place, in this order; each also as an option."""

    every: Sequence[Parameter]
    positional: Sequence[Parameter]

    @property
    def command_line(self) -> bool:
        """Whether what stands behind the options is a command line of its own."""
        return [parameter.name in COMMAND_LINES for parameter in self.positional] == [True]


def parameters_of(schema: Schema) -> Parameters:
    """What the tool takes, and how.

    By place: what is required, in order, or the first of all where nothing is; after a choice (`add`, `list`) the text
    that follows it in the schema; and `path`. Flags never are.
    """
    required = schema.parameters.get("required", ())
    every = [
        Parameter(name, name.strip("_").replace("_", "-"), about if isinstance(about, dict) else {}, name in required)
        for name, about in schema.parameters.get("properties", {}).items()
    ]
    return Parameters(every, [*_positional([parameter for parameter in every if not parameter.flag])])


def _positional(candidates: Sequence[Parameter]) -> Iterator[Parameter]:
    chosen = [parameter for parameter in candidates if parameter.required] or candidates[:1]
    if chosen and chosen[-1].choices and not chosen[-1].several:
        after = candidates[candidates.index(chosen[-1]) + 1 :]
        chosen = [*chosen, *[each for each in after if each.kinds == ["string"] and each not in chosen][:1]]
    yield from chosen
    yield from (each for each in candidates if each.name == "path" and each not in chosen)


def _alternatives(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return [option for option in options if isinstance(option, dict)]
    kind = schema.get("type")
    return [{**schema, "type": each} for each in kind] if isinstance(kind, list) else [schema]


def _values(schema: Mapping[str, Any]) -> list[Any]:
    return [schema["const"]] if "const" in schema else [*schema.get("enum", ())]


def _kind(schema: Mapping[str, Any]) -> str:
    return schema.get("type") or ("string" if _values(schema) else "")


def _convert(text: str, schema: Mapping[str, Any]) -> Any:
    """The first alternative that fits; text only where nothing else does."""
    for option in sorted(_alternatives(schema), key=_late):
        try:
            return _as(text, option)
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    raise ValueError(text)


def _late(schema: Mapping[str, Any]) -> int:
    if _values(schema):
        return 0
    return {"array": 2, "object": 2, "": 3, "string": 4}.get(_kind(schema), 1)


def _as(text: str, schema: Mapping[str, Any]) -> Any:
    if values := _values(schema):
        return {_written(value): value for value in values}[text]
    match _kind(schema):
        case "string":
            return text
        case "integer" if _INTEGER.fullmatch(text):
            return int(text)
        case "number" if _NUMBER.fullmatch(text):
            return int(text) if _INTEGER.fullmatch(text) else _finite(float(text))
        case "boolean" | "null":
            return _CONSTANTS[_kind(schema)][text]
        case "array":
            return _json(text, list) if text.startswith("[") else [_convert(text, schema.get("items", {}))]
        case "object":
            return _json(text, dict)
        case "":
            return _json(text, object) if text[:1] in {"[", "{"} else text
        case _:
            raise ValueError(text)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError(number)
    return number


def _json(text: str, kind: type[Any]) -> Any:
    value = msgspec.json.decode(text)
    if not isinstance(value, kind):
        raise TypeError(text)
    return value
