"""A function's parameters: as the JSON schema that a model is told, and as a check of the arguments that it sends."""

import difflib
import inspect
import json
import re
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from denizen.errors import ToolRefused
from denizen.json_type import JsonType
from denizen.ports import ToolContext

_ARGS = re.compile(r"^Args:\n(?P<body>(?:[ \t]+\S.*\n?|[ \t]*\n)*)", re.MULTILINE)
_ARG = re.compile(r"^ {4}(?P<name>\w+)(?: \(.*?\))?: *(?P<text>.*(?:\n {5,}\S.*)*)", re.MULTILINE)
_MOST_SHOWN = 60
"""Characters of a wrong value that the model is shown."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool: its type, the schema of it, and its default (`inspect.Parameter.empty`: it has none)."""

    name: str
    type: JsonType
    schema: dict[str, Any]
    default: Any

    @property
    def required(self) -> bool:
        """Whether a call must give it."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes. `context` names the parameter that gets the ToolContext; empty where none does."""

    description: str
    parameters: dict[str, Parameter]
    context: str

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments, without what a model doesn't need."""
        return {
            "type": "object",
            "properties": {name: parameter.schema for name, parameter in self.parameters.items()},
            "required": [name for name, parameter in self.parameters.items() if parameter.required],
        }

    def check(self, tool: str, args: dict[str, Any]) -> dict[str, Any]:
        """The arguments in the types that the function wants. Raises ToolRefused that names every wrong one.

        What loses nothing is converted: `"5"` for 5, 5 for `"5"`, a list sent as JSON text; null is no argument where
        it may be left out.
        """
        wrong = [*self._unknown(args)]
        checked: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            if name not in args:
                wrong += [f"`{name}` is missing: {_expected(parameter)}"] if parameter.required else []
                continue
            try:
                checked[name] = _convert(args[name], parameter.type)
            except ValueError as error:
                if args[name] is not None or parameter.required:
                    wrong.append(f"`{name}` must be {_expected(parameter)}, not {_shown(args[name])} ({error})")
        if wrong:
            raise ToolRefused(f"{tool}: wrong arguments: {'; '.join(wrong)}. It takes {self._usage()}.")
        return checked

    def _unknown(self, args: dict[str, Any]) -> Iterator[str]:
        absent = [name for name in self.parameters if name not in args]
        for name in args:
            if name not in self.parameters:
                near = difflib.get_close_matches(name, absent, 1, 0.4)
                yield f"`{name}` is unknown" + (f" (did you mean `{near[0]}`?)" if near else "")

    def _usage(self) -> str:
        usage = [f"{name}{'' if parameter.required else '?'}" for name, parameter in self.parameters.items()]
        return f"({', '.join(usage)})" if usage else "none"


def read_signature(function: Callable[..., Any]) -> Signature:
    """What the function takes, from its annotations and its docstring.

    The docstring's first paragraph is the description; its `Args:` section (`    name: text`) describes parameters.
    Raises TypeError for a function that a model could not be told about.
    """
    doc = inspect.getdoc(function) or ""
    if not doc:
        raise TypeError(f"{function.__name__}() needs a docstring: its first paragraph is what the model is told")
    hints = typing.get_type_hints(function, include_extras=True)
    docs = _argument_docs(doc)
    parameters: dict[str, Parameter] = {}
    context = ""
    for name, parameter in inspect.signature(function).parameters.items():
        if hints.get(name) is ToolContext:
            context = name
            continue
        if name not in hints or parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            bound = " (of a method, make the bound one a tool: tool(object.method))" if name in {"self", "cls"} else ""
            raise TypeError(
                f"{function.__name__}(): {name} must be an annotated parameter that can be given by name{bound}"
            )
        parameters[name] = _parameter(function, parameter, hints[name], docs.pop(name, "") or _annotated(hints[name]))
    if docs:
        raise TypeError(f"{function.__name__}(): its docstring describes {', '.join(docs)}, which it doesn't take")
    return Signature(" ".join(doc.partition("\n\n")[0].split()), parameters, context)


def _argument_docs(doc: str) -> dict[str, str]:
    section = _ARGS.search(doc)
    found = _ARG.finditer(section["body"]) if section else ()
    return {match["name"]: " ".join(match["text"].split()) for match in found}


def _annotated(kind: Any) -> str:
    """The words of `Annotated[str, "its name"]`."""
    return next((said for said in getattr(kind, "__metadata__", ()) if isinstance(said, str)), "")


def _parameter(function: Callable[..., Any], parameter: inspect.Parameter, kind: Any, doc: str) -> Parameter:
    try:
        typed = JsonType(kind)
    except TypeError as wrong:
        raise TypeError(f"{function.__name__}(): {parameter.name}: {wrong}") from wrong
    return Parameter(parameter.name, typed, _parameter_schema(typed, parameter.default, doc), parameter.default)


def _parameter_schema(typed: JsonType, default: Any, doc: str) -> dict[str, Any]:
    schema = {key: value for key, value in typed.schema.items() if key != "$defs"}
    schema = _compact(schema, typed.schema.get("$defs", {}), ())
    if default is None:
        schema = _without_null(schema)
    elif default is not inspect.Parameter.empty and default not in (False, "", [], {}):
        schema = {**schema, "default": typed.plain(default)}
    return {**schema, "description": doc} if doc else schema


def _compact(schema: Any, parts: dict[str, Any], inside: tuple[str, ...]) -> Any:
    """The schema with references put in place and without titles; a type that holds itself becomes any object there."""
    if isinstance(schema, list):
        return [_compact(item, parts, inside) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        meant = {"type": "object"} if name in inside else _compact(parts[name], parts, (*inside, name))
        return {**meant, **beside}
    kept = {key: value for key, value in schema.items() if key != "title" or isinstance(value, dict)}
    if isinstance(schema.get("enum"), list) and all(isinstance(value, str) for value in schema["enum"]):
        kept = {"type": "string", **kept}  # some providers refuse an enum without a type
    return {key: _compact(value, parts, inside) for key, value in kept.items()}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**rest, **kinds[0]} if len(kinds) == 1 else schema


def _convert(value: Any, kind: JsonType) -> Any:
    try:
        return kind.read(value, strict=False)
    except ValueError:
        for other in _same(value):
            try:
                return kind.read(other, strict=False)
            except ValueError:
                continue
        raise


def _same(value: Any) -> Iterator[Any]:
    """Other ways to write the value."""
    if isinstance(value, int) and not isinstance(value, bool):
        yield str(value)
    if isinstance(value, str) and value.lstrip()[:1] in {"[", "{"}:
        try:
            yield msgspec.json.decode(value)
        except msgspec.DecodeError:
            return


def _expected(parameter: Parameter) -> str:
    schema = parameter.schema
    kind = " or ".join(map(repr, schema["enum"])) if "enum" in schema else str(schema.get("type", "a value"))
    return f"{kind} ({schema['description']})" if "description" in schema else kind


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str).encode(errors="replace").decode()
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
