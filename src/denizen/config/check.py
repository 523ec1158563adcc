"""Strictness: what in a file of settings is unknown, mistyped or missing, and the place where it stands."""

import bisect
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin

import msgspec

from denizen.config.env import references
from denizen.config.kinds import as_path, choices, describe, describe_found, fields, is_table
from denizen.config.settings import Config
from denizen.errors import ConfigError

KeyPath = tuple[str | int, ...]
Problem = tuple[KeyPath, str]

_LINES_SEARCHED = 1000
_MOST_NESTED = 50
_DOTENV = ".env in the home"


@dataclass(frozen=True, slots=True)
class Source:
    """A file of settings, or the options of a command line (`text` empty): its name, text and data."""

    name: str
    text: str
    data: Mapping[str, Any]

    def check(self, environ: Mapping[str, str]) -> None:
        """Raise ConfigError with a line for everything that is wrong: its place, what it is, and what to do."""
        problems = [*_table(self.data, Config, ()), *_missing_variables(self.data, environ)]
        if problems:
            raise ConfigError("\n".join(f"{self.place(path)}: {words}" for path, words in problems))

    def place(self, path: KeyPath) -> str:
        """Where a setting stands, as `file:line`."""
        line = _line(self.text, path)
        return f"{self.name}:{line}" if line else self.name


def parse(text: str, name: str) -> Source:
    """The settings in a file's text. Raises ConfigError that names line and column of what isn't TOML."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} is not valid TOML: {error}.") from error
    except RecursionError as error:
        raise ConfigError(f"{name} is nested too deeply.") from error
    if _is_deeper(data, _MOST_NESTED):
        raise ConfigError(f"{name} is nested too deeply.")
    return Source(name, text, data)


def strings(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Every string in a table or a list, with the keys and indices that lead to it."""
    if isinstance(value, str):
        yield path, value
    for key, item in _items(value):
        yield from strings(item, (*path, key))


def dotted(path: KeyPath) -> str:
    """The name of a setting: `policy.rules[0].tool`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


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
        for key, item in _items(value):
            yield from _setting(item, get_args(kind)[-1], (*path, key))
    elif not _fits(value, kind):
        yield path, _mismatch(path, kind, value)


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind, dec_hook=as_path)
    except msgspec.ValidationError:
        return False
    return True


def _is_deeper(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [item for container in level for _, item in _items(container)]
    return bool(level)


def _items(value: Any) -> Iterable[tuple[str | int, Any]]:
    """The parts of a table or a list with their keys or indices; of anything else, none."""
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _unknown(path: KeyPath, key: str, known: Mapping[str, Any]) -> str:
    nearest = [dotted((*path, name)) for name in [_nearest(key, known)] if name] or _elsewhere(key)
    hint = f"Did you mean {nearest[0]}?" if nearest else f"Known here: {', '.join(known)}."
    return f"{dotted((*path, key))} is not a setting. {hint}"


def _elsewhere(key: str) -> list[str]:
    """The settings of that very name in another table."""
    tables = [(name, field.type) for name, field in fields(Config).items() if is_table(field.type)]
    return [f"{name}.{key}" for name, kind in tables if key in fields(kind)]


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


def _line(text: str, path: KeyPath) -> int:
    """The line of a setting, in the first statement with which the file has it; 0 when that can't be told."""
    lines = text.replace("\r\n", "\n").split("\n")
    if len(lines) > _LINES_SEARCHED:
        return 0
    first = 1 + bisect.bisect_left(range(1, len(lines) + 1), True, key=lambda line: _has(_begun(lines, line)[1], path))
    last, _ = _begun(lines, first)
    word = re.compile(rf"\b{re.escape(str(path[-1]))}\b")
    return next((line for line in range(first, last + 1) if word.search(lines[line - 1])), first if last else 0)


def _begun(lines: list[str], number: int) -> tuple[int, dict[str, Any]]:
    """The line in which the statement of line `number` ends, and all that the file says up to there."""
    for end in range(number, len(lines) + 1):
        try:
            return end, tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
    return 0, {}


def _has(data: Any, path: KeyPath) -> bool:
    for key in path:
        if not (key in data if isinstance(data, dict) else isinstance(data, list) and int(key) < len(data)):
            return False
        data = data[key]
    return True
