"""The rules of the offline model, as `rules.toml` has them."""

import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec


class Rules(msgspec.Struct, frozen=True):
    """The help, what answers look for, and the name of an answer for each pattern of a question, in order."""

    help: str
    files: Mapping[str, str]
    test_commands: Mapping[str, tuple[str, str]]
    definitions: Mapping[str, str]
    answers: Sequence[tuple[str, str]]


@functools.cache
def rules() -> Rules:
    """The rules, with the parts of their patterns filled in."""
    table = tomllib.loads(Path(__file__).with_name("rules.toml").read_text("utf-8"))
    parts: dict[str, str] = {}

    def filled(text: str) -> str:
        return re.sub("|".join(sorted(parts, key=len, reverse=True)) or "(?!)", lambda part: parts[part[0]], text)

    for name, pattern in table["parts"].items():
        parts[name] = filled(pattern)
    table["definitions"] = {name: filled(pattern) for name, pattern in table["definitions"].items()}
    asked = [(name, pattern) for each in table["answers"] for name, patterns in each.items() for pattern in patterns]
    return msgspec.convert({**table, "answers": [(name, filled(pattern)) for name, pattern in asked]}, Rules)
