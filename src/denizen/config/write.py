"""Writing to the home's `denizen.toml` without disturbing what the user wrote there."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from denizen.config.env import escape, read_dotenv
from denizen.config.files import as_text, read_settings, write_private
from denizen.config.home import sole_writer
from denizen.config.redact import map_text
from denizen.config.rules import check_examples
from denizen.config.settings import Rule
from denizen.config.toml import SettingsFile, to_toml
from denizen.errors import ConfigError


def add_rule(home: Path, rule: Rule) -> None:
    """Add a rule after the others of `policy.rules`, where it overrides them; comments and layout stay.

    Nothing is added when the last rule is that very one. Raises ConfigError when the rule's examples don't hold, the
    file isn't valid, or its rules have a form that can't be added to; the message then has the rule to paste.
    """
    check_examples(rule)
    path = home / "denizen.toml"
    with sole_writer(home):
        file = SettingsFile.read(path)
        policy = file.data.get("policy", {})
        rules, entry = policy.get("rules", []), msgspec.to_builtins(rule)
        for field in msgspec.structs.fields(Rule):  # as a file has it: without defaults
            value = entry[field.name]
            entry[field.name] = escape(value) if isinstance(value, str) else [escape(item) for item in value]
            if not field.required and value in (field.default, []):
                del entry[field.name]
        if rules[-1:] != [entry]:
            wanted = {**file.data, "policy": {**policy, "rules": [*rules, entry]}}
            attempts = _with_rule(file.text, entry)
            write_private(path, _first(attempts, wanted, path, f"policy.rules: {_inline(entry)}"))


def set_tool_default(home: Path, tool: str, argument: str, value: Any) -> None:
    """Set `argument` of the table `[tools.TOOL]`; comments and layout stay.

    Raises ConfigError when the file isn't valid, or its tables have a form that can't be added to; the message then has
    the line to paste.
    """
    path = home / "denizen.toml"
    value = map_text(value, escape)
    with sole_writer(home):
        file = SettingsFile.read(path)
        tools = file.data.get("tools", {})
        wanted = {**file.data, "tools": {**tools, tool: {**tools.get(tool, {}), argument: value}}}
        attempts = _with_default(file.text, f"tools.{tool}", argument, to_toml(value))
        write_private(path, _first(attempts, wanted, path, f"[tools.{tool}] {argument} = {to_toml(value)}"))


def add_table(home: Path, group: str, name: str, settings: dict[str, Any]) -> None:
    """Add the table `[GROUP.NAME]`, of bare keys, at the end of the file; comments and layout stay.

    Raises ConfigError when there is one of that name, or the file isn't valid.
    """
    path = home / "denizen.toml"
    with sole_writer(home):
        file = SettingsFile.read(path)
        tables = file.data.get(group, {})
        if name in tables:
            raise ConfigError(f"{path} already has [{group}.{name}]. Change it there, or use another name.")
        wanted = {**file.data, group: {**tables, name: settings}}
        lines = "".join(f"{key} = {_as_value(value)}\n" for key, value in settings.items())
        table = f"[{group}.{name}]\n{lines}"
        write_private(path, _first(iter([f"{file.text}{_gap(file.text)}{table}"]), wanted, path, f"\n{table}"))


def add_variable(home: Path, name: str, value: str) -> None:
    """Add a variable to the home's `.env`. Raises ConfigError if it already has another value."""
    path = home / ".env"
    with sole_writer(home):
        known = read_dotenv(home)
        if name in known and known[name] != value:
            raise ConfigError(f"{path} already has {name}, with another value. Remove or change it there.")
        if name not in known:
            text = as_text(read_settings(path) or b"", path)
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            end = "" if not text or text.endswith("\n") else "\n"
            write_private(path, f'{text}{end}{name}="{escaped}"\n'.encode())


def _as_value(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{to_toml(key)} = {to_toml(item)}' for key, item in value.items())} }}"
    return to_toml(value)


def _first(attempts: Iterator[str], wanted: dict[str, Any], path: Path, entry: str) -> bytes:
    """The first attempt that reads back as exactly what is wanted."""
    for attempt in attempts:
        try:
            if tomllib.loads(attempt) == wanted:
                return attempt.encode()
        except tomllib.TOMLDecodeError:
            continue
    raise ConfigError(f"{path} can't be edited automatically. Add it yourself: {entry}")


def _with_default(text: str, table: str, key: str, value: str) -> Iterator[str]:
    """The text with the value after each such key in turn; else below the table's title; else at the end."""
    assigned = rf"^(?P<before>[ \t]*(?:[\w-]+\.)*{re.escape(key)}[ \t]*=[ \t]*)[^\n]*?(?=[ \t]*(?:#[^\n]*)?$)"
    for line in re.finditer(assigned, text, re.MULTILINE):
        yield f"{text[: line.start()]}{line['before']}{value}{text[line.end() :]}"
    titled = rf"^[ \t]*\[[ \t]*{re.escape(table)}[ \t]*\][^\n]*$\n?"
    for title in re.finditer(titled, text, re.MULTILINE):
        end = "" if title[0].endswith("\n") else "\n"
        yield f"{text[: title.end()]}{end}{key} = {value}\n{text[title.end() :]}"
    yield f"{text}{_gap(text)}[{table}]\n{key} = {value}\n"


def _gap(text: str) -> str:
    return "" if not text else "\n" if text.endswith("\n") else "\n\n"


def _with_rule(text: str, entry: dict[str, Any]) -> Iterator[str]:
    """The text with the rule as a table at its end; else at the end of each list in turn: one of them is the rules'."""
    lines = "".join(f"{key} = {to_toml(value)}\n" for key, value in entry.items())
    yield f"{text}{_gap(text)}[[policy.rules]]\n{lines}"
    for place in (place for place, character in enumerate(text) if character == "]"):
        line = text.rfind("\n", 0, place) + 1
        if not text[line:place].strip():
            yield f"{text[:line]}    {_inline(entry)},\n{text[line:]}"
            yield f"{text[:line]}    , {_inline(entry)}\n{text[line:]}"
        yield f"{text[:place]}, {_inline(entry)}{text[place:]}"
        yield f"{text[:place]}{_inline(entry)}{text[place:]}"


def _inline(entry: dict[str, Any]) -> str:
    return f"{{ {', '.join(f'{key} = {to_toml(value)}' for key, value in entry.items())} }}"
