"""Strict checks of settings: what is unknown, mistyped or missing, in the words of a person who writes TOML."""

import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from denizen.config.env import fill_in, references
from denizen.config.settings import Config
from denizen.config.toml import KeyPath, SettingsFile, dotted, items, strings
from denizen.errors import ConfigError

Table = TypeVar("Table", bound=msgspec.Struct)
_Problem = tuple[KeyPath, str]
_NOT_IN_FILE = {"home", "workspace"}
_TYPES: dict[Any, str] = {
    str: "a string",
    Path: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    list: "a list",
    dict: "a table",
    type(None): "nothing",
}


class _KnownVariables(dict[str, str]):
    """Variables; unset ones stay references, because they are reported elsewhere."""

    def __missing__(self, name: str) -> str:
        return f"${{{name}}}"


def check(
    file: SettingsFile,
    root: type[msgspec.Struct],
    environ: Mapping[str, str],
    channels: Mapping[str, type[msgspec.Struct]],
) -> None:
    """Raise ConfigError with a line for each mistake in the file: its place, what it is, and what to do.

    `root` is the struct that the whole file is read into, and `channels` are those of the tables `[channels.NAME]`.
    """
    filled = fill_in(file.data, _KnownVariables(environ))  # as a setting may need a certain form
    problems = [*_table(filled, root, (), root)]
    for name, table in channels.items():
        problems += _table(filled["channels"][name], table, ("channels", name), table)
    missing = list[tuple[KeyPath, str]]()
    for path, text in strings(file.data):
        for name in references(text):
            if not name:
                wrong = "has a `${` that names no variable. Write `$${` for the two characters."
            elif name not in environ:
                wrong = f"needs the variable {name}, which isn't set. Set it, or add it to .env in the home."
            else:
                continue
            missing.append((path, f"{dotted(path)} {wrong}"))
    unset = {path for path, _ in missing}
    problems = [*(each for each in problems if each[0] not in unset), *missing]
    if problems:
        raise ConfigError("\n".join(f"{file.locate(path)}: {text}" for path, text in problems))


def convert(data: Mapping[str, Any], table: type[Table]) -> Table:
    """The typed settings; the data must have been checked."""
    return msgspec.convert(data, table, dec_hook=_as_path)


