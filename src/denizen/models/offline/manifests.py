"""Which dependencies a manifest declares, in the formats that are data."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

MANIFESTS: Final = (
    "{pyproject.toml,setup.cfg,setup.py,Pipfile,environment.yml,requirements*.txt,requirements*.in,package.json,Cargo.toml,go.mod,"
    "composer.json,Gemfile,*.gemspec,pom.xml,build.gradle,build.gradle.kts,mix.exs,Package.swift,pubspec.yaml,*.{cs,fs,vb}proj}"
)
"""A pattern for the names of manifests, also of those that aren't read."""
_DECLARING: Final = re.compile(r".*dependenc(?:y|ies)(?:-groups)?|require(?:-dev)?|(?:dev-)?packages", re.IGNORECASE)
"""The keys that lead to tables and lists of dependencies."""


def declared(name: str, text: str) -> Mapping[str, list[str]]:
    """The dependencies by the keys that they stand below. Raises ValueError for a file that can't be read."""
    if name == "go.mod":
        return _without_empty({"require": re.findall(r"^(?:require)?\s+(\S+ v.*?)\s*$", text, re.MULTILINE)})
    if name.startswith("requirements"):
        lines = (re.split(r"\s#|\s--hash|\s\\", line.strip())[0].strip() for line in text.splitlines())
        return _without_empty({"requirements": [line for line in lines if line and not line.startswith(("#", "--"))]})
    if name.endswith(".json"):
        data = json.loads(text)
    elif name.endswith(".toml") or name == "Pipfile":
        data = tomllib.loads(text)
    else:
        raise ValueError("I don't read that format")
    return _without_empty(dict(_tables(data)))


def _tables(data: Any, path: str = "", *, declaring: bool = False) -> Iterator[tuple[str, list[str]]]:
    """The lists and tables of dependencies, each with the keys that lead to it."""
    if isinstance(data, list) and declaring:
        yield path, [each if isinstance(each, str) else json.dumps(each) for each in data]
    elif isinstance(data, Mapping) and declaring and not all(isinstance(value, list) for value in data.values()):
        yield path, [f"{key} {_version(value)}".strip() for key, value in data.items()]
    elif isinstance(data, Mapping):
        for key, value in data.items():
            keys = f"{path}.{key}".strip(".")
            yield from _tables(value, keys, declaring=declaring or bool(_DECLARING.fullmatch(keys)))


def _version(value: Any) -> str:
    version = value.get("version") if isinstance(value, Mapping) else value
    return version if isinstance(version, str) else ""


def _without_empty(groups: Mapping[str, list[str]]) -> Mapping[str, list[str]]:
    return {key: names for key, names in groups.items() if names}
