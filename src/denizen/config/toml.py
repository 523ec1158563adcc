"""Settings as TOML: their text and data, the line of each, and values written as TOML."""

import bisect
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from denizen.config.files import as_text, read_settings
from denizen.errors import ConfigError

KeyPath = tuple[str | int, ...]
"""The keys and indices that lead to a setting."""

_HINTS = {
    "Invalid value": " A text needs quotes.",
    "Cannot declare": " That table is there already: write its settings below the first one.",
    "Cannot overwrite": " That setting is there already: change the first one.",
}
"""Hints, by the beginning of tomllib's message."""

_MAX_LINES = 1000
_MAX_DEPTH = 50


class SettingsFile(msgspec.Struct, frozen=True):
    """A file of settings, or the options of a command line (`text` empty): its name, text and data."""

    name: str
    text: str
    data: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> "SettingsFile":
        """The file at `path`; one that is missing is empty. Raises ConfigError."""
        return parse(as_text(read_settings(path) or b"", path), str(path))

    def locate(self, path: KeyPath) -> str:
        """A setting's place as `file:line`: the first statement with which the file has it."""
        lines = self.text.replace("\r\n", "\n").split("\n")
        if len(lines) > _MAX_LINES:
            return self.name
        first = 1 + bisect.bisect_left(
            range(1, len(lines) + 1), True, key=lambda line: _has(_read_until(lines, line)[1], path)
        )
        last, _ = _read_until(lines, first)
        if not last:
            return self.name
        word = re.compile(rf"\b{re.escape(str(path[-1]))}\b")
        line = next((line for line in range(first, last + 1) if word.search(lines[line - 1])), first)
        return f"{self.name}:{line}"


def parse(text: str, name: str) -> SettingsFile:
    """The settings in a file's text. Raises ConfigError that names line and column of what isn't TOML."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = next((hint for beginning, hint in _HINTS.items() if str(error).startswith(beginning)), "")
        raise ConfigError(f"{name} is not valid TOML: {error}.{hint}") from error
    except RecursionError as error:
        raise ConfigError(f"{name} is nested too deeply.") from error
    level: list[Any] = [data]
    for _ in range(_MAX_DEPTH):
        level = [item for container in level for _, item in items(container)]
    if level:
        raise ConfigError(f"{name} is nested too deeply.")
    return SettingsFile(name, text, data)


def to_toml(value: Any) -> str:
    """A string, number, truth value or list of these as TOML, which JSON nearly is."""
    import json

    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")


def strings(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Every string in a table or a list, with the keys and indices that lead to it."""
    if isinstance(value, str):
        yield path, value
    for key, item in items(value):
        yield from strings(item, (*path, key))


def dotted(path: KeyPath) -> str:
    """The name of a setting: `policy.rules[0].tool`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def items(value: Any) -> Iterable[tuple[str | int, Any]]:
    """The parts of a table or a list with their keys or indices; of anything else, none."""
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _read_until(lines: list[str], number: int) -> tuple[int, dict[str, Any]]:
    """The line in which the statement of line `number` ends, and the settings of the file up to there."""
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