def fields(table: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """The settings of a table by name: its own, then those it shares with other tables, then its tables."""
    skipped = _NOT_IN_FILE if issubclass(table, Config) else frozenset[str]()
    shared = {field.name for field in msgspec.structs.fields(table)} - table.__annotations__.keys()
    found = sorted(msgspec.structs.fields(table), key=lambda field: (is_table(field.type), field.name in shared))
    return {field.name: field for field in found if field.name not in skipped}


def is_table(kind: Any) -> bool:
    """Whether a setting of that type is a table with settings of its own."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def describe(kind: Any) -> str:
    """The values that a setting of that type takes, in words."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        bounds = (("of at least", args[1].ge), ("above", args[1].gt), ("of at most", args[1].le), ("below", args[1].lt))
        limits = [f"{words} {bound}" for words, bound in bounds if bound is not None]
        return " ".join([describe(args[0]), *limits, *(f'such as "{each}"' for each in args[1].examples or ())])
    if origin in {types.UnionType, Union}:
        return " or ".join(describe(each) for each in args if each is not type(None))
    if origin is Literal:
        quoted = [f'"{choice}"' for choice in args]
        return f"{', '.join(quoted[:-1])} or {quoted[-1]}"
    if origin is list:
        return f"a list of {'tables' if is_table(args[0]) else 'strings' if args[0] is str else describe(args[0])}"
    if origin is dict and args[1] is str:
        return "a table of strings"
    return _TYPES.get(kind, "a table")


def _table(data: Any, table: type[msgspec.Struct], path: KeyPath, root: type[msgspec.Struct]) -> Iterator[_Problem]:
    known = fields(table)
    if not isinstance(data, dict):
        yield path, _mismatch(path, table, data)
        return
    for key, value in data.items():
        if key in known:
            yield from _setting(value, known[key].type, (*path, key), root)
        else:
            yield (*path, key), _unknown(path, key, known, root)
    for name, field in known.items():
        if field.required and name not in data:
            yield path, f"{dotted(path)} lacks `{name}`: {describe(field.type)}."


def _setting(value: Any, kind: Any, path: KeyPath, root: type[msgspec.Struct]) -> Iterator[_Problem]:
    origin = get_origin(kind)
    if origin is types.UnionType and isinstance(value, list) and get_origin(get_args(kind)[0]) is list:
        yield from _setting(value, get_args(kind)[0], path, root)
    elif is_table(kind):
        yield from _table(value, kind, path, root)
    elif origin in {dict, list} and isinstance(value, origin):
        for key, item in items(value):
            yield from _setting(item, get_args(kind)[-1], (*path, key), root)
    else:
        try:
            msgspec.convert(value, kind, dec_hook=_as_path)
        except msgspec.ValidationError:
            yield path, _mismatch(path, kind, value)


def _as_path(kind: Any, value: Any) -> Any:
    """A path from its text: msgspec asks for types that it doesn't know."""
    if not isinstance(value, str | Path):
        raise TypeError("a path is a string")
    return kind(value)


def _unknown(path: KeyPath, key: str, known: Mapping[str, Any], root: type[msgspec.Struct]) -> str:
    """The message for a key that isn't a setting: what was probably meant, and where it belongs."""
    nearest: list[str] = []
    for name, field in known.items():  # a setting of the tables in a list right here
        item: Any = get_args(field.type)[0] if get_origin(field.type) is list else None
        if is_table(item) and key in fields(item):
            nearest.append(f"{dotted((*path, name))} = [{{ {', '.join(f'{each} = …' for each in fields(item))} }}]")
    if not path:  # above the first [table] one was left out, more often than brackets
        nearest = [*_elsewhere(key, root)] or nearest
    if not nearest and (name := _nearest(key, known)):
        nearest = [dotted((*path, name))]
    if not nearest:
        top = _nearest(key, [name for name, field in fields(root).items() if not is_table(field.type)]) if path else ""
        nearest = [*([f"{top}, above the first [table]"] if top else []), *_elsewhere(key, root)]
    hint = f"Did you mean {' or '.join(nearest)}?" if nearest else f"Known here: {', '.join(known)}."
    return f"{dotted((*path, key))} isn't a setting. {hint}"


def _elsewhere(key: str, table: type[msgspec.Struct], path: KeyPath = ()) -> Iterator[str]:
    """The settings with exactly that name in other tables."""
    if path and key in fields(table):
        yield dotted((*path, key))
    for name, field in fields(table).items():
        if is_table(field.type):
            yield from _elsewhere(key, field.type, (*path, name))


def _mismatch(path: KeyPath, kind: Any, value: Any) -> str:
    """The message for a wrong value; its text is shown only where it is a choice: elsewhere it may be a secret."""
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    found, nearest = _TYPES.get(type(value), "a date or a time"), ""
    if isinstance(value, bool):
        found = str(value).lower()
    elif isinstance(value, int | float) and get_origin(kind) is Annotated:
        found = str(value)
    elif isinstance(value, str) and get_origin(kind) is Annotated and get_args(kind)[0] is str:
        found = "one of another form"
    elif isinstance(value, str) and choices:
        found, nearest = f'"{value}"', _nearest(value, choices)
    hint = f' Did you mean "{nearest}"?' if nearest else ""
    return f"{dotted(path)}: expected {describe(kind)}, found {found}.{hint}"


def _nearest(name: str, names: Iterable[str]) -> str:
    import difflib

    return next(iter(difflib.get_close_matches(name, [known for known in names if known], 1, 0.6)), "")
