"""Strictness: what in a file of settings is unknown, mistyped or missing."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args, get_origin

import msgspec

from denizen.config.env import references
from denizen.config.kinds import as_path, choices, describe, describe_found, fields, is_table
from denizen.config.settings import Config
from denizen.config.source import KeyPath, Source, dotted, items, strings
from denizen.errors import ConfigError

Problem = tuple[KeyPath, str]

_DOTENV = ".env in the home"


def check(source: Source, environ: Mapping[str, str]) -> None:
    """Raise ConfigError with a line for everything that is wrong: its place, what it is, and what to do."""
    problems = [*_table(source.data, Config, ()), *_missing_variables(source.data, environ)]
    if problems:
        raise ConfigError("\n".join(f"{source.place(path)}: {words}" for path, words in problems))


def convert(data: Mapping[str, Any]) -> Config:
    """The typed settings; the data must have been checked."""
    return msgspec.convert(data, Config, dec_hook=as_path)


def _table(data: Any, table: type[msgspec.Struct], path: KeyPath) -> Iterator[Problem]:
    known = fields(table)
    if not isinstance(data, dict):
        yield path, _mismatch(path, table, data)
        return
    for key, value in data.items():
        if key in known:
            yield from _setting(value, known[key].type, (*path, key))
        else:
            yield (*path, key), _unknown(path, key, known)
    for name, field in known.items():
        if field.required and name not in data:
            yield path, f"{dotted(path)} lacks `{name}`: {describe(field.type)}."


def _setting(value: Any, kind: Any, path: KeyPath) -> Iterator[Problem]:
    origin = get_origin(kind)
    if is_table(kind):
        yield from _table(value, kind, path)
    elif origin in {dict, list} and isinstance(value, origin):
        for key, item in items(value):
            yield from _setting(item, get_args(kind)[-1], (*path, key))
    elif not _fits(value, kind):
        yield path, _mismatch(path, kind, value)


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind, dec_hook=as_path)
    except msgspec.ValidationError:
        return False
    return True


def _unknown(path: KeyPath, key: str, known: Mapping[str, Any]) -> str:
    nearest = (
        [*_inside(path, key, known)]
        or [dotted((*path, name)) for name in [_nearest(key, known)] if name]
        or [*_at_the_top(path, key), *_elsewhere(key)]
    )
    hint = f"Did you mean {' or '.join(nearest)}?" if nearest else f"Known here: {', '.join(known)}."
    return f"{dotted((*path, key))} is not a setting. {hint}"


def _inside(path: KeyPath, key: str, known: Mapping[str, Any]) -> Iterator[str]:
    """The lists of tables right here whose tables have the setting."""
    for name, field in known.items():
        item: Any = get_args(field.type)[0] if get_origin(field.type) is list else None
        if is_table(item) and key in fields(item):
            yield f"{dotted((*path, name))} = [{{ {', '.join(f'{each} = …' for each in fields(item))} }}]"


def _at_the_top(path: KeyPath, key: str) -> list[str]:
    """What was written at the end of a file, and so into its last table, though it belongs above the first."""
    name = _nearest(key, [name for name, field in fields(Config).items() if not is_table(field.type)]) if path else ""
    return [f"{name}, above the first [table]"] if name else []


def _elsewhere(key: str, table: type[msgspec.Struct] = Config, path: KeyPath = ()) -> Iterator[str]:
    """The settings of that very name in other tables."""
    if path and key in fields(table):
        yield dotted((*path, key))
    for name, field in fields(table).items():
        if is_table(field.type):
            yield from _elsewhere(key, field.type, (*path, name))


def _mismatch(path: KeyPath, kind: Any, value: Any) -> str:
    wrong = f"{dotted(path)}: expected {describe(kind)}, found {describe_found(value, kind)}."
    nearest = _nearest(value, choices(kind)) if isinstance(value, str) else ""
    return f'{wrong} Did you mean "{nearest}"?' if nearest else wrong


def _missing_variables(data: Mapping[str, Any], environ: Mapping[str, str]) -> Iterator[Problem]:
    for path, text in strings(data):
        for name in references(text):
            if not name:
                yield path, f"{dotted(path)} has a `${{` that names no variable. Write `$${{` for the two characters."
            elif name not in environ:
                yield (
                    path,
                    f"{dotted(path)} wants the variable {name}, which is not set. Set it, or add it to {_DOTENV}.",
                )


def _nearest(name: str, names: Iterable[str]) -> str:
    import difflib

    return next(iter(difflib.get_close_matches(name, [known for known in names if known], 1, 0.6)), "")
