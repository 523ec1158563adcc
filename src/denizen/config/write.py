"""Writing to the home's `denizen.toml` without disturbing what the user wrote there."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from denizen.config.env import escape
from denizen.config.files import as_text, read_settings, write_private
from denizen.config.home import sole_writer
from denizen.config.rules import check_examples
from denizen.config.settings import Rule
from denizen.config.source import parse
from denizen.errors import ConfigError


def add_rule(home: Path, rule: Rule) -> None:
    """Add a rule behind the others of `policy.rules`, where it decides over them; comments and layout stay.

    Nothing is added when the last rule is that very one. Raises ConfigError when the rule's examples don't hold, the
    file isn't valid, or its rules stand in a form that can't be added to; the message then has the rule to paste.
    """
    check_examples(rule)
    path = home / "denizen.toml"
    with sole_writer(home):
        text = as_text(read_settings(path) or b"", path)
        settings = parse(text, str(path)).data
        rules = settings.get("policy", {}).get("rules", [])
        entry = _entry(rule)
        if rules[-1:] != [entry]:
            wanted = {**settings, "policy": {**settings.get("policy", {}), "rules": [*rules, entry]}}
            write_private(path, _with_rule(text, entry, wanted, path).encode())


def to_toml(value: Any) -> str:
    """A string, number, truth value or list of these as TOML, which JSON nearly is."""
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")


def _entry(rule: Rule) -> dict[str, Any]:
    """The rule as it stands in a file: without defaults, and with its `${` meaning themselves."""
    entry = msgspec.to_builtins(rule)
    for field in msgspec.structs.fields(Rule):
        value = entry[field.name]
        entry[field.name] = escape(value) if isinstance(value, str) else [escape(item) for item in value]
        if not field.required and value in (field.default, []):
            del entry[field.name]
    return entry


def _with_rule(text: str, entry: dict[str, Any], wanted: dict[str, Any], path: Path) -> str:
    """The text with the rule in it: the first attempt that reads back as exactly what is wanted."""
    for attempt in _attempts(text, entry):
        try:
            if tomllib.loads(attempt) == wanted:
                return attempt
        except tomllib.TOMLDecodeError:
            continue
    raise ConfigError(f"The rule can't be added to {path}. Add it yourself to policy.rules: {_inline(entry)}")


def _attempts(text: str, entry: dict[str, Any]) -> Iterator[str]:
    """The rule as a table at the end of the file; else at the end of each list there is, whichever is the rules'."""
    lines = "".join(f"{key} = {to_toml(value)}\n" for key, value in entry.items())
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    yield f"{text}{gap}[[policy.rules]]\n{lines}"
    for place in (place for place, character in enumerate(text) if character == "]"):
        line = text.rfind("\n", 0, place) + 1
        if not text[line:place].strip():
            yield f"{text[:line]}    {_inline(entry)},\n{text[line:]}"
            yield f"{text[:line]}    , {_inline(entry)}\n{text[line:]}"
        yield f"{text[:place]}, {_inline(entry)}{text[place:]}"
        yield f"{text[:place]}{_inline(entry)}{text[place:]}"


def _inline(entry: dict[str, Any]) -> str:
    return f"{{ {', '.join(f'{key} = {to_toml(value)}' for key, value in entry.items())} }}"
