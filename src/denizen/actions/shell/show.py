"""A call written as the command that asks for it."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from denizen.actions.shell.arguments import arguments_of
from denizen.actions.shell.parameters import Parameter, Parameters, parameters_of
from denizen.actions.shell.prose import PROSE
from denizen.actions.shell.reply import read_reply
from denizen.actions.shell.usage import command_name
from denizen.actions.shell.words import quote
from denizen.errors import ToolRefused
from denizen.messages import ToolCall
from denizen.ports import MISUSED, Toolset


def show(call: ToolCall, tools: Toolset) -> str:
    """The command in one line, without its `$( )`; read again it gives the same arguments."""
    tool = tools.get(call.name)
    name = (command_name(tool, tools) if tool else "") or call.name
    if tool is None or MISUSED in call.args:
        return name
    parameters = parameters_of(tool.schema)
    return _as_it_stands(name, call, parameters) or " ".join([name, *_words(name, call.args, parameters)])


def _as_it_stands(name: str, call: ToolCall, parameters: Parameters) -> str:
    """With its prose or command line as it is; empty where that would be read as something else."""
    if not parameters.positional or not (parameters.command_line or name in PROSE):
        return ""
    text = call.args.get(parameters.positional[0].name)
    if not isinstance(text, str) or "\n" in text:
        return ""
    line = " ".join([name, *_options(call.args, parameters.positional[:1], parameters), text])
    return line if _read(line, parameters) == call.args else ""


def _read(line: str, parameters: Parameters) -> dict[str, Any] | None:
    found = read_reply(f"$({line})").commands
    if len(found) != 1 or found[0].end != len(line) + 3:
        return None
    try:
        return arguments_of(found[0], parameters)
    except ToolRefused:
        return None


def _words(name: str, args: dict[str, Any], parameters: Parameters) -> list[str]:
    places = [*takewhile(lambda place: place.name in args, parameters.positional)]
    options = [*_options(args, places, parameters)]
    values = [word for place in places for word in _values(place, args[place.name])]
    first_options = parameters.command_line and name not in PROSE
    return [*options, *values] if first_options else [*values, *options]


def _options(args: dict[str, Any], places: Sequence[Parameter], parameters: Parameters) -> Iterator[str]:
    known = {parameter.name: parameter for parameter in parameters.every}
    by_place = {place.name for place in places}
    for name in (name for name in args if name not in by_place):
        option = known[name].option if name in known else name
        if name in known and known[name].flag and isinstance(args[name], bool):
            yield f"--{option}" if args[name] else f"--no-{option}"
        else:
            yield f"--{option} {quote(_text(args[name]))}"


def _values(place: Parameter, value: Any) -> list[str]:
    """A list word by word where that says the same."""
    if isinstance(value, list) and (len(value) > 1 or (value and place.kinds == ["array"])):
        words = [_text(each) for each in value]
        if not any(
            isinstance(each, (list, dict)) or word.startswith("[") for each, word in zip(value, words, strict=True)
        ):
            return [quote(word) for word in words]
    return [quote(_text(value))]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
