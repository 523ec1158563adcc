"""`@tool`: a typed, documented function becomes something that the model can do.

Its parameters become the JSON schema that the model sees, and a check of the arguments that it sends.
"""

import asyncio
import difflib
import inspect
import json
import re
import typing
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, overload

import msgspec

from denizen.config.pattern import pattern
from denizen.errors import ToolRefused
from denizen.messages import Text, ToolResult, UserPart
from denizen.ports import Schema, ToolContext, Traits
from denizen.ports.json_type import JsonType, plain
from denizen.runtime.cancellation import run_in_thread

_NAME = pattern(r"[a-z][a-z0-9_]{0,63}")
_ARGS = pattern(r"^Args:\n(?P<body>(?:[ \t]+\S.*\n?|[ \t]*\n)*)", re.MULTILINE)
_ARG = pattern(r"^ {4}(?P<name>\w+)(?: \(.*?\))?: *(?P<text>.*(?:\n {5,}\S.*)*)", re.MULTILINE)
_MAX_SHOWN_CHARS = 60  # characters of a wrong value that the model is shown


class ToolParameter(msgspec.Struct, frozen=True):
    """A parameter of a tool: its type and schema, and its default (`inspect.Parameter.empty`: it has none)."""

    type: JsonType
    schema: dict[str, Any]
    default: Any

    @property
    def required(self) -> bool:
        """Whether a call must give it."""
        return self.default is inspect.Parameter.empty


@dataclass(slots=True)
class FunctionTool:
    """A tool made of `function`, which can still be called by itself; `awaited`: it is a coroutine function.

    `context` names the parameter that gets the ToolContext; empty if none does.
    """

    function: Callable[..., Any]
    awaited: bool
    parameters: dict[str, ToolParameter]
    context: str
    name: str
    shell_names: Sequence[str]
    traits: Traits
    schema: Schema
    refuse: Callable[..., object] | None = None
    plans: bool = False
    asks: Callable[..., bool] | None = None
    replies: Callable[[dict[str, Any], tuple[str, str]], bool] | None = None

    def needs_yes(self, args: dict[str, Any]) -> bool:
        """Whether a person must agree to the call; arguments that don't fit are refused later, by `check`."""
        return self.asks is not None and self.asks(**{**dict.fromkeys(self.parameters), **args})

    def check(self, args: dict[str, Any]) -> None:
        """Raises ToolRefused for arguments that don't fit the function, or that `refuse` refuses."""
        checked = self._checked(args)
        if self.refuse:
            self.refuse(**checked)

    def is_reply(self, args: dict[str, Any], chat: tuple[str, str]) -> bool:
        """Whether a call with these arguments sends to the `chat` that its turn is for, and to no other."""
        return self.replies is not None and self.replies(args, chat)

    async def run(self, args: dict[str, Any], turn: ToolContext) -> ToolResult:
        """Call the function with the checked arguments; a plain one runs in a thread. Raises ToolRefused."""
        checked = self._checked(args)
        if self.context:
            checked[self.context] = turn
        if self.awaited:
            value = await self.function(**checked)
        else:
            in_thread = (
                run_in_thread(None, self._call, checked) if self.plans else asyncio.to_thread(self._call, checked)
            )
            value = await in_thread
            value = await value if inspect.isawaitable(value) else value  # a plain function may wrap an async one
        if isinstance(value, ToolResult):
            return msgspec.structs.replace(value, call_id=turn.call_id, name=self.name)
        return ToolResult(turn.call_id, self.name, _content(value))

    def _call(self, args: dict[str, Any]) -> Any:
        try:
            return self.function(**args)
        except (StopIteration, SystemExit) as left:  # no future can carry the one; the other would end the program
            raise RuntimeError(f"{type(left).__name__} {left}".rstrip()) from left

    def _checked(self, args: dict[str, Any]) -> dict[str, Any]:
        """The arguments in the types that the function wants. Raises ToolRefused that names every wrong one.

        What loses nothing is converted: `"5"` for 5, 5 for `"5"`, a list sent as JSON text; null counts as left out
        where that is allowed.
        """
        wrong: list[str] = []
        absent = [name for name in self.parameters if name not in args]
        for name in args:
            if name not in self.parameters:
                near = difflib.get_close_matches(name, absent, 1, 0.4)
                wrong.append(f"`{name}` is unknown" + (f" (did you mean `{near[0]}`?)" if near else ""))
        checked: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            if name not in args:
                wrong += [f"`{name}` is missing: {_expected(parameter)}"] if parameter.required else []
                continue
            try:
                checked[name] = _convert(args[name], parameter.type)
            except ValueError as error:
                if args[name] is not None or parameter.required:
                    text = json.dumps(args[name], ensure_ascii=False, default=str).encode(errors="replace").decode()
                    value = text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}…"
                    wrong.append(f"`{name}` must be {_expected(parameter)}, not {value} ({error})")
        if wrong:
            usage = ", ".join(f"{name}{'' if each.required else '?'}" for name, each in self.parameters.items())
            takes = f"({usage})" if usage else "none"
            raise ToolRefused(f"{self.name}: wrong arguments: {'; '.join(wrong)}. It takes {takes}.")
        return checked


def result(text: str, **details: Any) -> ToolResult:
    """A tool function's result: text for the model, and details for the screen."""
    return ToolResult("", "", [Text(text)], details=details or None)


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(
    *,
    traits: Traits = Traits.NONE,
    name: str = "",
    shell_names: Sequence[str] = (),
    refuse: Callable[..., object] | None = None,
    plans: bool = False,
    asks: Callable[..., bool] | None = None,
    replies: Callable[[dict[str, Any], tuple[str, str]], bool] | None = None,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    traits: Traits = Traits.NONE,
    name: str = "",
    shell_names: Sequence[str] = (),
    refuse: Callable[..., object] | None = None,
    plans: bool = False,
    asks: Callable[..., bool] | None = None,
    replies: Callable[[dict[str, Any], tuple[str, str]], bool] | None = None,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Let the model call a function: `@tool`, or `@tool(traits=Traits.READS)`.

    The model sees the docstring's first paragraph and, of each parameter, its type and its line in the docstring's
    `Args:` section. A parameter annotated `ToolContext` is filled in and not shown. The function may be async; a plain
    one runs in a thread, which a cancelled turn leaves behind. It returns a string, a part (Text, Image, Document) or a
    list of them, a ToolResult, or anything that has a JSON form, and raises ToolRefused for what can't be done. Without
    `traits` its calls run one at a time, never again after a crash, and as the policy says. `refuse` is called with the
    arguments before a person is asked about a call: it raises ToolRefused for what the function would refuse anyway. A
    tool that `plans` changes files and obeys `ToolContext.planned`, so that a question about a call can show what it
    would change; a cancelled turn waits for its thread. `replies` says of a call's
    arguments, and the channel and chat that its turn is for, whether it sends there alone, which needs no approval.

    Raises TypeError for a function without a docstring, or with a parameter that can't be given by name and type.
    """

    def made(function: Callable[..., Any]) -> FunctionTool:
        if not inspect.isroutine(function):
            raise TypeError(f"{function!r} can't be a tool: it is neither a function nor a method")
        description, parameters, context = _signature(function)
        called = name or function.__name__
        if not _NAME.fullmatch(called):
            raise TypeError(f"{called!r} can't name a tool: small letters, digits and _ (at most 64), a letter first")
        schema = {
            "type": "object",
            "properties": {name: parameter.schema for name, parameter in parameters.items()},
            "required": [name for name, parameter in parameters.items() if parameter.required],
        }
        return FunctionTool(
            function,
            awaited=inspect.iscoroutinefunction(function),
            parameters=parameters,
            context=context,
            name=called,
            shell_names=shell_names,
            traits=traits,
            schema=Schema(called, description, schema),
            refuse=refuse,
            plans=plans,
            asks=asks,
            replies=replies,
        )

    return made(function) if function else made


def _signature(function: Callable[..., Any]) -> tuple[str, dict[str, ToolParameter], str]:
    """The description, the parameters and the name of the one for the ToolContext. Raises TypeError.

    The docstring's first paragraph is the description; its `Args:` section (`    name: text`) describes parameters.
    """
    doc = inspect.getdoc(function) or ""
    if not doc:
        raise TypeError(f"{function.__name__}() needs a docstring: its first paragraph is what the model sees")
    hints = typing.get_type_hints(function, include_extras=True)
    section = _ARGS.search(doc)
    docs = {arg["name"]: " ".join(arg["text"].split()) for arg in _ARG.finditer(section["body"])} if section else {}
    parameters: dict[str, ToolParameter] = {}
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
        try:
            kind = JsonType(hints[name])
        except TypeError as wrong:
            raise TypeError(f"{function.__name__}(): {name}: {wrong}") from wrong
        annotations = getattr(hints[name], "__metadata__", ())  # as in Annotated[str, "its name"]
        text = docs.pop(name, "") or next((words for words in annotations if isinstance(words, str)), "")
        parameters[name] = ToolParameter(kind, _parameter_schema(kind, parameter.default, text), parameter.default)
    if docs:
        raise TypeError(f"{function.__name__}(): its docstring describes {', '.join(docs)}, which it doesn't take")
    return " ".join(doc.partition("\n\n")[0].split()), parameters, context


def _parameter_schema(kind: JsonType, default: Any, doc: str) -> dict[str, Any]:
    """The schema of a parameter, without what a model doesn't need."""
    schema = {key: value for key, value in kind.schema.items() if key != "$defs"}
    schema = _compact(schema, kind.schema.get("$defs", {}), ())
    if default is None:
        kinds = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
        if len(kinds) == 1:
            schema = {**{key: value for key, value in schema.items() if key != "anyOf"}, **kinds[0]}
    elif default is not inspect.Parameter.empty and default not in (False, "", [], {}):
        schema = {**schema, "default": kind.plain(default)}
    return {**schema, "description": doc} if doc else schema


def _compact(schema: Any, parts: dict[str, Any], inside: tuple[str, ...]) -> Any:
    """The schema with references resolved and without titles; a type that contains itself becomes any object there."""
    if isinstance(schema, list):
        return [_compact(item, parts, inside) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        resolved = {"type": "object"} if name in inside else _compact(parts[name], parts, (*inside, name))
        return {**resolved, **rest}
    kept = {key: value for key, value in schema.items() if key != "title" or isinstance(value, dict)}
    if isinstance(schema.get("enum"), list) and all(isinstance(value, str) for value in schema["enum"]):
        kept = {"type": "string", **kept}  # some providers refuse an enum without a type
    return {key: _compact(value, parts, inside) for key, value in kept.items()}


def _convert(value: Any, kind: JsonType) -> Any:
    """The value as that type, even if it is written in another way. Raises ValueError."""
    try:
        return kind.read(value, strict=False)
    except ValueError:
        with suppress(ValueError):  # of msgspec.json.decode, too
            if isinstance(value, int) and not isinstance(value, bool):
                return kind.read(str(value), strict=False)
            if isinstance(value, str) and value.lstrip()[:1] in {"[", "{"}:
                return kind.read(msgspec.json.decode(value), strict=False)
        raise


def _expected(parameter: ToolParameter) -> str:
    schema = parameter.schema
    kind = " or ".join(map(repr, schema["enum"])) if "enum" in schema else str(schema.get("type", "a value"))
    return f"{kind} ({schema['description']})" if "description" in schema else kind


def _content(value: Any) -> list[UserPart]:
    if isinstance(value, UserPart):
        return [value]
    items: Sequence[Any] = value if isinstance(value, (list, tuple)) else ()
    if not any(isinstance(part, UserPart) for part in items):
        items = [value]
    parts: list[UserPart] = []
    for part in items:
        if isinstance(part, UserPart):
            parts.append(part)
        else:
            parts.append(Text(part if isinstance(part, str) else msgspec.json.encode(part, enc_hook=plain).decode()))
    return parts
